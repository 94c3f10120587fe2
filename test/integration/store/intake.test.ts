import { describe, expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import {
  countQuarantined,
  listQuarantined,
  readQuarantined,
  openFeed,
} from '../../../src/store/feed-state.ts'
import { lookUpInLedger, type RoutedEvent } from '../../../src/store/intake.ts'
import type { Group } from '../../../src/store/pending-items.ts'
import { readPayload, readRecord } from '../../../src/store/records.ts'
import { areInhibited } from '../../../src/store/silences.ts'
import {
  expectConservation,
  pastThisMillisecond,
  redisForTests,
  routed,
  takeIn,
} from '../../support/ledger.ts'

const tests = redisForTests()
const dayMs = 86_400_000

test.each([
  ['an event', (ledger: AccountLedger) => ledger.key('pair', 'p')],
  ['the end', (ledger: AccountLedger) => ledger.key('records')],
])(
  'a commit that fails at %s takes nothing in for good: the next one takes all',
  async (_at, keyOf) => {
    const ledger = await tests.ledger()
    const pair = { id: 'p', source: 's' }
    const events = [1, 2, 3].map((n) => ({
      ...routed({ uid: `a/b/${n}` }),
      ...(n === 3 && { pair }),
    }))
    await tests.redis.lpush(keyOf(ledger), 'of another type')
    await expect(takeIn(ledger, events)).rejects.toThrow('WRONGTYPE')
    await tests.redis.del(keyOf(ledger))
    expect(await takeIn(ledger, events)).toMatchObject({ counts: { new: 3, duplicate: 0 } })
    expect(await tests.redis.zcard(ledger.key('due', 'soc'))).toBe(3)
    await expectConservation(ledger)
  },
)

test('a page is taken in once: its repeat makes duplicates and no items', async () => {
  const ledger = await tests.ledger()
  const page = ['1', '2', '1'].map((id) => routed({ uid: `a/b/${id}` }, ['soc', 'siem']))
  const first = await takeIn(ledger, page)
  const second = await takeIn(ledger, page)
  expect(first).toMatchObject({ counts: { fetched: 3, new: 2, duplicate: 1 } })
  expect(first.status === 'committed' && first.changes).toHaveLength(4)
  expect(first.status === 'committed' && first.newEvents.map(({ event }) => event.uid)).toEqual([
    'a/b/1',
    'a/b/2',
  ])
  expect(second).toMatchObject({
    counts: { fetched: 3, new: 0, duplicate: 3 },
    changes: [],
    newEvents: [],
  })
  const accounting = await expectConservation(ledger)
  expect(accounting.sinks['soc']).toMatchObject({ created: 2, pending: { queued: 2 } })
  expect(accounting.sinks['siem']).toMatchObject({ created: 2 })
})

test('a page goes in in pieces of 500 events, items and malformed ones, each behind a fence of its own', async () => {
  const ledger = await tests.ledger()
  let pages = 0
  const pieces = async (events: number, sinks: number, unread = 0): Promise<number> => {
    const feed = `feed-${(pages += 1)}`
    const to = Array.from({ length: sinks }, (_none, at) => `sink-${at}`)
    const shown = Array.from({ length: events }, (_none, at) =>
      routed({ uid: `${feed}/${at}` }, to),
    )
    const malformed = Array.from({ length: unread }, (_none, at) => {
      return { uid: null, problem: 'no event', raw: JSON.stringify({ feed, at }) }
    })
    const accepted = await takeIn(ledger, shown, { feed, malformed })
    expect(accepted).toMatchObject({
      counts: { fetched: events + unread, new: events, quarantined: unread },
    })
    return (await openFeed(ledger, feed, 1000)).sequence
  }
  expect(await pieces(250, 1)).toBe(1)
  expect(await pieces(251, 1)).toBe(2)
  expect(await pieces(0, 0, 500)).toBe(1)
  expect(await pieces(0, 0, 501)).toBe(2)
  expect(await pieces(100, 1, 300)).toBe(1)
  expect(await pieces(1, 500, 0)).toBe(1) // larger than a piece, and in one all the same
  expect(await pieces(2, 499, 0)).toBe(2)
})

test('the newest of a page is what was created last; without a time there is none', async () => {
  const ledger = await tests.ledger()
  const newest = async () => (await openFeed(ledger, 'brand', 1000)).newestMs
  await takeIn(ledger, [routed({ uid: 'a/b/1', createdAtMs: null })])
  expect(await newest()).toBeUndefined()
  await takeIn(
    ledger,
    [7, null, 9, 8].map((createdAtMs, at) => routed({ uid: `a/c/${at}`, createdAtMs })),
  )
  expect(await newest()).toBe(9)
})

test('what is dated ahead of now is counted, and no newest; the latest such date is kept', async () => {
  const ledger = await tests.ledger()
  const shown = [7, 12, 30, 10].map((createdAtMs) =>
    routed({ uid: `a/b/${createdAtMs}`, createdAtMs }),
  )
  expect(await takeIn(ledger, shown, { limitMs: 10 })).toMatchObject({
    counts: { new: 4, ahead: 2 },
  })
  const { nowMs: _now, ...first } = await openFeed(ledger, 'brand', 1000)
  expect(first).toMatchObject({
    newestMs: 10,
    aheadMs: 30,
    aheadAtMs: expect.any(Number) as number,
  })
  await takeIn(ledger, shown, { limitMs: 10, sequence: 1 })
  expect((await openFeed(ledger, 'brand', 1000)).aheadAtMs).toBe(first.aheadAtMs)
  const more = [...shown, routed({ uid: 'a/b/20', createdAtMs: 20 })]
  const again = await takeIn(ledger, more, { limitMs: 10, sequence: 2 })
  expect(again).toMatchObject({ counts: { duplicate: 4, ahead: 1 } })
  expect(await openFeed(ledger, 'brand', 1000)).toMatchObject({ newestMs: 10, aheadMs: 30 })
})

test('a page beyond now says nothing of whether the tail was read to its end', async () => {
  const ledger = await tests.ledger()
  const read = () => openFeed(ledger, 'brand', 1000)
  await takeIn(ledger, [], { isCaughtUp: true, requestedAtMs: 1_000 })
  await takeIn(ledger, [], { isBeyond: true, isCaughtUp: false, requestedAtMs: 2_000, sequence: 1 })
  expect(await read()).toMatchObject({ isEnded: true, lastCaughtUpMs: 1_000, lastSuccessMs: 2_000 })
  await takeIn(ledger, [], { isBeyond: true, isCaughtUp: true, requestedAtMs: 3_000, sequence: 2 })
  expect((await read()).lastCaughtUpMs).toBe(1_000)
})

test('a second feed that shows a known uid adds only destinations that have not had it', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['soc'])], { feed: 'brand' })
  const accepted = await takeIn(ledger, [routed({ uid: 'a/b/1' }, ['soc', 'siem'])], {
    feed: 'executives',
    labels: { team: 'vip' },
  })
  expect(accepted.status === 'committed' && accepted.changes.map(({ k }) => k)).toEqual(['siem'])
  const record = await readRecord(ledger, ledger.fingerprints.recordId('a/b/1'))
  expect(record?.sightings.map(({ feed }) => feed)).toEqual(['brand', 'executives'])
  expect(record?.items.map(({ sink }) => sink)).toEqual(['soc', 'siem'])
  await expectConservation(ledger)
})

