/** `quarantine list`, `show` and `replay`: on a ledger filled by its own scripts, and one fed by the sandbox. */
import { expect, onTestFinished, test } from 'vitest'
import type { MalformedItem } from '../../../src/store/intake.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { pauseFeed } from '../../../src/store/feed-state.ts'
import { startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { aFeed } from '../../support/feeds.ts'
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { aFile, tocsin } from './tocsin.ts'

const tests = redisForTests()
let prefixes = 0

function configOf(prefix: string): [string, string] {
  const text = `redis: { url: "${tests.server.url}", prefix: ${prefix} }
accounts:
  main: { base_url: "http://127.0.0.1:9", api_key: fw_key }
  second: { base_url: "http://127.0.0.1:9", api_key: fw_key }
feeds:
  brand: { type: events, account: main, identifier_group: 1042 }
  executives: { type: events, account: main, identifier_group: 1043, sweep: false }
  staff: { type: credentials, account: second, identifier: 77, severity: high }
sinks:
  soc: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush" }
route: { sinks: [soc] }
`
  return ['--config', aFile('tocsin.yaml', text)]
}

interface Scene {
  ledger: AccountLedger
  second: AccountLedger
  config: [string, string]
}

async function aScene(): Promise<Scene> {
  const prefix = `quarantine${(prefixes += 1)}`
  const keys = createKeys(prefix)
  return {
    ledger: await tests.ledger({ keys }),
    second: await tests.ledger({ keys, account: 'second' }),
    config: configOf(prefix),
  }
}

function bad(name: string, overrides: Partial<MalformedItem> = {}): MalformedItem {
  const problem = 'metadata.severity: not a string'
  return { uid: `a/b/${name}`, problem, raw: `{"bad":"${name}"}`, ...overrides }
}

/** The id under which an item with this text stands. */
function idOf(ledger: AccountLedger, { raw }: MalformedItem): string {
  return ledger.fingerprints.recordId(raw)
}

/** Each in a page of its own, a minute apart. */
async function setAside(
  ledger: AccountLedger,
  items: MalformedItem[],
  feed = 'brand',
): Promise<void> {
  for (const [place, item] of items.entries()) {
    await takeIn(ledger, [], { feed, malformed: [item] })
    const atMs = Date.now() - (items.length - place) * 60_000
    const id = idOf(ledger, item)
    const stored = JSON.parse(
      (await ledger.redis.hget(ledger.key('quarantine'), id)) ?? '',
    ) as object
    await ledger.redis.hset(ledger.key('quarantine'), id, JSON.stringify({ ...stored, at: atMs }))
    await ledger.redis.zadd(ledger.key('quarantine-ages'), atMs, id)
  }
}

interface Listed {
  total: number
  items: Record<string, unknown>[]
}

async function listed(config: [string, string], ...args: string[]): Promise<Listed> {
  const { out } = await tocsin('quarantine', 'list', '--output=json', ...args, ...config)
  return JSON.parse(out) as Listed
}

function uidsOf({ items }: Listed): unknown[] {
  return items.map(({ uid }) => uid)
}

test('an empty quarantine is said to be so', async () => {
  const { config } = await aScene()
  expect(await tocsin('quarantine', 'list', ...config)).toMatchObject({
    code: 0,
    out: 'There is nothing in the quarantine.\n',
  })
  expect(await listed(config)).toMatchObject({ total: 0, items: [] })
})

test('the list has the newest first, of all accounts, page by page', async () => {
  const { ledger, second, config } = await aScene()
  const [one, two, nameless] = [bad('1'), bad('2'), bad('3', { uid: null })]
  await setAside(ledger, [one, two, nameless])
  await takeIn(second, [], { feed: 'staff', malformed: [bad('4')] })
  const { out } = await tocsin('quarantine', 'list', '--limit=3', ...config)
  const lines = out.split('\n')
  expect(lines[0]).toMatch(/^ID +SET ASIDE +FEED +UID +PROBLEM$/)
  expect(lines[1]).toMatch(/^[0-9a-f]{12} {2}\S+ \S+ UTC {2}staff {2}a\/b\/4 {2}metadata.severity/)
  expect(lines[2]).toContain(`${idOf(ledger, nameless).slice(0, 12)}  `)
  expect(lines[2]).toMatch(/ brand {2}- /)
  expect(lines[4]).toBe('page 1 of 2, 4 quarantined items in all; more with --page 2')
  expect(uidsOf(await listed(config, '--limit=3', '--page=2'))).toEqual(['a/b/1'])
  expect((await listed(config)).items[2]).toEqual({
    id: idOf(ledger, two),
    account: 'main',
    feed: 'brand',
    at: expect.stringMatching(/^\d{4}-.*Z$/),
    uid: 'a/b/2',
    problem: 'metadata.severity: not a string',
    can_replay: true,
  })
})

test('the list is of one feed, or of one account, where it is asked so', async () => {
  const { ledger, second, config } = await aScene()
  await takeIn(ledger, [], { malformed: [bad('1')] })
  await takeIn(ledger, [], { feed: 'gone', malformed: [bad('2')] })
  await takeIn(second, [], { feed: 'staff', malformed: [bad('3')] })
  expect(uidsOf(await listed(config, '--feed=brand'))).toEqual(['a/b/1'])
  expect(uidsOf(await listed(config, '--feed=gone'))).toEqual(['a/b/2'])
  expect(uidsOf(await listed(config, '--feed=executives'))).toEqual([])
  expect(uidsOf(await listed(config, '--account=second'))).toEqual(['a/b/3'])
})

test('what is over is not listed, though nothing has swept it out', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [], { malformed: [bad('1'), bad('2')] })
  await ledger.redis.zadd(ledger.key('quarantine-ages'), 1, idOf(ledger, bad('1')))
  expect(uidsOf(await listed(config))).toEqual(['a/b/2'])
})

