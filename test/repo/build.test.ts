import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { loadScript } from '../../src/redis/scripts.ts'
import { connectTo } from '../support/ledger.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'

const root = join(import.meta.dirname, '../..')
const scripts = readdirSync(join(root, 'src/redis/scripts')).filter((file) => file.endsWith('.lua'))
let folder: string
let redis: TestRedis | undefined

// below node_modules, where the built files find their packages as an installed copy would
beforeAll(async () => {
  const cache = join(root, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  folder = mkdtempSync(join(cache, 'build-'))
  const dist = join(folder, 'dist')
  copyFileSync(join(root, 'package.json'), join(folder, 'package.json'))
  const tsc = join(root, 'node_modules/.bin/tsc')
  execFileSync(tsc, ['-p', 'tsconfig.build.json', '--outDir', dist], { cwd: root })
  execFileSync(process.execPath, ['.ci/copy-assets.mjs', dist], { cwd: root })
  redis = await startRedis()
})

afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await redis?.stop()
})

test('the built command runs', () => {
  const version = execFileSync(process.execPath, [join(folder, 'dist/main.js'), '--version'])
  const { version: expected } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string
  }
  expect(String(version).trim()).toBe(expected)
})

test('every Lua script of the build is whole and accepted by Redis', async () => {
  const path = pathToFileURL(join(folder, 'dist/redis/scripts.js')).href
  const built = (await import(path)) as { loadScript: typeof loadScript }
  const client = connectTo(redis!.url)
  for (const file of scripts) {
    const { text, sha } = built.loadScript(file.replace('.lua', ''))
    expect(text).not.toMatch(/^-- @include/m)
    expect(await client.script('LOAD', text)).toBe(sha)
  }
  client.disconnect()
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