test('two accounts share no marks', async () => {
  const keys = tests.keys()
  const [one, two] = [
    await tests.ledger({ keys, account: 'one' }),
    await tests.ledger({ keys, account: 'two' }),
  ]
  await takeIn(one, [routed({ uid: 'a/b/1' })])
  expect(await takeIn(two, [routed({ uid: 'a/b/1' })])).toMatchObject({ counts: { new: 1 } })
})

test('a higher severity is a new revision for every destination, a lower one is not', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'medium' })], { feed: 'one' })
  const raised = await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'critical' })], {
    feed: 'two',
  })
  const lower = await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'low' })], { feed: 'three' })
  expect(raised.status === 'committed' && raised.changes).toHaveLength(1)
  expect(lower.status === 'committed' && lower.changes).toHaveLength(0)
  const record = await readRecord(ledger, ledger.fingerprints.recordId('a/b/1'))
  expect(record?.items.map(({ severity }) => severity)).toEqual(['medium', 'critical'])
  expect(record?.items.map(({ raisedFrom }) => raisedFrom)).toEqual([undefined, 'medium'])
  expect(new Set(record?.items.map(({ id }) => id)).size).toBe(2)
  expect(record?.severity).toBe('critical')
})

test('a commit with an old fence changes nothing, nor one with a fence that Redis has lost', async () => {
  const ledger = await tests.ledger()
  const { sequence } = await openFeed(ledger, 'brand', 1000)
  await takeIn(ledger, [routed({ uid: 'a/b/1' })])
  const late = await takeIn(ledger, [routed({ uid: 'a/b/2' })], { sequence })
  expect(late.status).toBe('stale')
  expect((await takeIn(ledger, [routed({ uid: 'a/b/9' })], { sequence: 5 })).status).toBe('stale')
  const accounting = await expectConservation(ledger)
  expect(accounting.feeds['brand']?.fetched).toBe(1)
})

