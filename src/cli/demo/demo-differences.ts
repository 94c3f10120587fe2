/**
 * Where the counters of the ledger, its records, what the catchers received and what the service showed
 * do not agree: each difference is an event or an item that is unaccounted for.
 */
import { pendingOf } from '../../ledger/accounting.ts'
import {
  deliveredBySink,
  deliveredItems,
  demoSinks,
  sumOf,
  type Difference,
  type Evidence,
} from './demo-evidence.ts'
import { amongMessages } from './demo-receipts.ts'

/** Those that there are; none where all is accounted for. */
export function findDifferences(evidence: Evidence): Difference[] {
  return [
    ...amongCounters(evidence),
    ...amongItems(evidence),
    ...amongEvents(evidence),
    ...demoSinks.flatMap((sink) => amongMessages(evidence, sink)),
  ].filter(({ count }) => count !== 0)
}

function amongCounters({ accounting: { feeds, sinks } }: Evidence): Difference[] {
  const unaccounted = (entry: { unaccounted: number }): number => Math.abs(entry.unaccounted)
  return [
    {
      count: sumOf(Object.values(feeds), unaccounted),
      what: 'fetched, but by the counters neither new nor duplicate nor quarantined',
    },
    {
      count: sumOf(Object.values(sinks), unaccounted),
      what: 'items that by the counters are neither pending nor ended',
    },
  ]
}

/** Counters of items against the records themselves. */
function amongItems(evidence: Evidence): Difference[] {
  const { accounting, pendingFound } = evidence
  const pendingCounted = (sink: string): number => {
    const account = accounting.sinks[sink]
    return account ? pendingOf(account) : 0
  }
  const counted = deliveredBySink(evidence)
  const items = deliveredItems(evidence)
  const found = (sink: string): number => items.filter((item) => item.sink === sink).length
  return [
    {
      count: sumOf(demoSinks, (sink) => Math.abs(pendingCounted(sink) - (pendingFound[sink] ?? 0))),
      what: 'pending items on which counters and records differ',
    },
    {
      count: sumOf(demoSinks, (sink) => Math.abs(counted[sink] - found(sink))),
      what: 'delivered items on which counters and records differ',
    },
  ]
}

/** Counters of events against the records, and these against what the service showed. */
function amongEvents(evidence: Evidence): Difference[] {
  const { accounting, baseline, records, shown, quarantinedUids } = evidence
  const newOf = ({ feeds }: typeof accounting): number => sumOf(Object.values(feeds), (f) => f.new)
  const sightings = records.flatMap((record) =>
    record.sightings.map(({ feed, atMs }) => ({ place: `${feed} ${record.recordId}`, atMs })),
  )
  const seen = sightings.filter(({ atMs }) => atMs >= baseline.atMs).length
  const taken = new Set(records.map(({ uid }) => uid))
  const isMissing = (uid: string): boolean => !taken.has(uid) && !quarantinedUids.has(uid)
  return [
    {
      count: Math.abs(newOf(accounting) - newOf(baseline.accounting) - seen),
      what: 'new events on which counters and records differ',
    },
    {
      count: sightings.length - new Set(sightings.map(({ place }) => place)).size,
      what: 'events that one feed took in as new twice',
    },
    {
      count: shown.filter(isMissing).length,
      what: 'events that the service showed and the ledger does not have',
    },
  ]
}