test('show tells what is wrong, what is kept, what closes it and what to do', async () => {
  const { ledger, config } = await aScene()
  const item = bad('1', { raw: '{"bad":"\u202E\u001B[2J"}', problem: 'odd\u001B[2J' })
  await takeIn(ledger, [], { malformed: [item] })
  const id = idOf(ledger, item)
  const { code, out } = await tocsin('quarantine', 'show', id.slice(0, 6).toUpperCase(), ...config)
  expect(code).toBe(0)
  expect(out).not.toMatch(/\p{Cf}|(?!\n)\p{Cc}/u)
  expect(out).toContain(`quarantined item ${id}\n`)
  expect(out).toContain('by the feed brand, account main; nothing was sent')
  expect(out).toContain('  problem: odd')
  expect(out).toContain('  uid: a/b/1\n')
  expect(out).toContain('  what is kept, secrets masked: {"bad":')
  expect(out).toMatch(
    /closes by itself when its uid comes .* or after \d{4}-.* \(retention.history\)/,
  )
  expect(out).toContain('The next sweep of feed brand, due ')
  expect(out).toContain(`tocsin quarantine replay ${id.slice(0, 12)}\n`)
  const json = await tocsin('quarantine', 'show', id, '--output=json', ...config)
  expect(JSON.parse(json.out)).toMatchObject({
    id,
    kept: item.raw,
    ends_at: expect.any(String),
    next: [{ feed: 'brand', sweep_due: expect.any(String) }],
  })
})

test('show says of an item without a uid that only time closes it', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [], { malformed: [bad('1', { uid: null })] })
  const { out } = await tocsin('quarantine', 'show', idOf(ledger, bad('1')), ...config)
  expect(out).toContain('  uid: none could be read\n')
  expect(out).toContain('  it closes by itself when a thousand newer ones have come, or after ')
})

test('a replayed item that is still malformed is set aside anew, once', async () => {
  const { ledger, config } = await aScene()
  const malformed = [bad('1'), bad('2')]
  await takeIn(ledger, [], { malformed })
  const id = idOf(ledger, bad('1'))
  const { code, out } = await tocsin('quarantine', 'replay', id.slice(0, 8), '--yes', ...config)
  expect(code).toBe(0)
  expect(out).toMatch(/^replayed 1 quarantined item\nThe next sweep of feed brand, due /)
  expect(uidsOf(await listed(config))).toEqual(['a/b/2'])
  expect(await takeIn(ledger, [], { malformed })).toMatchObject({
    counts: { quarantined: 1, duplicate: 1 },
  })
  expect(await takeIn(ledger, [], { malformed })).toMatchObject({ counts: { duplicate: 2 } })
  expect((await listed(config)).total).toBe(2)
  await expectConservation(ledger)
})