test('a commit that is replayed answers as the first time and counts once', async () => {
  const ledger = await tests.ledger()
  const replies: unknown[] = []
  const twice: AccountLedger = {
    ...ledger,
    async runJson<T>(script: string, ...args: (string | number)[]) {
      for (const _time of [1, 2]) replies.push(await ledger.run(script, ...args))
      return JSON.parse(String(replies[1])) as T
    },
  }
  expect(await takeIn(twice, [routed({ uid: 'a/b/1' })])).toMatchObject({ counts: { new: 1 } })
  expect(replies[1]).toBe(replies[0])
  const accounting = await expectConservation(ledger)
  expect(accounting.feeds['brand']).toMatchObject({ fetched: 1, new: 1 })
})

describe('a page that is too large for one commit', () => {
  const uids = Array.from({ length: 700 }, (_none, at) => `a/b/${at}`)
  const page = uids.map((uid) => routed({ uid }, ['soc', 'siem']))
  const walk = {
    fingerprint: 'f',
    body: {},
    cursor: 'after',
    reason: 'first',
    startedAtMs: 0,
  } as const
  const unreadable = { uid: null, problem: 'no uid', raw: '{}' }

  test('is taken in in pieces, and the cursor moves with the last', async () => {
    const ledger = await tests.ledger()
    const cursors: (string | undefined)[] = []
    const watched: AccountLedger = {
      ...ledger,
      async runJson<T>(script: string, ...args: (string | number)[]) {
        const answer = await ledger.runJson<T>(script, ...args)
        cursors.push((await openFeed(ledger, 'brand', dayMs)).scan?.cursor ?? undefined)
        return answer
      },
    }
    const accepted = await takeIn(watched, page, { scan: walk, malformed: [unreadable] })
    expect(cursors).toEqual([undefined, undefined, undefined, undefined, 'after'])
    expect(accepted).toMatchObject({
      status: 'committed',
      counts: { fetched: 701, new: 700, duplicate: 0, quarantined: 1 },
      isEnded: true,
    })
    if (accepted.status !== 'committed') return
    expect(accepted.newEvents.map(({ event }) => event.uid)).toEqual(uids)
    expect(accepted.changes).toHaveLength(1_400)
    const { unreadable: feedIsUnreadable, lastCaughtUpMs } = await openFeed(ledger, 'brand', dayMs)
    expect(feedIsUnreadable).toBeUndefined()
    expect(lastCaughtUpMs).toBeGreaterThan(0)
    await expectConservation(ledger)
  })

  test('that is known whole ends a walk that ends there; with something new in any piece it does not', async () => {
    const ledger = await tests.ledger()
    const asked = { isCaughtUp: false, endsWhenKnown: true }
    const fresh = [...page.slice(0, 3), routed({ uid: 'a/b/new' }), ...page.slice(3)]
    await takeIn(ledger, page)
    expect(await takeIn(ledger, page, { isCaughtUp: false })).toMatchObject({ isEnded: false })
    expect(await takeIn(ledger, fresh, asked)).toMatchObject({ isEnded: false })
    expect(await takeIn(ledger, fresh, asked)).toMatchObject({ isEnded: true })
  })

  test('where another replica goes on in the middle, what was taken in is told, and the cursor stays', async () => {
    const ledger = await tests.ledger()
    let pieces = 0
    const interrupted: AccountLedger = {
      ...ledger,
      async runJson<T>(script: string, ...args: (string | number)[]) {
        const answer = await ledger.runJson<T>(script, ...args)
        pieces += 1
        if (pieces === 2)
          await takeIn(ledger, page.slice(0, 1), { scan: { ...walk, cursor: 'other' } })
        return answer
      },
    }
    const accepted = await takeIn(interrupted, page, { scan: walk })
    expect(accepted).toMatchObject({ status: 'committed', isBrokenOff: true, isEnded: false })
    if (accepted.status !== 'committed') return
    const { length } = accepted.newEvents
    expect(accepted.counts.new).toBe(length)
    expect(length).toBeLessThan(700)
    expect((await openFeed(ledger, 'brand', dayMs)).scan?.cursor).toBe('other')
    expect(await takeIn(ledger, page, { scan: walk })).toMatchObject({
      counts: { new: 700 - length, duplicate: length },
    })
    await expectConservation(ledger)
  })
})

