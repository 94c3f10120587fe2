import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sandboxConfig } from '../../src/cli/demo/sandbox.ts'
import { withDefaults } from '../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { readStages, root } from '../support/dockerfile.ts'
import { freePort } from '../support/free-port.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { until } from '../support/rehearsal.ts'

const run = promisify(execFile)
let folder: string
let redis: TestRedis
let sandbox: Sandbox
let port: number

beforeAll(async () => {
  // far from the checkout, so that no package of its node_modules is found
  folder = mkdtempSync(join(tmpdir(), 'tocsin-install-'))
  await layOut(folder)
  redis = await startRedis()
  sandbox = await startSandbox({ backlog: 5 })
  port = await freePort()
  const own = `redis: {url: '${redis.url}'}\nhttp: {port: ${port}}\n`
  writeFileSync(join(folder, 'etc.yaml'), own + sandboxConfig(sandbox, withDefaults({}).groups))
})

afterAll(async () => {
  await sandbox?.close()
  await redis?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** What the last stage of the Dockerfile holds: its copied files, dist, and the production packages. */
async function layOut(target: string): Promise<void> {
  const image = readStages().at(-1)!
  for (const { from, sources } of image.copies) {
    if (from === undefined) for (const file of sources) cpSync(join(root, file), join(target, file))
  }
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const dist = join(target, 'dist')
  await run(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', dist], { cwd: root })
  execFileSync(process.execPath, ['.ci/copy-assets.mjs', dist], { cwd: root })
  for (const place of productionPackages()) {
    mkdirSync(join(target, place), { recursive: true })
    cpSync(join(root, place), join(target, place), { recursive: true })
  }
}

/** Where npm ci --omit=dev puts packages, without those for other platforms. */
function productionPackages(): string[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: true; devOptional?: true; optional?: true }>
  }
  return Object.entries(lock.packages)
    .filter(([place, { dev, devOptional }]) => place !== '' && !dev && !devOptional)
    .filter(([place, { optional }]) => !optional || existsSync(join(root, place)))
    .map(([place]) => place)
}

const environment = { PATH: process.env['PATH'] ?? '', NODE_ENV: 'production' }

test('no package of development is in it', () => {
  expect(existsSync(join(folder, 'node_modules/fastify'))).toBe(true)
  const ofDevelopment = ['vitest', 'typescript', 'playwright-core', 'node']
  expect(ofDevelopment.filter((name) => existsSync(join(folder, 'node_modules', name)))).toEqual([])
})

test('it checks a configuration', async () => {
  const args = ['dist/main.js', 'check', '--config', 'etc.yaml']
  const { stdout } = await run(process.execPath, args, { cwd: folder, env: environment })
  expect(stdout).toMatch(/^good: /m)
})

test('it runs, is healthy, delivers, and ends within 10 s of SIGTERM', async () => {
  const args = ['dist/main.js', 'run', '--config', 'etc.yaml']
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const output of [child.stdout, child.stderr]) {
    output.on('data', (chunk) => (said += String(chunk)))
  }
  const gone = once(child, 'close')
  const isHealthy = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`it ended: ${said}`)
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined)
    return answer?.ok === true
  }
  try {
    await until('it is healthy', isHealthy)
    sandbox.addEvents(1, { severity: 'critical' })
    await until('it delivers', () => sandbox.received.webhook.length > 0)
    expect(await isHealthy()).toBe(true)
    child.kill('SIGTERM')
    expect(await gone).toEqual([0, null])
    // its own word for an end in time: at its deadline, 9.7 s after the request, it is another
    expect(said).toContain('"msg":"stopped"')
  } finally {
    child.kill('SIGKILL')
  }
})
