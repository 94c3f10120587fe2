/** Each question of the API against a walk over the records of the ledger. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { severityRank } from '../../../src/event.ts'
import { destinationLabels } from '../../../src/operator/recipients.ts'
import { markTerm } from '../../../src/sandbox/history/texts.ts'
import { reasonOf, stateOf } from '../../../src/store/item-states.ts'
import {
  deliveryId,
  type Item,
  type LedgerRecord,
  scanRecords,
} from '../../../src/store/records.ts'
import { askApi, groupOf, type Json, type PageRig, startPageRig } from '../../support/page-rig.ts'

let rig: PageRig
/** All that both ledgers have. */
let walked: { record: LedgerRecord; item: Item }[]
let records: LedgerRecord[]
let labels: ReadonlyMap<string, string>

const login = 'jo.smith@main.example'
const machine = 'DESKTOP-7Q2'

beforeAll(async () => {
  rig = await startPageRig()
  for (const account of ['main', 'other'] as const) {
    rig.add(account, 4, { type: 'stealer_log', severity: 'critical', ...stolenFrom(login) })
    rig.add(account, 3, { type: 'leaked_credential', severity: 'high' })
    for (const type of ['chat_message', 'forum_post', 'paste', 'service', 'lookalike']) {
      rig.add(account, 2, { type, severity: 'medium' })
    }
    rig.add(account, 2, { type: 'ransomleak', severity: 'low' })
    rig.add(account, 2, { type: 'ransomleak', severity: 'urgent' })
    rig.sandbox.addRawItem(groupOf[account], 'no item')
  }
  await rig.settled()
  labels = destinationLabels(rig.config)
  await walk()
})
afterAll(() => rig?.stop())

function stolenFrom(user: string) {
  const data = { victim_information: { hardware: [`HOSTNAME: ${machine}`] } }
  return { data, highlights: { 'credentials.username': [markTerm(user)] } }
}

async function walk(): Promise<void> {
  records = []
  for (const account of ['main', 'other'] as const) {
    for await (const record of scanRecords(rig.ledger(account))) records.push(record)
  }
  walked = records.flatMap((record) => record.items.map((item) => ({ record, item })))
}

const viewOf = { '/messages': '/told', '/items': '/not-told', '/events': '/search' }

/** Asks page after page, as `next` says; calls `between` after each. */
async function askAll(
  path: string,
  of: string,
  between = () => Promise.resolve(),
): Promise<Json[]> {
  const all: Json[] = []
  for (let next: string | null = path, pages = 0; next !== null; pages += 1) {
    const { json, status } = await askApi(rig, next)
    expect(status).toBe(200)
    expect(pages).toBeLessThan(100)
    all.push(...json[of])
    next = json.next
    for (const [ofApi, view] of Object.entries(viewOf)) next = next?.replace(view, ofApi) ?? null
    await between()
  }
  return all
}

type Sums = Record<string, Record<string, number>>

function sumBy(rows: readonly (readonly [name: string | undefined, what: string])[]): Sums {
  const sums: Sums = {}
  for (const [name, what] of rows) {
    if (name === undefined) continue
    sums[name] ??= {}
    sums[name][what] = (sums[name][what] ?? 0) + 1
  }
  return sums
}

const outcomes: Readonly<Record<string, string>> = {
  delivered: 'told',
  dead: 'dead',
  discarded: 'dead',
  suppressed: 'suppressed',
  diverted: 'diverted',
}

const knownSeverity = (word: string): string =>
  ['critical', 'high', 'medium', 'low', 'info'].includes(word) ? word : 'unknown'

/** What each row of a report counts: of an event, and of an item. */
const groupings = {
  day: {
    event: ({ firstSeenMs }) => new Date(firstSeenMs).toISOString().slice(0, 10),
    item: ({ item }) => new Date(item.endedAtMs!).toISOString().slice(0, 10),
  },
  account: { event: ({ account }) => account, item: ({ record }) => record.account },
  severity: {
    event: ({ severity }) => knownSeverity(severity),
    item: ({ item }) => knownSeverity(item.severity),
  },
  feed: { event: ({ sightings }) => sightings[0]!.feed, item: () => undefined },
  sink: { event: () => undefined, item: ({ item }) => item.sink },
  destination: {
    event: () => undefined,
    item: ({ item }) => labels.get(item.destination) ?? item.destination,
  },
  reason: {
    event: () => undefined,
    item: ({ item }) => (item.state === 'delivered' ? undefined : ruleKindOf(item)),
  },
} satisfies Record<
  string,
  {
    event: (record: LedgerRecord) => string | undefined
    item: (one: { record: LedgerRecord; item: Item }) => string | undefined
  }
