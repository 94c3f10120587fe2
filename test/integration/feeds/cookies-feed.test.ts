/** The feed of stolen cookies, against the pretend service and a real ledger. */
import { afterEach, expect, test } from 'vitest'
import { createLogger, type Logger } from '../../../src/lib/logger.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { findFeedType } from '../../../src/feed-types/feed-types.ts'
import { openFeed, type Scan } from '../../../src/store/feed-state.ts'
import { aCookieFeed } from '../../support/feeds.ts'
import { startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const dayMs = 86_400_000
const site = 'vpn.example.com'
const feed = aCookieFeed({ startMs: 4 * dayMs, sweep: { everyMs: 1, backMs: 7 * dayMs } })

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

/** Uids of what was taken in. */
async function known(): Promise<string[]> {
  return [...(await rig.records()).keys()]
}

interface Payload {
  event: { severity: string; highlights: Record<string, string[]> }
}

async function events(): Promise<Payload['event'][]> {
  const keys = await tests.redis.keys(rig.ledger.key('pay', '*'))
  const texts = await Promise.all(keys.map((key) => tests.redis.get(key)))
  return texts.map((text) => (JSON.parse(text ?? '') as Payload).event)
}

test('each cookie of the domain is taken in once, over empty and short pages, late ones with the next sweep', async () => {
  await begin({ endMode: 'empty', shortPages: 0.3, emptyPages: 0.3 })
  for (let count = 0; count < 130; count += 1) steal()
  for (const host of ['example.com', `x.${site}`, 'vpn.example.org']) steal({ host })
  await rig.toEnd(feed)
  await rig.toEnd(feed)
  expect((await known()).length).toBe(130)
  steal({ ageMs: 2 * dayMs })
  steal({ ageMs: 6 * dayMs }) // from before the start
  await rig.toEnd(feed)
  await rig.toEnd(feed, 'sweep')
  expect((await known()).length).toBe(131)
  await expectConservation(rig.ledger)
  expect(rig.sandbox.violations().changedScans).toBe(0)
})

test('it goes on at its cursor where it broke off, and begins again where the cursor is refused', async () => {
  await begin()
  for (let count = 0; count < 130; count += 1) steal()
  const on = '/astp/v2/cookies/_search'
  const strike = { on, effect: 'status', withCursor: true, times: 1 } as const
  rig.sandbox.faults.add({ ...strike, status: 503 })
  expect(await rig.turn(feed)).toMatchObject({ status: 'failed', reason: 'unavailable' })
  const { scan } = await openFeed(rig.ledger, feed.name, 0)
  rig.asked()
  rig.sandbox.faults.add({ ...strike, status: 400 })
  await rig.toEnd(feed)
  const cursors = rig.asked().map(({ body }) => (body as { from?: string }).from)
  expect(cursors.slice(0, 2)).toEqual([scan!.cursor, undefined])
  expect((await known()).length).toBe(130)
})

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

test.each([403, 404, 405])(
  'the service that refuses it by %i stops it, which is said once',
  async (status) => {
    await begin()
    const on = '/astp/v2/cookies/_search'
    const end = rig.sandbox.faults.add({ on, effect: 'status', status })
    for (const kind of ['feed', 'feed', 'sweep'] as const) {
      expect(await rig.turn(feed, kind)).toEqual({ status: 'refused' })
    }
    expect(rig.asked()).toHaveLength(1)
    const { refused } = await openFeed(rig.ledger, feed.name, 0)
    expect(refused?.reason).toContain(status === 403 ? 'the cookies of vpn.example.com' : on)
    expect(logs.filter((line) => line.includes('the feed stops'))).toHaveLength(1)
    end()
    steal()
    await rig.forgetCapabilities(dayMs)
    await rig.toEnd(feed)
    expect(await known()).toHaveLength(1)
  },
)

test('the remark on a service that ignores the time filter fits a feed that makes no credential search', () => {
  const notes = { isUnfiltered: true, lastPages: 3, hasCompleted: true }
  const scan = { fingerprint: 'f', body: {}, cursor: null, reason: 'first', startedAtMs: 0, notes }
  const remark = findFeedType(feed).unordered?.remark?.(scan as unknown as Scan, feed)
  expect(remark).toMatch(/each reading takes all 3 pages and is repeated every /)
  expect(remark).not.toMatch(/search|query/)
})