test('a newer configuration owns the cursor: an older one is told so', async () => {
  const ledger = await tests.ledger()
  const walk = {
    fingerprint: 'new',
    body: {},
    cursor: 'x',
    reason: 'first' as const,
    startedAtMs: 0,
  }
  await takeIn(ledger, [], { generation: 2, scan: walk })
  expect((await takeIn(ledger, [], { generation: 1 })).status).toBe('superseded')
  const same = await takeIn(ledger, [], { generation: 1, scan: walk })
  expect(same.status).toBe('committed')
  expect((await openFeed(ledger, 'brand', 1000)).generation).toBe(2)
})

test('what only a shadow route took is sent once a live route takes it to the same destination', async () => {
  const ledger = await tests.ledger()
  const live = routed({ uid: 'a/b/1' }, ['soc'])
  const shadow = { ...live, items: live.items.map((item) => ({ ...item, isShadow: true })) }
  await takeIn(ledger, [shadow], { feed: 'trial' })
  await takeIn(ledger, [live], { feed: 'brand' })
  await takeIn(ledger, [shadow, live], { feed: 'later' })
  const record = await readRecord(ledger, ledger.fingerprints.recordId('a/b/1'))
  expect(record?.items.map(({ state }) => state)).toEqual(['suppressed', 'queued'])
  await expectConservation(ledger)
})

test('whoever takes a page in hears what became of each item, and why where it ended at once', async () => {
  const ledger = await tests.ledger()
  const event = { ...routed({ uid: 'a/b/1' }, ['soc', 'siem']), wantsDetail: true }
  event.items[1]!.isShadow = true
  const accepted = await takeIn(ledger, [event])
  const id = ledger.fingerprints.recordId('a/b/1')
  const common = { sv: 'high', rk: 4 }
  expect(accepted.status === 'committed' && accepted.changes).toEqual([
    { ...common, ref: `i:${id}:0:soc`, k: 'soc', kind: 'detail' },
    { ...common, ref: `i:${id}:1:siem`, k: 'siem', kind: 'suppressed', why: 'shadow' },
  ])
})

/** On its way to people, where it waits for company. */
function grouped(severity: string, destinations: string[]): RoutedEvent {
  const plan = routed({ uid: 'a/b/1', severity }, destinations)
  const items = plan.items.map((item) => ({ ...item, group: groupAt(item.destination) }))
  return { ...plan, items }
}

function groupAt(destination: string): Group {
  const about = { destination, route: 'root', labels: {}, feed: null }
  return { id: `group-${destination}`, kind: 'group', waitMs: 60_000, isUrgent: false, about }
}

test('a raised event takes the place of the one that waits at its own destination, and of no other', async () => {
  const ledger = await tests.ledger()
  const first = await takeIn(ledger, [grouped('low', ['soc', 'ir'])], { feed: 'one' })
  expect(first).toMatchObject({ changes: [{ kind: 'group' }, { kind: 'group' }] })
  await takeIn(ledger, [grouped('high', ['soc'])], { feed: 'two' })
  const record = await readRecord(ledger, ledger.fingerprints.recordId('a/b/1'))
  const now = record?.items.map(({ destination, severity, state }) => [
    destination,
    severity,
    state,
  ])
  expect(now).toEqual([
    ['soc', 'low', 'suppressed'],
    ['ir', 'low', 'group'],
    ['soc', 'high', 'group'],
  ])
  const waiting = ['soc', 'ir'].map((sink) =>
    tests.redis.zcard(ledger.key('collect', `group-${sink}`)),
  )
  expect(await Promise.all(waiting)).toEqual([1, 1])
  await expectConservation(ledger)
})

test('what people closed stays closed, though another feed shows it as it was before', async () => {
  const ledger = await tests.ledger()
  const shown = (given: object, feed: string) =>
    takeIn(ledger, [routed({ uid: 'a/b/1', ...given })], { feed })
  const closed = async () =>
    (await readRecord(ledger, ledger.fingerprints.recordId('a/b/1')))?.closed
  await shown({}, 'brand')
  expect(await closed()).toBeUndefined()
  await shown({ ignoredAtMs: 5 }, 'brand')
  expect(await closed()).toBe('ignored')
  await shown({}, 'brand')
  expect(await closed()).toBe('ignored')
  await shown({}, 'second')
  await shown({ severity: 'critical' }, 'second')
  expect(await closed()).toBe('ignored')
  await shown({ remediatedAtMs: 5 }, 'third')
  expect(await closed()).toBe('remediated')
  await tests.redis.del(ledger.key('rec', ledger.fingerprints.recordId('a/b/1')))
  expect(await shown({ ignoredAtMs: 5 }, 'brand')).toMatchObject({ counts: { duplicate: 1 } })
  expect(await closed()).toBeUndefined() // what has ended does not begin again
})

