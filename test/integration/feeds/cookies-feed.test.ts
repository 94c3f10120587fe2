/** The feed of stolen cookies, against the pretend service and a real ledger. */
import { afterEach, expect, test } from 'vitest'
import { createLogger, type Logger } from '../../../src/lib/logger.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { aCookieFeed } from '../../support/feeds.ts'
import { startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const dayMs = 86_400_000
const site = 'vpn.example.com'
const feed = aCookieFeed({ startMs: 4 * dayMs, rescan: { everyMs: 1, backMs: 7 * dayMs } })

let rig: FeedRig
let logs: string[] = []

async function begin(sandbox: SandboxOptions = {}): Promise<void> {
  logs = []
  const destination = { write: (line: string) => void logs.push(line) }
  const logger: Logger = createLogger({ level: 'warn', destination })
  const sealSecret = (_account: string, _uid: string, secret: string): string =>
    `sealed ${secret.length}`
  rig = await startFeedRig({ tests, sandbox, logger, sealSecret })
}

afterEach(() => rig.stop())

interface Given {
  host?: string
  expiresInMs?: number
  name?: string
  ageMs?: number
}

let made = 0

/** A log of one cookie of the site. */
function steal({ host = site, expiresInMs = dayMs, name = 'sid', ageMs = 0 }: Given = {}): string {
  made += 1
  const value = `stolen-value-${made}`
  const expires_utc = new Date(Date.now() + expiresInMs).toISOString().slice(0, 19)
  const cookies = [{ host_key: `.${host}`, path: '/', expires_utc, name, value }]
  const createdAtMs = Date.now() - ageMs
  rig.sandbox.addEvent({ type: 'stealer_log', createdAtMs, stolen: { credentials: [], cookies } })
  return value
}

interface Payload {
  event: { severity: string; highlights: Record<string, string[]> }
}

async function events(): Promise<Payload['event'][]> {
  const keys = await tests.redis.keys(rig.ledger.key('pay', '*'))
  const texts = await Promise.all(keys.map((key) => tests.redis.get(key)))
  return texts.map((text) => (JSON.parse(text ?? '') as Payload).event)
}

test('what still lives is told apart from what has expired, and no value is stored in clear', async () => {
  await begin()
  const values = [steal(), steal({ expiresInMs: -60_000 })]
  await rig.toEnd(feed)
  expect((await events()).map(({ severity }) => severity).toSorted()).toEqual(['high', 'info'])
  const texts = await everythingInRedis()
  for (const value of values) expect(texts).not.toContain(value)
  expect(texts).toContain('sealed 14')
})

async function everythingInRedis(): Promise<string> {
  const keys = await tests.redis.keys('*')
  const read = async (key: string): Promise<unknown> => {
    const type = await tests.redis.type(key)
    if (type === 'string') return tests.redis.get(key)
    return type === 'hash' ? tests.redis.hgetall(key) : undefined
  }
  return JSON.stringify(await Promise.all(keys.map(read)))
}

test('it asks for no more than its names and paths', async () => {
  await begin()
  steal({ name: 'theme' })
  steal()
  await rig.toEnd({ ...feed, names: ['sid'], paths: ['/'] })
  expect((await events()).map(({ highlights }) => highlights['name'])).toEqual([['sid']])
  expect(rig.asked()[0]?.body).toMatchObject({ domain: site, names: ['sid'], paths: ['/'] })
})
