/** The demo's account of one run: events fetched, items delivered, and whatever does not agree. */
import { pendingOf, type FeedAccount, type SinkAccount } from '../../ledger/accounting.ts'
import type { MessageForm } from './demo-summary.ts'
import { findDifferences } from './demo-differences.ts'
import { deliveredBySink, demoSinks, sumOf, type DemoSink, type Evidence } from './demo-evidence.ts'

/** Of this run, except for `held` and `pending`: items that stand now. */
export interface DemoFigures {
  fetched: number
  new: number
  /** Of the new ones: found by a sweep, because they arrived late. */
  late: number
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
  /** By sink and form, those that arrived. */
  messages: Record<DemoSink, Partial<Record<MessageForm, number>>>
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
    late: feeds((feed) => feed.late),
    duplicate: feeds((feed) => feed.duplicate),
    quarantined: feeds((feed) => feed.quarantined),
    delivered: deliveredBySink(evidence),
    held,
    suppressed: ended((sink) => sink.suppressed),
    dead: ended((sink) => sink.dead),
    pending: standing(pendingOf) - held,
    unaccounted: sumOf(differences, ({ count }) => count),
    differences: differences.map(({ count, what }) => `${count} ${what}`),
    messages: messagesBySink(evidence),
  }
}

export function accountingLine(figures: DemoFigures): string {
  const word = (
    name: Exclude<keyof DemoFigures, 'delivered' | 'differences' | 'messages'>,
  ): string => `${name} ${figures[name]}`
  const delivered = demoSinks.map((sink) => `${sink} ${figures.delivered[sink]}`).join(' ')
  return [
    word('fetched'),
    `${word('new')} (${word('late')})`,
    ...(['duplicate', 'quarantined'] as const).map(word),
    `delivered ${delivered}`,
    ...(['held', 'suppressed', 'dead', 'pending', 'unaccounted'] as const).map(word),
  ].join(', ')
}

/** "messages slack 19 (4 groups, 3 first polls), email 3 (1 digest), webhook 25 (20 batches)". */
export function messagesLine({ messages }: DemoFigures): string {
  const sinks = demoSinks.map((sink) => {
    const counts = Object.entries(messages[sink]) as [MessageForm, number][]
    const told = counts
      .filter(([form]) => form !== 'single')
      .map(([form, count]) => `${count} ${formWords[form][count === 1 ? 0 : 1]}`)
    const total = sumOf(counts, ([, count]) => count)
    return `${sink} ${total}${told.length > 0 ? ` (${told.join(', ')})` : ''}`
  })
  return `messages ${sinks.join(', ')}`
}

const formWords: Record<MessageForm, [one: string, several: string]> = {
  single: ['single', 'singles'],
  batch: ['batch', 'batches'],
  group: ['group', 'groups'],
  digest: ['digest', 'digests'],
  backlog: ['first poll', 'first polls'],
  held: ['held', 'held'],
  storm: ['storm', 'storms'],
}

function messagesBySink({ received }: Evidence): DemoFigures['messages'] {
  const messages: DemoFigures['messages'] = { slack: {}, email: {}, webhook: {} }
  for (const { sink, form } of received) messages[sink][form] = (messages[sink][form] ?? 0) + 1
  return messages
}