>

function ruleKindOf(item: Item): string {
  return item.state === 'diverted' ? 'fallback' : (reasonOf(item) ?? '')
}

describe('a report', () => {
  test.each(Object.entries(groupings))('by %s counts what the records say', async (by, of) => {
    const wanted = sumBy([
      ...records.map((record) => [of.event(record), 'seen'] as const),
      ...walked
        .filter(({ item }) => outcomes[item.state] !== undefined)
        .map((one) => [of.item(one), outcomes[one.item.state]!] as const),
    ])
    const { json } = await askApi(rig, `/report?by=${by}`)
    const counted = Object.fromEntries(
      json.rows.map(({ [by]: name, messages: _messages, ...row }: Record<string, unknown>) => [
        name,
        Object.fromEntries(
          Object.entries(row).filter(([, count]) => typeof count === 'number' && count > 0),
        ),
      ]),
    )
    expect(counted).toEqual(wanted)
    expect(json.total).toMatchObject({ seen: records.length })
  })

  test('of one account counts that alone, and so does the status', async () => {
    const { json } = await askApi(rig, '/report?by=severity&account=main')
    const { json: status } = await askApi(rig, '/status?account=main')
    const own = records.filter(({ account }) => account === 'main').length
    expect([json.total.seen, status.last_24h.seen]).toEqual([own, own])
  })
})

test('the status adds up hour by hour, loses nothing, and names the sinks that are down', async () => {
  const { json } = await askApi(rig, '/status')
  const hours = json.hours.flatMap(({ at: _at, ...counts }: Json) => Object.values(counts))
  expect(hours.reduce((sum: number, count: number) => sum + count)).toBe(records.length)
  expect(json.last_24h).toMatchObject({ seen: records.length, lost: 0 })
  const subjects = json.findings.map((one: { subject: string }) => one.subject)
  expect(subjects).toEqual(expect.arrayContaining(['stray', 'relay', 'brand', 'rival']))
})

test('figures of what was told go by whole hours where the period is of two days, else by days', async () => {
  const hourMs = 3_600_000
  const before = new Date(Math.floor(Date.now() / hourMs) * hourMs - 3 * hourMs).toISOString()
  const figures = async (query: string) => (await askApi(rig, `/messages?${query}`)).json.totals
  const all = await figures('since=7d')
  expect(all).toMatchObject({ whole: 'day', messages: expect.any(Number) })
  expect(await figures('since=40h')).toEqual({ ...all, whole: 'hour' })
  const [day, hour] = [`since=40h`, `since=40h&until=${before}`]
  expect((await figures(day)).messages).toBeGreaterThan(0)
  expect(await figures(hour)).toEqual({ messages: 0, events: 0, whole: 'hour' })
  expect((await askApi(rig, '/messages?severity=high')).json.totals).toBeNull()
})

test('what was not told is grouped by rule where nothing but the period and account is asked', async () => {
  const groups = async (query: string) => (await askApi(rig, `/items?${query}`)).json.groups
  expect((await groups('since=7d&account=main')).length).toBeGreaterThan(0)
  for (const query of ['state=dead', 'sink=stray', 'severity=high', 'reason=silence']) {
    expect(await groups(query)).toEqual([])
  }
})

/** Messages as the items have them: id → what the list says of it. */
function messagesWalked(): Map<string, { record: LedgerRecord; item: Item }[]> {
  const ended = walked.filter(({ item }) => ['delivered', 'dead'].includes(item.state))
  return Map.groupBy(ended, ({ record, item }) =>
    item.messageId === undefined
      ? `${record.account} ${record.recordId} ${item.index}`
      : `${deliveryId(item)} ${item.state}`,
  )
}

function describeWalked(members: readonly { record: LedgerRecord; item: Item }[]) {
  const [first] = members
  const ranks = members.map(({ item }) => severityRank(item.severity))
  return [
    labels.get(first!.item.destination),
    first!.item.state,
    members.length,
    Math.max(...ranks),
  ].join(' ')
}

function describeRow(row: {
  recipient: string
  outcome: string
  events: number
  severity: string
}) {
  return [row.recipient, row.outcome, row.events, severityRank(row.severity)].join(' ')
}