test('what stood below a feed before it began is not told by it, however severe it becomes', async () => {
  const ledger = await tests.ledger()
  const below = (severity: string): RoutedEvent => ({
    ...routed({ uid: 'a/b/1', severity }),
    isBaseline: true,
  })
  expect(await takeIn(ledger, [below('low')])).toMatchObject({ counts: { baseline: 1 } })
  await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'medium' }, [])], { feed: 'other' })
  expect(await takeIn(ledger, [below('critical')])).toMatchObject({
    counts: { duplicate: 1, raised: 0 },
    changes: [],
  })
})

test('what stood below the start bound is new once the bound was moved back', async () => {
  const ledger = await tests.ledger()
  const event = routed({ uid: 'a/b/1' })
  await takeIn(ledger, [{ ...event, isBaseline: true }])
  const above = await takeIn(ledger, [event])
  expect(above).toMatchObject({ counts: { new: 1 }, changes: [{ k: 'soc' }] })
})

test('a known event whose severity cannot be read any more is not told again', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1', severity: 'low' })])
  const again = await takeIn(ledger, [
    routed({ uid: 'a/b/1', severity: 'unknown', unread: ['severity'] }),
    routed({ uid: 'a/b/2', severity: 'unknown', unread: ['severity', 'tags'] }),
  ])
  expect(again).toMatchObject({ counts: { duplicate: 1, raised: 0, new: 1 } })
  const records = await Promise.all(
    ['a/b/1', 'a/b/2'].map((uid) => readRecord(ledger, ledger.fingerprints.recordId(uid))),
  )
  expect(records[0]).toMatchObject({ severity: 'low', items: [{ severity: 'low' }] })
  expect(records[1]?.sightings[0]?.unread).toEqual(['severity', 'tags'])
})

test('a malformed item is quarantined once, and its entry closes when the uid parses', async () => {
  const ledger = await tests.ledger()
  const malformed = [{ uid: 'a/b/9', problem: 'metadata.severity: not a string', raw: '{"bad":1}' }]
  expect(await takeIn(ledger, [routed({ uid: 'a/b/1' })], { malformed })).toMatchObject({
    counts: { fetched: 2, new: 1, quarantined: 1 },
  })
  expect(await takeIn(ledger, [], { malformed })).toMatchObject({
    counts: { duplicate: 1, quarantined: 0 },
  })
  const entry = {
    feed: 'brand',
    atMs: expect.any(Number),
    problem: 'metadata.severity: not a string',
    raw: '{"bad":1}',
  }
  const id = ledger.fingerprints.recordId('a/b/9')
  const named = { id, account: 'main', uid: 'a/b/9' }
  expect(await listQuarantined(ledger)).toEqual([{ ...entry, ...named }])
  expect(await readQuarantined(ledger, id)).toEqual({ ...entry, ...named })
  expect(await countQuarantined(ledger)).toEqual({
    brand: 1,
  })
  await takeIn(ledger, [routed({ uid: 'a/b/9' })])
  expect(await tests.redis.keys(ledger.key('quarantine*'))).toEqual([])
  expect(await listQuarantined(ledger)).toEqual([])
  await expectConservation(ledger)
})

test('malformed items that look alike once masked are told apart by what is never stored, and cut', async () => {
  const ledger = await tests.ledger()
  const raw = 'text of 10'.padEnd(20_000, '.')
  const malformed = ['Pangolin-1', 'Pangolin-2'].map((identity) => {
    return { uid: null, problem: 'id: odd', raw, identity }
  })
  expect(await takeIn(ledger, [], { malformed })).toMatchObject({ counts: { quarantined: 2 } })
  expect(await takeIn(ledger, [], { malformed })).toMatchObject({ counts: { duplicate: 2 } })
  const kept = await tests.redis.hgetall(ledger.key('quarantine'))
  expect((await listQuarantined(ledger)).map((one) => one.raw.length)).toEqual([4_096, 4_096])
  expect(JSON.stringify(kept)).toContain('text of 10')
  expect(JSON.stringify(kept)).not.toContain('Pangolin')
  await expectConservation(ledger)
})

