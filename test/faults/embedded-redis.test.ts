import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ensureRedis, type RedisHandle } from '../../src/redis/embedded-redis.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { silent } from '../support/ledger.ts'
import { until } from '../support/rehearsal.ts'
import { startDaemon } from '../integration/cli/daemon.ts'
import { aFile, tocsin } from '../integration/cli/tocsin.ts'
import { aScene } from '../integration/redis/scene.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-embedded-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function hold(home: string, logger = silent): Promise<RedisHandle> {
  return ensureRedis({ embedded: home, prefix: 'tocsin', allowUnsafe: false }, logger)
}

async function pidOf(home: string): Promise<number> {
  const redis = new Redis({
    path: join(home, 'redis.sock'),
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
  })
  redis.on('error', () => {})
  try {
    return Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1])
  } finally {
    redis.disconnect()
  }
}

test('the daemon keeps its ledgers in it, over a death of the server and a restart of its own', async () => {
  const home = join(folder, 'data')
  const held = await hold(home)
  const scene = await aScene(`{embedded: ${home}}`)
  try {
    expect(statSync(home).mode & 0o777).toBe(0o700)
    expect(readFileSync(join(home, 'redis.conf'), 'utf8')).toContain('port 0')
    scene.sandbox.addEvents(12)
    await scene.settled(12)
    const first = await pidOf(home)
    process.kill(first, 'SIGKILL')
    scene.sandbox.addEvents(12)
    await scene.settled(24)
    expect(await pidOf(home)).not.toBe(first)
  } finally {
    await scene.stop()
    await held.release()
  }
  const file = aFile('tocsin.yaml', scene.yaml)
  const listed = await tocsin('feeds', 'list', '--output', 'json', '--config', file)
  expect(listed).toMatchObject({ code: 0, err: '' })
  expect(listed.out).toMatch(/"new": 24/)
})

test('a second process joins it, and keeps it up when the first has been killed', async () => {
  const yaml = (port: number): string => `
redis: {embedded: ${folder}/data}
http: {port: ${port}}
accounts: {main: {base_url: 'http://127.0.0.1:9', api_key: fw_k}}
feeds: {brand: {type: events, identifier_group: 1, detail: []}}
sinks: {siem: {type: webhook, url: 'http://127.0.0.1:9/', allow_private: true}}
route: {sinks: [siem]}
`
  const first = await startDaemon(yaml(0))
  const second = await startDaemon(yaml(0))
  expect(second.soFar()).not.toContain('embedded redis started')
  first.child.kill('SIGKILL')
  await second.says('embedded redis started')
  await second.says('redis is reachable again')
  second.child.kill('SIGTERM')
  expect(await second.ended).toMatchObject({ code: 0, err: '' })
  await until('nothing of it runs', async () => {
    const client = new Redis({ path: join(folder, 'data/redis.sock'), retryStrategy: () => null })
    const gone = await new Promise((resolve) =>
      client.once('error', () => resolve(true)).once('ready', () => resolve(false)),
    )
    client.disconnect()
    return gone === true
  })
})

test('of several that begin at once one starts it', async () => {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const logger = createLogger({ level: 'info', destination })
  const home = join(folder, 'data')
  const held = await Promise.all([1, 2, 3].map(() => hold(home, logger)))
  expect(lines.join('').match(/embedded redis started/g)).toHaveLength(1)
  for (const one of held.toReversed()) await one.release()
})

test('a server that could not be started again is, once what was missing is back', async () => {
  const home = join(folder, 'data')
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const held = await hold(home, createLogger({ level: 'error', destination }))
  const path = process.env['PATH']
  try {
    const before = await pidOf(home)
    process.env['PATH'] = folder
    process.kill(before, 'SIGKILL')
    await until('it says what is missing', () => lines.join('').includes('no redis-server'))
    process.env['PATH'] = path
    expect(await pidOf(home)).not.toBe(before)
  } finally {
    process.env['PATH'] = path
    await held.release()
  }
})
