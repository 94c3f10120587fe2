/** What the daemon takes for a loss of the ledger in Redis, and that it is noted whatever happens then. */
import { expect, onTestFinished, test } from 'vitest'
import { createApp } from '../../../../src/daemon/daemon.ts'
import { createLogger } from '../../../../src/lib/logger.ts'
import { createKeys } from '../../../../src/redis/keys.ts'
import { readLoss } from '../../../../src/store/account-ledger.ts'
import { redisForTests, whileFull } from '../../../support/ledger.ts'
import { hurriedConfig, shortTimings, until } from '../../../support/rehearsal.ts'

const tests = redisForTests()
const hourMs = 3_600_000
let daemons = 0

function configOf(prefix: string, feeds = ''): ReturnType<typeof hurriedConfig> {
  return hurriedConfig(`
redis: {url: '${tests.server.url}', prefix: ${prefix}, allow_unsafe: true}
http: {port: 0}
accounts: {main: {base_url: 'http://127.0.0.1:9', link_hosts: [app.example.com], api_key: fw_sandbox}}
feeds: {brand: {type: events, identifier_group: 1042}${feeds}}
sinks: {siem: {type: webhook, url: 'http://127.0.0.1:9', allow_private: true}}
route: {sinks: [siem]}
`)
}

/** A daemon whose generation was confirmed before, and what its log says of a loss. */
async function aDaemon(generationMs = shortTimings.generationMs) {
  const prefix = `loss${(daemons += 1)}`
  const keys = createKeys(prefix)
  const errors: string[] = []
  const write = (line: string): void => {
    const { level, msg } = JSON.parse(line) as { level: string; msg: string }
    if (level === 'error' && msg.startsWith('redis holds')) errors.push(msg)
  }
  const logger = createLogger({ level: 'info', destination: { write } })
  const timings = { ...shortTimings, generationMs }
  const app = createApp({ ...configOf(prefix), version: 'test', logger, timings })
  onTestFinished(() => app.stop())
  await app.start()
  const name = keys.shared('generation')
  const confirmations = async (): Promise<number> =>
    Number(await tests.redis.hget(name, 'confirmations'))
  await until('it was confirmed', async () => (await confirmations()) >= 2)
  return { app, prefix, errors, name, confirmations, loss: () => readLoss(tests.redis, keys) }
}

const restored = `#!lua flags=allow-oom
redis.call('HSET', KEYS[1], 'confirmed', ARGV[1], 'confirmations', 0)`

test('an older state is a loss, and noted for a day although it fills Redis', async () => {
  const { prefix, name, errors, loss } = await aDaemon()
  const confirmed = Date.now() - hourMs
  await whileFull(tests.redis, async () => {
    await tests.redis.eval(restored, 1, name, confirmed)
    await until('it is noted', async () => (await loss()) !== undefined)
  })
  expect(await loss()).toMatchObject({ stateMs: confirmed })
  const shownMs = await tests.redis.pttl(createKeys(prefix).shared('loss'))
  expect(shownMs / hourMs).toBeGreaterThan(23)
  expect(shownMs / hourMs).toBeLessThanOrEqual(24)
  expect(errors).toEqual([expect.stringMatching(/^redis holds an older state of the ledger, of /)])
})

test('Redis emptied during a reload is noticed by the engine that comes after', async () => {
  const { app, prefix, name, loss } = await aDaemon(hourMs)
  await tests.redis.del(name)
  const next = configOf(prefix, ', other: {type: events, identifier_group: 1043}')
  expect(await app.reload(() => Promise.resolve(next))).toMatchObject({ status: 'changed' })
  await until('it is noted', async () => (await loss()) !== undefined)
  expect(await loss()).toMatchObject({ stateMs: 0 })
})