test('a replayed item that a newer Tocsin reads is taken in exactly once', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [], { malformed: [bad('1', { uid: null })] })
  await tocsin('quarantine', 'replay', '--all', '--yes', ...config)
  expect(await takeIn(ledger, [routed({ uid: 'a/b/1' })])).toMatchObject({ counts: { new: 1 } })
  expect(await takeIn(ledger, [routed({ uid: 'a/b/1' })])).toMatchObject({
    counts: { duplicate: 1 },
  })
  expect((await listed(config)).total).toBe(0)
  const { feeds } = await expectConservation(ledger)
  expect(feeds['brand']).toMatchObject({ fetched: 3, new: 1, quarantined: 1, duplicate: 1 })
})

test('an entry closes when its uid reads again, also of an event that was known before', async () => {
  const { ledger, config } = await aScene()
  const known = [routed({ uid: 'a/b/1' })]
  await takeIn(ledger, known)
  await takeIn(ledger, [], { malformed: [bad('1'), bad('2')] })
  expect(await takeIn(ledger, known)).toMatchObject({ counts: { duplicate: 1 } })
  expect(uidsOf(await listed(config))).toEqual(['a/b/2'])
})

test('an item that two feeds showed is new to both after a replay, which names both', async () => {
  const { ledger, config } = await aScene()
  const malformed = [bad('1')]
  await takeIn(ledger, [], { malformed })
  await takeIn(ledger, [], { feed: 'executives', malformed })
  expect(uidsOf(await listed(config, '--feed=brand'))).toEqual(['a/b/1'])
  const { out } = await tocsin('quarantine', 'replay', '--all', '--feed=brand', '--yes', ...config)
  expect(out).toContain('The next sweep of feed brand')
  expect(out).toContain(
    'Feed executives has no sweep: nothing reads it again without: "tocsin feeds',
  )
  for (const feed of ['brand', 'executives']) {
    expect(await takeIn(ledger, [], { feed, malformed })).toMatchObject({
      counts: { quarantined: 1 },
    })
  }
  await expectConservation(ledger)
})

test('replay of one feed leaves what others showed', async () => {
  const { ledger, second, config } = await aScene()
  await takeIn(ledger, [], { malformed: [bad('1'), bad('2')] })
  await takeIn(second, [], { feed: 'staff', malformed: [bad('3')] })
  const args = ['--all', '--feed=brand', '--yes', '--output=json']
  const { out } = await tocsin('quarantine', 'replay', ...args, ...config)
  expect(JSON.parse(out)).toMatchObject({ replayed: 2, failed: [], next: [{ feed: 'brand' }] })
  expect(uidsOf(await listed(config))).toEqual(['a/b/3'])
})

test('what reads it again is said of a feed that is paused, gone, or not read to its end', async () => {
  const { ledger, second, config } = await aScene()
  await takeIn(ledger, [], { malformed: [bad('1')] })
  await pauseFeed(ledger, 'brand', { reason: 'a noisy source', sinceMs: 1 })
  await takeIn(ledger, [], { feed: 'gone', malformed: [bad('2')] })
  await takeIn(second, [], { feed: 'staff', isCaughtUp: false, malformed: [bad('3')] })
  const { out } = await tocsin('quarantine', 'replay', '--all', '--yes', ...config)
  expect(out).toContain('while feed brand is paused: "tocsin feeds resume brand".')
  expect(out).toContain('the configuration has no feed gone.')
  expect(out).toContain('Feed staff is yet to be read to its end')
})

test('replay asks first, and changes nothing where nobody answers', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [], { malformed: [bad('1')] })
  const { code, err } = await tocsin('quarantine', 'replay', '--all', ...config)
  expect(code).toBe(2)
  expect(err).toMatch(
    /^1 quarantined item will be forgotten .* Nobody is there to ask; say --yes\n$/,
  )
  expect((await listed(config)).total).toBe(1)
})

test('two ids that begin alike are told apart by more of them', async () => {
  const { ledger, config } = await aScene()
  const entry = { feed: 'brand', at: Date.now(), problem: 'odd', raw: '{}', marks: {} }
  for (const id of ['abcd1'.padEnd(24, '0'), 'abcd2'.padEnd(24, '0')]) {
    await ledger.redis.hset(ledger.key('quarantine'), id, JSON.stringify(entry))
    await ledger.redis.zadd(ledger.key('quarantine-ages'), entry.at, id)
  }
  const { code, err } = await tocsin('quarantine', 'show', 'abcd', ...config)
  expect(code).toBe(2)
  expect(err).toMatch(/^"abcd" begins more than one id; write more of it: abcd\d0+, abcd\d0+\n$/)
  expect((await tocsin('quarantine', 'show', 'abcd1', ...config)).code).toBe(0)
})