describe('the messages', () => {
  test('are those of the records, each on one page, in order', async () => {
    const rows = await askAll('/messages?limit=3', 'messages')
    const wanted = [...messagesWalked().values()].map(describeWalked)
    expect(rows.map(describeRow).toSorted()).toEqual(wanted.toSorted())
    const times: string[] = rows.map(({ at }) => at)
    expect(times).toEqual(times.toSorted().toReversed())
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
  })

  test.each([
    ['sink=oncall', ({ item }) => item.sink === 'oncall'],
    ['recipient=bob@example.com', ({ item }) => labels.get(item.destination) === 'bob@example.com'],
    ['severity=critical', ({ item }) => severityRank(item.severity) >= severityRank('critical')],
    ['state=dead', ({ item }) => item.state === 'dead'],
    ['account=other', ({ record }) => record.account === 'other'],
  ] as [string, (one: { record: LedgerRecord; item: Item }) => boolean][])(
    'with %s are those that fit',
    async (filter, isWanted) => {
      const rows = await askAll(`/messages?${filter}&limit=5`, 'messages')
      // machines get batches of both accounts; what they hold of one is told
      const groups = [...messagesWalked().values()]
      const wanted = groups.filter((members) => members.some(isWanted))
      expect(rows.length).toBe(wanted.length)
      expect(rows.length).toBeGreaterThan(0)
    },
  )
})

describe('an event', () => {
  test('tells its way in order, its destinations, and what leads to its messages', async () => {
    for (const record of records) {
      const { json } = await askApi(rig, `/events/${record.account}/${record.recordId}`)
      expect(json).toMatchObject({ uid: record.uid, severity: record.severity })
      const times = json.timeline.map(({ at }: { at: string }) => at)
      expect(times).toEqual(times.toSorted())
      const steps = json.timeline.map(({ what }: { what: string }) => what)
      expect(steps.slice(0, 1)).toEqual(['created'])
      expect(steps).toEqual(expect.arrayContaining(['fetched', 'taken in and routed']))
      const tries = record.items.reduce((sum, { history }) => sum + history.length, 0)
      expect(steps.filter((step: string) => step.startsWith('attempt')).length).toBe(tries)
      expect(json.destinations).toEqual(
        record.items.map((item) =>
          expect.objectContaining({ sink: item.sink, state: stateOf(item) }),
        ),
      )
      expect(json.routes.map(({ path }: { path: string[] }) => path.at(-1))).toEqual(
        record.sightings[0]!.decisions.map(({ route }) => route),
      )
    }
  })

  test('leads to the one before it with the same login and host, and counts them', async () => {
    for (const kind of ['login', 'host']) {
      const chain = records
        .filter(({ account, type }) => account === 'main' && type === 'stealer_log')
        .toSorted((one, other) => other.seenBefore.length - one.seenBefore.length)
      const counts = await Promise.all(
        chain.map(async ({ recordId }): Promise<number> => {
          const { json } = await askApi(rig, `/events/main/${recordId}`)
          const before = json.seen_before.find((one: { kind: string }) => one.kind === kind)
          if (before === undefined) return 0
          return before.count
        }),
      )
      expect(new Set(counts)).toEqual(new Set([0, 1, 2, 3]))
    }
  })
})

describe('what was not told', () => {
  const kept = () =>
    walked.filter(({ item }) => ['dead', 'suppressed', 'diverted'].includes(item.state))
  const ruleOf = ({ heldFor, rule, routes }: Item) => (heldFor === 'shadow' ? routes[0] : rule)

  test('is each item that ended so, on one page, with its rule', async () => {
    const rows = await askAll('/items?limit=3', 'items')
    const wanted = kept().map(
      ({ record, item }) => `${record.uid} ${item.sink} ${item.state} ${ruleOf(item) ?? null}`,
    )
    expect(
      rows.map(({ uid, sink, state, rule }) => `${uid} ${sink} ${state} ${rule}`).toSorted(),
    ).toEqual(wanted.toSorted())
  })

  test('is grouped by rule, and each group leads to its items alone', async () => {
    const { json } = await askApi(rig, '/items')
    const sums = sumBy([
      ...kept().map(({ item }) => {
        const kind = ruleKindOf(item)
        const isRuled = ['silence', 'mute', 'shadow'].includes(kind)
        return [isRuled ? `${kind} ${ruleOf(item)}` : `${kind} null`, 'total'] as const
      }),
      ['malformed null', 'total'],
      ['malformed null', 'total'],
    ])
    const groups = json.groups.map((one: { reason: string; rule: string; total: number }) => [
      `${one.reason} ${one.rule}`,
      { total: one.total },
    ])
    expect(Object.fromEntries(groups)).toEqual(sums)
    for (const { url, total } of json.groups) {
      const { json: group } = await askApi(rig, url.replace('/not-told', '/items'))
      expect({ url, shown: group.items.length }).toEqual({ url, shown: total })
    }
  })

  test.each(['dead', 'quarantined', 'suppressed', 'diverted', 'held'])(
    'with state=%s is of that state alone',
    async (state) => {
      const { json } = await askApi(rig, `/items?state=${state}`)
      const wanted = kept().filter(({ item }) => item.state === state).length
      expect(json.items.length).toBe(state === 'quarantined' ? 2 : wanted)
      expect(new Set(json.items.map((one: { state: string }) => one.state)).size).toBeLessThan(2)
    },
  )
})

