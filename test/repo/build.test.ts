import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { loadScript } from '../../src/redis/scripts.ts'
import { buildProgram, type BuiltProgram } from '../support/built-program.ts'
import { connectTo } from '../support/ledger.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'

const root = join(import.meta.dirname, '../..')
const scripts = readdirSync(join(root, 'src/redis/scripts'), {
  recursive: true,
  encoding: 'utf8',
}).filter((file) => file.endsWith('.lua') && !file.startsWith('lib'))
let built: BuiltProgram
let redis: TestRedis | undefined

beforeAll(async () => {
  built = buildProgram()
  redis = await startRedis()
})

afterAll(async () => {
  built.remove()
  await redis?.stop()
})

test('the built command runs', () => {
  const version = execFileSync(process.execPath, [built.main, '--version'])
  const { version: expected } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string
  }
  expect(String(version).trim()).toBe(expected)
})

test('the built command says at once that its Node is too old', () => {
  const file = join(built.folder, 'package.json')
  const text = readFileSync(file, 'utf8')
  onTestFinished(() => writeFileSync(file, text))
  writeFileSync(file, text.replace('>=22.19', '>=99.1'))
  const { status, stderr } = spawnSync(process.execPath, [built.main], { encoding: 'utf8' })
  expect(status).toBe(2)
  expect(stderr).toBe(
    `tocsin needs Node 99.1 or newer, and this is Node ${process.versions.node} (${process.execPath})\n`,
  )
})

test('every Lua script of the build is whole and accepted by Redis', async () => {
  const path = pathToFileURL(join(built.folder, 'dist/redis/scripts.js')).href
  const { loadScript: load } = (await import(path)) as { loadScript: typeof loadScript }
  const client = connectTo(redis!.url)
  for (const file of scripts) {
    const { text, sha } = load(basename(file, '.lua'))
    expect(text).not.toMatch(/^-- @include/m)
    expect(await client.script('LOAD', text)).toBe(sha)
  }
  client.disconnect()
})

test.each(['page/views', 'page/static'])('the build has every file of %s', (folder) => {
  expect(readdirSync(join(built.folder, 'dist', folder))).toEqual(
    readdirSync(join(root, 'src', folder)),
  )
})

test.each(scripts)('%s says what it does, its keys, its arguments and what it returns', (file) => {
  const text = readFileSync(join(root, 'src/redis/scripts', file), 'utf8')
  const header = text
    .split('\n')
    .filter((line) => line.startsWith('-- '))
    .join('\n')
  expect(header).toMatch(/^-- KEYS/m)
  expect(header).toMatch(/^-- Returns/m)
  expect(text.indexOf('#!lua')).toBeLessThanOrEqual(0)
})
