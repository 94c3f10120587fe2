/** The demo's account of one run: events fetched, items delivered, and whatever does not agree. */
import { pendingOf, type FeedAccount, type SinkAccount } from '../../ledger/accounting.ts'
import { findDifferences } from './demo-differences.ts'
import { deliveredBySink, demoSinks, sumOf, type DemoSink, type Evidence } from './demo-evidence.ts'

/** Of this run, except for `held` and `pending`: items that stand now. */
export interface DemoFigures {
  fetched: number
  new: number
  duplicate: number
  quarantined: number
  delivered: Record<DemoSink, number>
  held: number
  suppressed: number
  dead: number
  pending: number
  unaccounted: number
  /** What is unaccounted for, one phrase each. */
  differences: string[]
}

export function drawAccount(evidence: Evidence): DemoFigures {
  const { accounting, baseline } = evidence
  const feeds = (count: (feed: FeedAccount) => number): number =>
    sumOf(Object.values(accounting.feeds), count) -
    sumOf(Object.values(baseline.accounting.feeds), count)
  const standing = (count: (sink: SinkAccount) => number): number =>
    sumOf(Object.values(accounting.sinks), count)
  const ended = (count: (sink: SinkAccount) => number): number =>
    standing(count) - sumOf(Object.values(baseline.accounting.sinks), count)
  const held = standing(({ pending }) => pending['held'] ?? 0)
  const differences = findDifferences(evidence)
  return {
    fetched: feeds((feed) => feed.fetched),
    new: feeds((feed) => feed.new),
    duplicate: feeds((feed) => feed.duplicate),
    quarantined: feeds((feed) => feed.quarantined),
    delivered: deliveredBySink(evidence),
    held,
    suppressed: ended((sink) => sink.suppressed),
    dead: ended((sink) => sink.dead),
    pending: standing(pendingOf) - held,
    unaccounted: sumOf(differences, ({ count }) => count),
    differences: differences.map(({ count, what }) => `${count} ${what}`),
  }
}

export function accountingLine(figures: DemoFigures): string {
  const word = (name: Exclude<keyof DemoFigures, 'delivered' | 'differences'>): string =>
    `${name} ${figures[name]}`
  const delivered = demoSinks.map((sink) => `${sink} ${figures.delivered[sink]}`).join(' ')
  return [
    ...(['fetched', 'new', 'duplicate', 'quarantined'] as const).map(word),
    `delivered ${delivered}`,
    ...(['held', 'suppressed', 'dead', 'pending', 'unaccounted'] as const).map(word),
  ].join(', ')
}