test('the rules count what each route took, and what a silence hid', async () => {
  const { json } = await askApi(rig, '/rules')
  for (const { path, name, events_7d: count, never } of json.tree) {
    const isBelow = (one: { path: string[] }): boolean =>
      path.every((step: string, at: number) => one.path[at] === step)
    const taken = records.filter(({ sightings }) =>
      sightings.some(({ decisions }) => decisions.some(isBelow)),
    )
    expect({ name, count, never }).toEqual({ name, count: taken.length, never: taken.length === 0 })
  }
  const hidden = walked.filter(({ item }) => item.heldFor === 'silence').length
  expect(json.silences).toMatchObject([{ hidden, owner: 'jo' }])
  expect(json.configuration.text).not.toContain('fw_main')
})

test('the tenants and lists name both accounts, their feeds, and what waits', async () => {
  const [tenants, accounts, feeds, sinks] = await Promise.all(
    ['/tenants', '/accounts', '/feeds', '/sinks'].map((path) => askApi(rig, path)),
  )
  const dead = walked.filter(
    ({ record, item }) => record.account === 'main' && item.state === 'dead',
  )
  const row = tenants!.json.rows.find((one: { account: string }) => one.account === 'main')
  expect(row).toMatchObject({ dead: dead.length, pending: 2, feeds: 1, key: 'ok' })
  expect(accounts!.json.map((one: { account: string }) => one.account)).toEqual(['main', 'other'])
  expect(feeds!.json.map((one: { feed: string }) => one.feed)).toEqual(['brand', 'rival'])
  expect(sinks!.json.map((one: { sink: string }) => one.sink)).toEqual(
    rig.config.sinks.map(({ name }) => name),
  )
})

test('the pages of tenants have each once', async () => {
  const rows = await askAll('/tenants?limit=1', 'rows')
  const names: string[] = rows.map(({ account }) => account)
  expect(names.toSorted()).toEqual(['main', 'other'])
})

describe('a search', () => {
  const uidsOf = (results: { uid: string }[]): string[] => results.map(({ uid }) => uid).toSorted()

  test.each([
    ['uid', () => records[3]!.uid, () => [records[3]!.uid]],
    ['identifier', () => 'OTHER.example', () => ofAccount('other')],
    ['login', () => login, () => stolen('main')],
    ['host', () => machine.toLowerCase(), () => stolen('main')],
    ['defanged words', () => 'main[.]example', () => ofAccount('main')],
    ['nothing known', () => 'nowhere.test', () => []],
  ])('for a %s finds each event of it, once', async (what, q, wanted) => {
    const account = what === 'identifier' ? 'other' : 'main'
    const of = records.find(({ uid }) => uid === q())?.account ?? account
    const address = `/events?q=${encodeURIComponent(q())}&limit=2&account=${of}`
    // by the index alone, too: words would find some of them
    const ways = ['identifier', 'login', 'host'].includes(what) ? ['any', what] : ['any']
    for (const by of ways) {
      expect(uidsOf(await askAll(`${address}&by=${by}`, 'results'))).toEqual(wanted())
    }
  })

  test('goes on where it was while new events come', async () => {
    const before = ofAccount('main')
    let added = 0
    const found = await askAll(
      '/events?q=main.example&by=identifier&account=main&limit=4',
      'results',
      async () => {
        if ((added += 1) > 3) return
        rig.add('main', 2, { type: 'ransomleak', severity: 'low' })
        await rig.settled()
      },
    )
    expect(uidsOf(found)).toEqual(before)
    await walk()
  })

  function ofAccount(account: string): string[] {
    return uidsOf(records.filter((one) => one.account === account))
  }

  function stolen(account: string): string[] {
    return uidsOf(records.filter((one) => one.account === account && one.type === 'stealer_log'))
  }
})

test('whoever asks again with the tag of the answer is told that nothing has changed', async () => {
  const { headers } = await askApi(rig, '/silences')
  const again = await askApi(rig, '/silences', { headers: { 'if-none-match': headers.etag! } })
  expect([again.status, again.text]).toEqual([304, ''])
})