test('a payload keeps numbers, empty lists and unicode as they were', async () => {
  const ledger = await tests.ledger()
  const event = routed({
    uid: 'a/b/1',
    tags: [],
    identifiers: [{ id: 406_285_232_303, name: 'ünï' }],
  })
  await takeIn(ledger, [event])
  const payload = await readPayload(ledger, ledger.fingerprints.recordId('a/b/1'))
  expect(payload?.event).toEqual(event.event)
})

test('the quarantine keeps the newest 250 entries and nothing older than a history', async () => {
  const ledger = await tests.ledger()
  const malformed = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      uid: `a/b/${from + i}`,
      problem: 'odd',
      raw: `{"n":${from + i}}`,
    }))
  await takeIn(ledger, [], { malformed: malformed(0, 5) })
  const [oldest = ''] = await tests.redis.zrange(ledger.key('quarantine-ages'), '0', '0')
  await tests.redis.zadd(ledger.key('quarantine-ages'), 1, oldest)
  await takeIn(ledger, [], { malformed: malformed(5, 300) })
  const sizes = await Promise.all([
    tests.redis.hlen(ledger.key('quarantine')),
    tests.redis.zcard(ledger.key('quarantine-ages')),
  ])
  expect(sizes).toEqual([250, 250])
  expect(await tests.redis.hexists(ledger.key('quarantine'), oldest.split(' ')[0]!)).toBe(0)
  const accounting = await expectConservation(ledger)
  expect(accounting.feeds['brand']).toMatchObject({ quarantined: 305 })
})

test('an event inhibits others, not itself, from its commit on for the time of its rule', async () => {
  const ledger = await tests.ledger()
  const source = { ...routed({ uid: 'a/b/1' }), inhibits: [{ key: 'host', windowMs: 60_000 }] }
  const { nowMs } = await openFeed(ledger, 'brand', dayMs)
  await takeIn(ledger, [source])
  const [own, other] = ['a/b/1', 'a/b/2'].map((uid) => ledger.fingerprints.recordId(uid))
  const ask = (recordId: string, atMs: number) =>
    areInhibited(ledger, [{ recordId, key: 'host', windowMs: 60_000 }], atMs)
  expect(await ask(other!, nowMs)).toEqual([true])
  expect(await ask(own!, nowMs)).toEqual([false])
  expect(await ask(other!, nowMs + 3_600_000)).toEqual([false])
  const both = ['host', 'other'].map((key) => ({ recordId: other!, key, windowMs: 60_000 }))
  expect(await areInhibited(ledger, both.toReversed(), nowMs)).toEqual([false, true])
  expect(await areInhibited(ledger, [], nowMs)).toEqual([])
  await tests.redis.set(ledger.key('inhibit', 'other'), 'no set')
  await expect(areInhibited(ledger, both, nowMs)).rejects.toThrow('WRONGTYPE')
  const leftMs = await ledger.redis.pttl(ledger.key('inhibit', 'host'))
  expect(leftMs).toBeGreaterThan(50_000)
  expect(leftMs).toBeLessThanOrEqual(60_000)
})

test('of the events that inhibit others the last three are remembered, however many come', async () => {
  const ledger = await tests.ledger()
  const ids: string[] = []
  for (let n = 0; n < 6; n += 1) {
    await takeIn(ledger, [
      { ...routed({ uid: `a/b/${n}` }), inhibits: [{ key: 'host', windowMs: 60_000 }] },
    ])
    await pastThisMillisecond(tests.redis)
    ids.push(ledger.fingerprints.recordId(`a/b/${n}`))
  }
  expect(await tests.redis.zrange(ledger.key('inhibit', 'host'), '0', '-1')).toEqual(ids.slice(3))
})

test('a lookup tells what the ledger has of an event: fingerprint and record, one, or none', async () => {
  const ledger = await tests.ledger()
  await takeIn(ledger, [routed({ uid: 'a/b/1' }), routed({ uid: 'a/b/2' })])
  await tests.redis.del(ledger.key('rec', ledger.fingerprints.recordId('a/b/2')))
  expect(await lookUpInLedger(ledger, 'brand', ['a/b/1', 'a/b/2', 'a/b/3'])).toEqual([
    'taken',
    'unrecorded',
    'unknown',
  ])
})
