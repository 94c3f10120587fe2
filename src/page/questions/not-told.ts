/** What was not told, and why: grouped by rule, then item by item. */
import { z } from 'zod'
import { severityRank } from '../../event.ts'
import { reasonText } from '../../operator/item-words.ts'
import { readAllSilences } from '../../operator/silences.ts'
import { type SeverityCounts, severityCounts } from '../../operator/status.ts'
import { type DatedCount, type Outcome, readCounts } from '../../store/history/dated-counts.ts'
import { listQuarantined } from '../../store/feed-state.ts'
import { type LedgerItem, recordItems } from '../../store/items.ts'
import { ruleOf, wentToFallback } from '../../store/item-states.ts'
import { type Asker, isHidden } from '../asker.ts'
import {
  badCursor,
  choicesOf,
  destinationsOf,
  readRecordsOf,
  refuseCursor,
  toFilters,
} from '../listing.ts'
import {
  type AnswerOf,
  type AskedPeriod,
  field,
  listFields,
  question,
  readPeriod,
} from '../question.ts'
import { addressOf, eventUrl, ruleUrl } from '../output/urls.ts'
import { toIso } from './event.ts'
import { visibleSilences } from './silences.ts'
import { scanAtMost } from './told.ts'
import { cursorAt, listEndings } from '../../store/history/ending-list.ts'
import type { EndedItem } from '../../store/history/endings.ts'
import { findWaiting, listWaiting } from './waiting.ts'

export type NotToldAnswer = AnswerOf<typeof itemsQuestion>

const states = ['dead', 'quarantined', 'held', 'suppressed', 'diverted'] as const

const notToldQuery = z.object({
  ...listFields,
  state: field.oneOf(states, 'In this state.'),
  reason: field.text('For this reason, such as silence or timeout.'),
  rule: field.text('By this rule, such as the id of a silence.'),
  cursor: field.cursor,
  limit: field.limit,
})

type NotToldQuery = z.output<typeof notToldQuery>

export const itemsQuestion = question({
  path: '/items',
  summary: 'what was not told: by rule, then each item, newest first; what waits by account, too',
  query: notToldQuery,
  async ask(asker, query) {
    const period = readPeriod(query, asker)
    const { items, next, scannedToMs } = await findItems(asker, query, period)
    const isFirst = query.state === undefined && query.cursor === undefined
    const waiting = isFirst ? await findWaiting(asker.ledgers) : []
    return {
      filters: toFilters(query),
      choices: choicesOf(asker, states),
      groups: isNarrowed(query) ? [] : await groupByRule(asker, query, period),
      items: items.map((item) => describeItem(asker, item)),
      waiting: waiting.map((state) => ({
        state,
        url: addressOf('/not-told', { ...query, state }),
      })),
      next: next === undefined ? null : addressOf('/not-told', { ...query, cursor: next }),
      searched_back_to: scannedToMs === undefined ? null : toIso(scannedToMs),
    }
  },
})

// Items ---------------------------------------------------------------------------------------------

interface FoundItems {
  items: LedgerItem[]
  next: string | undefined
  scannedToMs: number | undefined
}

const endedStates: ReadonlySet<string> = new Set(['dead', 'suppressed', 'diverted'])

/** What waits, in a list of its own, or what has ended, the newest first. */
async function findItems(
  asker: Asker,
  query: NotToldQuery,
  period: AskedPeriod,
): Promise<FoundItems> {
  const { state, since, limit, cursor } = query
  if (state !== 'held' && state !== 'quarantined') return findEnded(asker, query, period)
  // what waits is there now, however long it has waited
  const fromMs = since === undefined ? 0 : period.fromMs
  const isKept = filterOf(asker, query)
  const isWanted = (item: LedgerItem): boolean =>
    item.sinceMs >= fromMs && item.sinceMs <= period.toMs && isKept(item)
  return listWaiting(asker.ledgers, { state, isWanted, limit }, cursor)
}

