/** What `npm pack` makes from a checkout, installed by npm into an empty folder, rings there. */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { root } from '../support/dockerfile.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)
const path = [dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter)
const environment: NodeJS.ProcessEnv = { PATH: path, HOME: process.env['HOME'] }

const folder = mkdtempSync(join(tmpdir(), 'tocsin-package-'))
const checkout = join(folder, 'checkout')
const target = join(folder, 'target')
const installed = join(target, 'node_modules/tocsin')
const children: ChildProcess[] = []

/** The checkout as a fresh clone has it, so that a build does not change the files of who works here. */
beforeAll(async () => {
  const left = new Set(['node_modules', '.git', 'dist'])
  cpSync(root, checkout, { recursive: true, filter: (source) => !left.has(basename(source)) })
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
  const npm = (cwd: string, ...args: string[]): Promise<unknown> =>
    run('npm', [...args, '--loglevel=error'], { cwd })
  await npm(checkout, 'pack', '--pack-destination', folder)
  const archive = readdirSync(folder).find((file) => file.endsWith('.tgz'))!
  cpSync(join(folder, archive), join(target, archive))
  await npm(target, 'install', `./${archive}`, '--prefer-offline', '--no-audit', '--no-fund')
})

afterAll(async () => {
  await Promise.all(children.map(end))
  rmSync(folder, { recursive: true, force: true })
})

function start(...args: string[]): ChildProcess {
  const child = spawn('node_modules/.bin/tocsin', args, {
    cwd: target,
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  return child
}

async function end(child: ChildProcess): Promise<unknown> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  const [code] = (await gone) as [number | null]
  return code
}

async function tocsin(...args: string[]): Promise<string> {
  const options = { cwd: target, env: environment }
  return (await run('node_modules/.bin/tocsin', args, options)).stdout
}

function readJson<Content>(file: string): Content {
  return JSON.parse(readFileSync(file, 'utf8')) as Content
}

test('the package has what an operator needs, and nothing of the development', () => {
  const wanted = ['README.md', 'config/minimal.yaml', 'deploy/systemd/tocsin.service']
  expect(wanted.filter((file) => !existsSync(join(installed, file)))).toEqual([])
  const ours = ['src', 'test', '.ci', 'deploy/prometheus/rules.test.yaml', '.env', 'node_modules']
  expect(ours.filter((file) => existsSync(join(installed, file)))).toEqual([])
})

test('a page in the package leads to no file that is not there, but for what only a checkout has', () => {
  const pages = readdirSync(installed, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .flatMap((page) => linksIn(page))
  const gone = new Set(pages.filter((file) => !existsSync(join(installed, file))))
  const ofCheckout = ['deploy/Dockerfile', 'docker-compose.yml']
  expect([...gone].filter((file) => !file.startsWith('test/')).toSorted()).toEqual(ofCheckout)
  expect(pages.length).toBeGreaterThan(100)
})

/** Files that a page links to, from the top of the package. */
function linksIn(page: string): string[] {
  const links = readFileSync(join(installed, page), 'utf8').matchAll(/\]\(([^)#\s`]+)[^)`]*\)/g)
  const files = [...links].map(([, link = '']) => link).filter((link) => !/^\w+:/.test(link))
  return files.map((file) => join(dirname(page), file))
}

test('an install brings no other package', () => {
  const there = readdirSync(join(target, 'node_modules'))
  expect(there.filter((name) => !name.startsWith('.'))).toEqual(['tocsin'])
})

test('it says its version and refuses an unknown key', async () => {
  const { version } = readJson<{ version: string }>(join(root, 'package.json'))
  expect(await tocsin('--version')).toBe(`${version}\n`)
  writeFileSync(join(target, 'bad.yaml'), 'acounts: {}\n')
  await expect(tocsin('check', '--config', 'bad.yaml')).rejects.toMatchObject({ code: 2 })
})

async function startSandbox(): Promise<{ url: string; config: string }> {
  const sandbox = start('sandbox', '--port=0', '--smtp-port=0', '--rate=5/s', '--output=json')
  const lines = createInterface({ input: sandbox.stdout! })
  const [first] = (await once(lines, 'line')) as [string]
  return JSON.parse(first) as { url: string; config: string }
}

test('it rings: its own sandbox, its own Redis, and ends when it is told to', async () => {
  const { url, config } = await startSandbox()

  const own = `redis: {embedded: ./data}\nhttp: {port: ${await freePort()}}\n`
  writeFileSync(join(target, 'tocsin.yaml'), own + config)
  expect(await tocsin('check', '--config', 'tocsin.yaml')).toMatch(/^good: /m)
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:/)

  const daemon = start('run', '--config', 'tocsin.yaml')
  daemon.stdout!.resume()
  const arrived = async (): Promise<boolean> => {
    const { received } = (await (await fetch(`${url}/_sandbox/state`)).json()) as {
      received: Record<string, number>
    }
    return Object.values(received).some((count) => count > 0)
  }
  await until('a message arrives', async () => (await arrived()) || daemon.exitCode !== null)
  expect(daemon.exitCode).toBeNull()
  expect(await end(daemon)).toBe(0)
})