test.each([
  [['list', '--feed=brnd'], 2, 'there is no feed "brnd"; did you mean "brand"?'],
  [['list', '--account=mian'], 2, 'there is no account "mian"; did you mean "main"?'],
  [['list', '--limit=0'], 2, 'Write a whole number of at least 1.'],
  [['show', 'a/b/1'], 2, '"a/b/1" is not the id of a quarantined item; take one from'],
  [['show', 'abc'], 2, 'four characters of it at least'],
  [['show', 'abcd'], 1, 'there is no quarantined item abcd: it was replayed, or'],
  [['replay', '--yes'], 2, 'name quarantined items by their ids, or all of them by --all'],
  [['replay', '--feed=brand', '--yes'], 2, 'name quarantined items by their ids'],
  [['replay', 'abcd', '--all', '--yes'], 2, 'name quarantined items by their ids'],
  [['replay', 'abcd', '--yes'], 1, 'there is no quarantined item abcd'],
  [['replay', '--all', '--feed=brnd', '--yes'], 2, 'did you mean "brand"?'],
] as const)('%j is refused in a sentence', async (args, code, words) => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [], { malformed: [bad('1')] })
  const ended = await tocsin('quarantine', ...args, ...config)
  expect(ended.err).toContain(words)
  expect(ended.code).toBe(code)
  expect((await listed(config)).total).toBe(1)
})

async function aRig(): Promise<{ rig: FeedRig; config: [string, string] }> {
  const rig = await startFeedRig({ tests })
  onTestFinished(() => rig.stop())
  const prefix = /^\{?(\w+):main/.exec(rig.ledger.key())?.[1] ?? ''
  return { rig, config: configOf(prefix) }
}

/** Its sweep is always due. */
const brand = aFeed({ sweep: { everyMs: 0, backMs: 604_800_000 } })

function itemOf(uid: string): object {
  const created = new Date().toISOString()
  return { metadata: { uid, type: 'paste', severity: 'high', estimated_created_at: created } }
}

test('an item that the service mended is taken in by the next sweep exactly once', async () => {
  const { rig, config } = await aRig()
  rig.sandbox.addEvents(3)
  const uid = 'paste/x/mended'
  rig.sandbox.addRawItem(1042, { metadata: { severity: 'high' } })
  await rig.toEnd(brand)
  expect(uidsOf(await listed(config))).toEqual([null])
  const { code } = await tocsin('quarantine', 'replay', '--all', '--yes', ...config)
  expect(code).toBe(0)

  rig.sandbox.changeEvent('raw/1', { raw: itemOf(uid) })
  await rig.toEnd(brand, 'sweep')
  await rig.toEnd(brand, 'sweep')
  expect((await rig.records()).get(uid)?.items).toHaveLength(1)
  expect((await listed(config)).total).toBe(0)
  const { feeds } = await expectConservation(rig.ledger)
  expect(feeds['brand']).toMatchObject({ new: 4, quarantined: 1 })
})

test('an item that stays malformed comes back with the next sweep, and only with the first', async () => {
  const { rig, config } = await aRig()
  rig.sandbox.addRawItem(1042, { metadata: { severity: 'high' } })
  await rig.toEnd(brand)
  await rig.toEnd(brand, 'sweep')
  expect((await expectConservation(rig.ledger)).feeds['brand']).toMatchObject({ quarantined: 1 })
  const [before] = (await listed(config)).items
  await tocsin('quarantine', 'replay', String(before?.['id']), '--yes', ...config)
  expect((await listed(config)).total).toBe(0)
  await rig.toEnd(brand, 'sweep')
  await rig.toEnd(brand, 'sweep')
  expect((await listed(config)).items).toMatchObject([{ id: before?.['id'], uid: null }])
  const { feeds } = await expectConservation(rig.ledger)
  expect(feeds['brand']).toMatchObject({ quarantined: 2, duplicate: 2 })
})