function filterOf(
  asker: Asker,
  { sink, severity, reason, rule, recipient }: NotToldQuery,
): (item: LedgerItem) => boolean {
  const destinations = destinationsOf(asker, recipient)
  return (item) =>
    !isHidden(asker, item.feeds) &&
    (destinations?.has(item.item?.destination ?? '') ?? true) &&
    (reason === undefined || reason === item.reason || reason === countedReason(item)) &&
    (rule === undefined || rule === (item.item && ruleOf(item.item))) &&
    (sink === undefined || item.item?.sink === sink) &&
    (severity === undefined || severityRank(item.severity) >= severityRank(severity))
}

/** As the counts of groups have it: what was diverted or given up names who did it as its reason. */
function countedReason({ state, item, reason }: LedgerItem): string | undefined {
  if (state === 'diverted') return item && wentToFallback(item) ? 'fallback' : 'moved'
  return state === 'discarded' ? 'discarded' : reason
}

async function findEnded(
  asker: Asker,
  query: NotToldQuery,
  period: AskedPeriod,
): Promise<FoundItems> {
  const { ledgers } = asker
  const { state, sink, severity, reason, rule, limit } = query
  const [before, skipped] = readPlace(query.cursor)
  const outcomes = new Set((state ? [state] : [...endedStates]) as Outcome[])
  // the endings of a shadow do not name their route: its items do
  const named = reason === 'shadow' ? undefined : rule
  const filter = {
    ...period,
    outcomes,
    sink,
    destinations: destinationsOf(asker, query.recipient),
    reason,
    rule: named,
    leastSeverity: severity,
  }
  const options = { limit, before, scanAtMost, isByEntry: true }
  const { endings, next, scannedToMs } = await refuseCursor(() =>
    listEndings(ledgers, filter, options),
  )
  const ended = endings.flatMap((ending) => ending.items.map((item, at) => ({ ending, item, at })))
  const shown = ended.slice(skipped, skipped + limit).map(({ item }) => item)
  const items = await readEnded(asker, query, shown)
  const rest = ended[skipped + limit]
  if (rest) return { items, next: `${cursorAt(rest.ending)}~${rest.at}`, scannedToMs: undefined }
  return { items, next, scannedToMs: items.length < limit ? scannedToMs : undefined }
}

/** A cursor of endings, and how many items of the next one were shown already. Throws PageError. */
function readPlace(cursor: string | undefined): [before: string | undefined, skipped: number] {
  const [before = '', skipped = '0'] = cursor?.split('~') ?? []
  if (!/^\d{1,6}$/.test(skipped)) throw badCursor()
  return [before === '' ? undefined : before, Number(skipped)]
}

/** Of these items those that still are as they ended then. */
async function readEnded(
  asker: Asker,
  query: NotToldQuery,
  ended: readonly EndedItem[],
): Promise<LedgerItem[]> {
  const { ledgers } = asker
  const records = await readRecordsOf(ledgers, ended)
  const items = ended.flatMap(({ account, index, atMs }, at) => {
    const ledger = ledgers.find((one) => one.account === account)
    const record = records[at]
    if (!ledger || !record) return []
    return recordItems(ledger, record).filter(
      ({ item, sinceMs }) => item?.index === index && sinceMs <= atMs,
    )
  })
  const isWanted = filterOf(asker, query)
  return items.filter((item) => endedStates.has(stateWord(item)) && isWanted(item))
}

/** What an operator gave up was not told either. */
function stateWord({ state }: LedgerItem): string {
  return state === 'discarded' ? 'dead' : state
}

function describeItem(asker: Asker, one: LedgerItem) {
  const { ledger, item, entry, ref, uid, title, severity, state, sinceMs } = one
  const reason = countedReason(one) ?? 'unknown'
  const { account } = ledger
  const recordId = ref.split(':')[1] ?? ''
  const destination = item?.destination
  const rule = (item && ruleOf(item)) ?? null
  return {
    at: toIso(sinceMs),
    event_url: entry ? null : eventUrl({ account, recordId }),
    title: entry ? entry.problem : (title ?? null),
    uid: uid ?? '',
    severity,
    account,
    sink: item?.sink ?? '',
    recipient: destination === undefined ? '' : (asker.labels.get(destination) ?? destination),
    state,
    reason,
    reason_text: reasonText(reason),
    rule,
    rule_url: ruleUrl(asker, reason, rule),
    id: `${account}/${ref}`,
    acts: actsOn(state),
  }
}

