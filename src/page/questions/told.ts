/** What was told to whom: a row for each message, newest first. */
import { z } from 'zod'
import {
  type CountSpan,
  type DatedCount,
  type Outcome,
  sinkOfDestination,
} from '../../store/history/dated-counts.ts'
import { addCounts, isForPeopleIn } from '../../operator/reports/report.ts'
import {
  createReport,
  type Grouping,
  type Report,
  type ReportRow,
} from '../../store/history/report.ts'
import type { Ending } from '../../store/history/endings.ts'
import type { LedgerRecord } from '../../store/records.ts'
import { type Asker, isHiddenRecord, isRestricted } from '../asker.ts'
import { choicesOf, destinationsOf, readRecordsOf, refuseCursor, toFilters } from '../listing.ts'
import { type AskedPeriod, field, listFields, question, readPeriod } from '../question.ts'
import { addressOf, eventUrl, messageUrl } from '../output/urls.ts'
import { toIso } from './event.ts'
import { listEndings } from '../../store/history/ending-list.ts'

const toldStates = ['delivered', 'dead'] as const

export const toldQuery = z.object({
  ...listFields,
  state: field.oneOf(toldStates, 'Delivered, or given up.'),
  cursor: field.cursor,
  limit: field.limit,
})

export type ToldQuery = z.output<typeof toldQuery>

/** Entries that one page reads: some 100 ms. */
export const scanAtMost = 5_000

/** A page of messages alone, and where the next one begins. */
export async function readMessages(
  asker: Asker,
  query: ToldQuery,
): Promise<{ messages: ToldMessage[]; cursor: string | undefined }> {
  const period = readPeriod(query, asker)
  const { messages, next } = await findMessages(asker, query, period)
  return { messages, cursor: next }
}

export const messagesQuestion = question({
  path: '/messages',
  summary:
    'messages that were delivered or given up, newest first, with totals by day and recipient',
  query: toldQuery,
  async ask(asker, query) {
    const { labels } = asker
    const period = readPeriod(query, asker)
    const found = await findMessages(asker, query, period)
    const { cursor: _cursor, limit: _limit, ...asked } = query
    const counts = await countTold(asker, { ...asked, ...period })
    const { days = [], recipients = [], delays = [] } = counts ?? {}
    return {
      filters: toFilters(query),
      choices: choicesOf(asker, toldStates),
      totals: counts && {
        messages: days.reduce((sum, { messages }) => sum + messages, 0),
        events: days.reduce((sum, { told }) => sum + told, 0),
        whole: counts.by,
      },
      by_day: days,
      by_recipient: recipients
        .map((row) => ({ ...row, name: labels.get(row.name) ?? row.name }))
        .map((row) => ({ ...row, url: addressOf('/told', { ...asked, recipient: row.name }) }))
        .toSorted((one, other) => other.told - one.told)
        .slice(0, 20),
      delays,
      messages: found.messages,
      next: found.next === undefined ? null : addressOf('/told', { ...query, cursor: found.next }),
      searched_back_to: found.scannedToMs === undefined ? null : toIso(found.scannedToMs),
      csv_url: addressOf('/told.csv', asked),
    }
  },
})

export type ToldMessage = ReturnType<typeof describeMessage>

interface FoundMessages {
  messages: ToldMessage[]
  next: string | undefined
  scannedToMs: number | undefined
}

async function findMessages(
  asker: Asker,
  query: ToldQuery,
  { fromMs, toMs }: AskedPeriod,
): Promise<FoundMessages> {
  const { ledgers } = asker
  const { sink, recipient, severity, state, limit, cursor } = query
  const filter = {
    fromMs,
    toMs,
    outcomes: new Set<Outcome>(state ? [state] : toldStates),
    sink,
    destinations: destinationsOf(asker, recipient),
    leastSeverity: severity,
    isOwn: isRestricted(asker) ? false : undefined,
  }
  const { endings, next, scannedToMs } = await refuseCursor(() =>
    listEndings(ledgers, filter, { limit, before: cursor, scanAtMost }),
  )
  const firsts = await readRecordsOf(
    ledgers,
    endings.map(({ items: [first] }) => first),
  )
  const messages = endings.map((ending, at) => {
    const record = firsts[at]
    return describeMessage(
      asker,
      ending,
      record && !isHiddenRecord(asker, record) ? record : undefined,
    )
  })
  return { messages, next, scannedToMs: messages.length < limit ? scannedToMs : undefined }
}

function describeMessage({ labels }: Asker, ending: Ending, record: LedgerRecord | undefined) {
  const { atMs, account, sink, destination, severity, items, outcome, messageId } = ending
  const single = record && eventUrl(record)
  return {
    id: messageId ?? record?.items[items[0]?.index ?? 0]?.id ?? `${account}/${ending.id}`,
    at: toIso(atMs),
    account,
    sink,
    recipient: labels.get(destination) ?? destination,
    severity,
    title: record?.title ?? null,
    more: items.length - 1,
    events: items.length,
    outcome: outcome === 'delivered' ? 'delivered' : 'dead',
    attempts: ending.attempts,
    delay_s: ending.toldAfterMs === undefined ? null : ending.toldAfterMs / 1000,
    url: messageId === undefined ? (single ?? '') : messageUrl(messageId, atMs),
  }
}

export interface ToldCount {
  name: string
  told: number
  messages: number
}

interface ToldCounts {
  by: CountSpan['by']
  days: ToldCount[]
  /** By the id of a destination. */
  recipients: ToldCount[]
  /** How soon people were told, by severity. */
  delays: ReturnType<typeof toDelay>
}

/**
 * Counts of many days are some hundred thousand: they are read once for all sums. null: the query
 * narrows by what nobody counts.
 */
async function countTold(
  asker: Asker,
  { fromMs, toMs, ...query }: AskedPeriod & Omit<ToldQuery, 'cursor' | 'limit'>,
): Promise<ToldCounts | null> {
  const { sink, recipient, severity, state } = query
  if ([severity, state].some((one) => one !== undefined)) return null
  const { config, ledgers, nowMs } = asker
  const meant = destinationsOf(asker, recipient)
  const isMeant = (one: DatedCount): boolean =>
    'destination' in one &&
    (meant?.has(one.destination) ?? true) &&
    (sink === undefined || sinkOfDestination(one.destination) === sink)
  const isForPeople = isForPeopleIn(config)
  const reportBy = (by: Grouping): Report => createReport({ by, isForPeople })
  const [days, recipients, severities] = [
    reportBy('day'),
    reportBy('destination'),
    reportBy('severity'),
  ]
  const add: Report['add'] = (counts) => {
    const narrowed = counts.filter(isMeant)
    for (const report of [days, recipients, severities]) report.add(narrowed)
  }
  const by = nowMs - fromMs < hoursKeptMs ? 'hour' : 'day'
  await addCounts({ add }, ledgers, { by, fromMs, toMs })
  return {
    by,
    days: days.rows().map(toCount),
    recipients: recipients.rows().map(toCount),
    delays: severities.rows().flatMap(toDelay),
  }
}

/** Counts of whole hours are kept for two days, those of whole days as long as the history. */
const hoursKeptMs = 47 * 3_600_000

function toCount({ name, told, messages }: ReportRow): ToldCount {
  return { name, told, messages }
}

function toDelay({ name, toPeople }: ReportRow) {
  if (!toPeople) return []
  const bound = (seconds: number): number | null => (seconds === Infinity ? null : seconds)
  const { events, p50S, p95S, worstS } = toPeople
  return [{ name, events, p50_s: bound(p50S), p95_s: bound(p95S), worst_s: bound(worstS) }]
}
