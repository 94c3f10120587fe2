import { describe, expect, test } from 'vitest'
import { accountingLine, computeFigures, messagesLine } from '../../../src/cli/demo/account.ts'
import type { Evidence, Receipt } from '../../../src/cli/demo/evidence.ts'
import type { SinkCounts } from '../../../src/store/accounts.ts'
import type { Item, LedgerRecord } from '../../../src/store/records.ts'

const beganMs = 1_000

function anItem(given: Partial<Item>): Item {
  return {
    index: 0,
    id: 'e1',
    sink: 'webhook',
    destination: 'webhook',
    severity: 'low',
    routes: [],
    sighting: 0,
    state: 'delivered',
    heldFor: undefined,
    rule: undefined,
    groupId: undefined,
    messageId: undefined,
    raisedFrom: undefined,
    atMs: undefined,
    attempts: 1,
    repeatRisks: 0,
    replays: 0,
    createdAtMs: 1_100,
    endedAtMs: 1_200,
    history: [],
    ...given,
  }
}

function aRecord(uid: string, items: Item[], seenAtMs = 1_100): LedgerRecord {
  const sighting = { feed: 'brand', atMs: seenAtMs, severity: 'low', labels: {}, decisions: [] }
  return {
    account: 'sandbox',
    recordId: uid,
    uid,
    type: 'paste',
    severity: 'low',
    firstSeenMs: seenAtMs,
    sightings: [sighting],
    items,
    closed: undefined,
    seenAgain: undefined,
  }
}

function aSink(given: Partial<SinkCounts>): SinkCounts {
  const outcomes = { delivered: 0, dead: 0, suppressed: 0, diverted: 0 }
  return { created: 0, replayed: 0, ...outcomes, pending: {}, unaccounted: 0, ...given }
}

/** A message that names the one item that it carries. */
function aReceipt(sink: Receipt['sink'], id: string, given: Partial<Receipt> = {}): Receipt {
  const told = { form: 'single', events: 1, isComplete: false } as const
  return { sink, id, items: [id], uids: [], mayBeRepeat: false, ...told, ...given }
}

/** An earlier run took in `old`; this one `one` and `two`, of which one item is still held. */
function someEvidence(given: Partial<Evidence> = {}): Evidence {
  const none = { quarantined: 0, baseline: 0, late: 0, ahead: 0, raised: 0, unaccounted: 0 }
  const feed = { fetched: 5, new: 3, duplicate: 2, ...none }
  return {
    baseline: {
      atMs: beganMs,
      accounting: {
        feeds: { brand: { ...feed, fetched: 1, new: 1, duplicate: 0 } },
        sinks: { webhook: aSink({ created: 1, delivered: 1 }) },
      },
    },
    accounting: {
      feeds: { brand: { ...feed, late: 1 } },
      sinks: {
        webhook: aSink({ created: 3, delivered: 3 }),
        slack: aSink({ created: 2, delivered: 1, pending: { held: 1 } }),
      },
    },
    pendingFound: { slack: 1 },
    records: [
      aRecord('old', [anItem({ id: 'e0', endedAtMs: 900 })], 800),
      aRecord('one', [anItem({ id: 'e1' }), anItem({ id: 'e1s', sink: 'slack' })]),
      aRecord('two', [anItem({ id: 'e2' }), anItem({ id: 'e2s', sink: 'slack', state: 'held' })]),
    ],
    quarantinedUids: new Set(),
    received: [aReceipt('slack', 'e1s'), aReceipt('webhook', 'e1'), aReceipt('webhook', 'e2')],
    shown: ['old', 'one', 'two'],
    ...given,
  }
}

test('the figures are those of this run, and what stands now', () => {
  expect(accountingLine(computeFigures(someEvidence()))).toBe(
    'fetched 4, new 2 (late 1), duplicate 2, quarantined 0, delivered slack 1 email 0 webhook 2, held 1, suppressed 0, dead 0, pending 0, unaccounted 0',
  )
})

test('what waits for anything but its full event is pending', () => {
  const evidence = someEvidence()
  const slack = aSink({ created: 2, delivered: 1, pending: { retrying: 1 } })
  const sinks = { ...evidence.accounting.sinks, slack }
  const account = computeFigures({ ...evidence, accounting: { ...evidence.accounting, sinks } })
  expect(account).toMatchObject({ held: 0, pending: 1, unaccounted: 0 })
})

describe('unaccounted for is', () => {
  const whole = someEvidence()
  const { feeds, sinks } = whole.accounting
  const [old, one, two] = whole.records as [LedgerRecord, LedgerRecord, LedgerRecord]

  test.each<[string, Partial<Evidence>]>([
    [
      'an event that was fetched and then is nowhere',
      {
        accounting: {
          sinks,
          feeds: { brand: { ...feeds['brand']!, fetched: 6, unaccounted: 1 } },
        },
      },
    ],
    [
      'an item that is neither pending nor ended',
      {
        accounting: { feeds, sinks: { ...sinks, email: aSink({ created: 1, unaccounted: 1 }) } },
      },
    ],
    ['a pending item that no record has', { pendingFound: {} }],
    [
      'a delivered item that no counter counted',
      {
        records: [
          old,
          one,
          { ...two, items: [...two.items, anItem({ id: 'e2m', sink: 'email' })] },
        ],
        received: [...whole.received, aReceipt('email', 'e2m')],
      },
    ],
    [
      'a delivered item that never arrived',
      { received: whole.received.filter(({ id }) => id !== 'e2') },
    ],
    [
      'an item that arrived at another sink than the ledger says',
      {
        accounting: { feeds, sinks: { ...sinks, slack: aSink({ pending: { held: 1 } }) } },
        records: [old, { ...one, items: [anItem({ id: 'e1' })] }, two],
      },
    ],
    ['an event that the service showed and nobody took', { shown: [...whole.shown, 'three'] }],
    [
      'an event that a feed took in twice',
      {
        accounting: {
          sinks,
          feeds: { brand: { ...feeds['brand']!, new: 4, duplicate: 1 } },
        },
        records: [old, one, { ...two, sightings: [...two.sightings, ...two.sightings] }],
      },
    ],
    [
      'a new event of which there is no record',
      {
        accounting: {
          sinks,
          feeds: { brand: { ...feeds['brand']!, new: 4, duplicate: 1 } },
        },
      },
    ],
  ])('%s', (_what, difference) => {
    const { unaccounted, differences } = computeFigures(someEvidence(difference))
    expect(differences).toHaveLength(1)
    expect(unaccounted).toBe(1)
  })
})

test('an event in quarantine is accounted for', () => {
  const shown = ['old', 'one', 'two', 'three']
  const evidence = someEvidence({ shown, quarantinedUids: new Set(['three']) })
  expect(computeFigures(evidence).unaccounted).toBe(0)
})

test('messages are counted by sink and form', () => {
  const { received } = someEvidence()
  const group = aReceipt('slack', 'b1', { form: 'group', items: [] })
  const account = computeFigures(someEvidence({ received: [...received, group, group] }))
  expect(messagesLine(account)).toBe('messages slack 3 (2 groups), email 0, webhook 2')
})

test('forms of messages are said in one order, whichever came first', () => {
  const of = (form: 'digest' | 'backlog') => aReceipt('email', form, { form, items: [] })
  const received = [of('digest'), of('backlog'), of('backlog')]
  const account = computeFigures(someEvidence({ received }))
  expect(messagesLine(account)).toContain('email 3 (2 first polls, 1 digest)')
})