/** What may be done with it: sent again, or given up. */
function actsOn(state: LedgerItem['state']): string[] {
  if (state === 'dead') return ['resend', 'discard']
  if (state === 'discarded') return ['resend']
  return state === 'held' || state === 'quarantined' ? ['discard'] : []
}

// Groups --------------------------------------------------------------------------------------------

/** Reasons whose rules are counted by name; all others are their own rule. */
const ruled: ReadonlySet<string> = new Set(['silence', 'inhibition', 'mute', 'shadow'])

async function groupByRule(asker: Asker, query: NotToldQuery, { fromMs, toMs }: AskedPeriod) {
  const sums = new Map<string, { reason: string; rule: string | null; of: Map<string, number> }>()
  const add = (reason: string, rule: string | null, [severity, count]: [string, number]): void => {
    const name = `${reason} ${rule}`
    const sum = sums.get(name) ?? { reason, rule, of: new Map<string, number>() }
    sum.of.set(severity, (sum.of.get(severity) ?? 0) + count)
    sums.set(name, sum)
  }
  for (const ledger of asker.ledgers) {
    for (const one of await readCounts(ledger, { by: 'day', fromMs, toMs })) {
      const group = notTold(one)
      if (group) add(group.reason, group.rule, [group.severity, one.count])
    }
    for (const { atMs } of await listQuarantined(ledger)) {
      if (atMs >= fromMs && atMs <= toMs) add('malformed', null, ['unknown', 1])
    }
  }
  const about = await describeRules(asker)
  return [...sums.values()]
    .map(({ reason, rule, of }) => {
      const counts = severityCounts(of)
      const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
      const state = reason === 'malformed' ? 'quarantined' : undefined
      const url = addressOf('/not-told', { ...asQuery(query), reason, rule, state })
      const words = { reason, reason_text: reasonText(reason), rule }
      const rule_url = ruleUrl(asker, reason, rule)
      return { ...words, rule_url, ...about(reason, rule), counts, total, url }
    })
    .toSorted((one, other) => weigh(other.counts) - weigh(one.counts))
}

/** Rules are counted by day and account alone. */
function isNarrowed(query: NotToldQuery): boolean {
  const { sink, recipient, severity, state, reason, rule, cursor } = query
  const others = [sink, recipient, severity, state, reason, rule, cursor]
  return others.some((one) => one !== undefined)
}

function asQuery({ since, until, account }: NotToldQuery): Record<string, string | undefined> {
  return { since, until, account }
}

function notTold(
  one: DatedCount,
): { reason: string; rule: string | null; severity: string } | undefined {
  if (one.kind === 'rule') return one
  if (one.kind !== 'ended' || one.outcome === 'delivered' || ruled.has(one.reason)) return undefined
  return { reason: one.reason || one.outcome, rule: null, severity: one.severity }
}

/** Criticals first, then what is high, and so on. */
function weigh({ critical, unknown, high, medium, low, info }: SeverityCounts): number {
  return [info, low, medium, high, critical + unknown].reduce(
    (sum, count, at) => sum + Math.min(count, 999) * 1000 ** at,
    0,
  )
}

async function describeRules({
  store,
  config,
  user,
}: Asker): Promise<
  (reason: string, rule: string | null) => Record<'owner' | 'because' | 'ends', string | null>
> {
  const { silences } = await readAllSilences(store, config)
  const byId = new Map(visibleSilences(silences, user).map((silence) => [silence.id, silence]))
  return (reason, rule) => {
    const silence = reason === 'silence' && rule !== null ? byId.get(rule) : undefined
    return {
      owner: silence?.owner ?? null,
      because: silence?.reason ?? null,
      ends: silence ? toIso(silence.endsAtMs) : null,
    }
  }
}
