/** One event: what it is, how it travelled, who was told of it, and what was seen before. */
import { z } from 'zod'
import { isKnownSeverity, ownFeed } from '../../event.ts'
import { formatIsoTime } from '../../operator/reports/columns.ts'
import { type KnownEvent, readKnownEvent } from '../../operator/event.ts'
import { outcomeText, reasonText, standingOf } from '../../operator/item-words.ts'
import { formatSeverity } from '../../messages/summary.ts'
import { itemStates, reasonOf, stateOf } from '../../store/item-states.ts'
import { deliveryId, type Item, type LedgerRecord, readRecord } from '../../store/records.ts'
import { keptNames } from '../../store/intake.ts'
import { type Asker, isHiddenRecord, requireLedger } from '../asker.ts'
import { PageError } from '../page-error.ts'
import { type AnswerOf, question } from '../question.ts'
import {
  addressOf,
  eventUrl,
  itemAddress,
  messageUrl,
  ruleUrl,
  singleMessageUrl,
} from '../output/urls.ts'

export type EventAnswer = AnswerOf<typeof eventQuestion>

export const eventQuestion = question({
  path: '/events/:account/:id',
  summary: 'an event with its history: sightings, routes, destinations, attempts',
  query: z.object({
    account: z.string().describe('The account that knows it.'),
    id: z
      .string()
      .regex(/^[0-9a-f]{24}$/)
      .describe('Of the event in the ledger.'),
  }),
  async ask(asker, { account, id }) {
    const ledger = requireLedger(asker, account)
    const stored = await readRecord(ledger, id)
    const known = stored && (await readKnownEvent(asker.config, asker.store, ledger, stored.uid))
    const { record } = known ?? {}
    if (!known || !record || isHiddenRecord(asker, record)) {
      const why = 'the ledger has no such event: its history has expired, or the address is wrong'
      throw new PageError('not_found', why)
    }
    return describeEvent(asker, known, record)
  },
})

function describeEvent(asker: Asker, { message, writes = [] }: KnownEvent, record: LedgerRecord) {
  const { labels, config } = asker
  const { account, uid, recordId, type, severity, identifiers, tags } = record
  return {
    account,
    uid,
    id: recordId,
    kind: kindOf(config, record),
    type: message?.typeLabel ?? type,
    severity,
    title: message?.title ?? record.title ?? null,
    facts: message?.facts.map(({ label, value }) => ({ label, value })) ?? [],
    extract: message?.extract ?? null,
    gone_after_s: message ? null : config.ledger.payloadRetentionMs / 1000,
    link: message?.link ?? null,
    unverified_link: message?.unverifiedLink ?? null,
    timeline: timelineOf(record, labels),
    routes: record.sightings.flatMap(({ feed, atMs, severity: then, decisions, unread = [] }) =>
      decisions.map(({ path, why }) => ({
        feed,
        at: toIso(atMs),
        severity: then,
        path,
        why,
        unread,
      })),
    ),
    destinations: record.items.map((item) => describeItem(asker, record, item)),
    seen_before: seenBefore(record),
    identifiers: identifiers.map((name) => ({
      name,
      url: addressOf('/search', { account, by: 'identifier', q: name }),
    })),
    tags: [...tags],
    closed: record.closed ?? null,
    writes: writes.map(({ atMs, by, action, outcome }) => ({
      at: toIso(atMs),
      by,
      action,
      outcome,
    })),
    silence_url: silenceFormUrl(record),
  }
}

/** Its logins and hosts that earlier events named; a full event may name one that a later event has named. */
function seenBefore({ account, firstSeenMs, seenBefore: seen }: LedgerRecord) {
  const earlier = seen.filter(({ lastMs }) => lastMs <= firstSeenMs)
  return earlier.map(({ kind, times, lastMs, recordId }) => ({
    kind,
    count: times,
    last_at: toIso(lastMs),
    url: eventUrl({ account, recordId }),
  }))
}

function kindOf(
  { feeds }: Asker['config'],
  { sightings }: LedgerRecord,
): 'event' | 'credential' | 'own' {
  const shownBy = sightings[0]?.feed
  if (shownBy === ownFeed) return 'own'
  const type = feeds.find(({ name }) => name === shownBy)?.type ?? 'events'
  return /credential|cookies/.test(type) ? 'credential' : 'event'
}

function describeItem(asker: Asker, record: LedgerRecord, item: Item) {
  const { sink, destination, severity, past } = item
  const { sinceMs, why, next } = standingOf(item)
  const visibleMs = record.sightings[item.sighting]?.visibleMs
  const first = [...past, item].find(({ state }) => state === 'delivered')
  /** What is sent again tells nobody for the first time. */
  const delayOf = (end: Pick<Item, 'endedAtMs'>): number | null =>
    end !== first || end.endedAtMs === undefined || visibleMs === undefined
      ? null
      : Math.max(0, (end.endedAtMs - visibleMs) / 1000)
  return {
    sink,
    recipient: asker.labels.get(destination) ?? destination,
    state: stateOf(item),
    since: toIso(sinceMs),
    why: why === '' ? itemStates[stateOf(item)] : why,
    next: next ? { what: next.what, at: toIso(next.atMs) } : null,
    severity,
    delay_s: delayOf(item),
    past: past.map((end) => ({
      state: end.state,
      at: toIso(end.endedAtMs ?? end.createdAtMs),
      delay_s: delayOf(end),
    })),
    attempts: attemptsOf(item),
    message_url: messageUrlOf(record, item),
    rule_url: ruleUrl(asker, reasonOf(item), item.rule ?? null),
    item: itemAddress(record, item),
  }
}

/** null: none was sent, and it is in none that waits. */
function messageUrlOf(record: LedgerRecord, item: Item): string | null {
  if (item.messageId !== undefined) return messageUrl(deliveryId(item), item.endedAtMs)
  return item.history.length > 0 ? singleMessageUrl(item.id, record) : null
}

interface Attempt {
  number: number
  at: string
  outcome: string
  reason: string | null
  reason_text: string | null
  answer: string | null
}

export function attemptsOf({ history }: Pick<Item, 'history'>): Attempt[] {
  return history.map(({ number, atMs, outcome, reason, answer }) => ({
    number,
    at: toIso(atMs),
    outcome: outcomeText(outcome),
    reason: reason ?? null,
    reason_text: reason === undefined ? null : reasonText(reason),
    answer: answer === undefined || answer === '' ? null : answer,
  }))
}

interface Step {
  at: string
  what: string
  detail: string | null
}

/** From the event's own dates to the end of its last item, in order. */
function timelineOf(record: LedgerRecord, labels: Asker['labels']): Step[] {
  const { createdAtMs, matchedAtMs, fetchedAtMs, sightings, items } = record
  const steps = [
    step(createdAtMs, 'created', 'by the service'),
    step(matchedAtMs, 'matched', 'by the service'),
    step(fetchedAtMs, 'fetched'),
    ...sightings.map(({ atMs, feed, severity, decisions }, at) => {
      const routes = decisions.map(({ path }) => path.join(' > ')).join(', ')
      const what = at === 0 ? 'taken in and routed' : 'seen again and routed'
      return step(atMs, what, `by the feed ${feed}, ${formatSeverity(severity)}: ${routes}`)
    }),
    ...items.flatMap((item) => {
      const to = labels.get(item.destination) ?? item.destination
      const tries = attemptsOf(item).map(({ at, number, outcome, reason }) =>
        step(Date.parse(at), `attempt ${number}: ${outcome}`, reason ? `${to}: ${reason}` : to),
      )
      const hasSaid = item.state === 'delivered' && tries.length > 0
      return [
        ...item.past.flatMap(({ state, endedAtMs, resentAtMs, resentBy = '' }) => [
          step(endedAtMs, state, to),
          step(resentAtMs, 'sent again', [to, resentBy].filter(Boolean).join(': ')),
        ]),
        ...tries,
        ...(hasSaid ? [] : [step(item.endedAtMs, stateOf(item), to)]),
      ]
    }),
  ]
  return steps.flat().toSorted((one, other) => Date.parse(one.at) - Date.parse(other.at))
}

function step(atMs: number | undefined, what: string, detail: string | null = null): Step[] {
  return atMs === undefined ? [] : [{ at: toIso(atMs), what, detail }]
}

/** The form of a silence that would have suppressed this event; null: none would have. */
function silenceFormUrl(record: LedgerRecord): string | null {
  const { account, type, severity, identifiers, sightings } = record
  if (!isKnownSeverity(severity) || sightings[0]?.feed === ownFeed) return null
  const [identifier] = identifiers
  const matchers = [
    `type=${JSON.stringify(type)}`,
    `account=${JSON.stringify(account)}`,
    ...(identifier === undefined ? [] : [matcherOf(identifier)]),
  ]
  return `${addressOf('/rules', { matchers, severity, back: eventUrl(record) })}#silence`
}

/** A record keeps the beginning of a long name; its last character may be half of one. */
function matcherOf(identifier: string): string {
  if (identifier.length < keptNames.length) return `identifier=${JSON.stringify(identifier)}`
  const start = identifier
    .slice(0, -1)
    .replace(/[\uD800-\uDBFF]$/, '')
    .replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)
  return `identifier=~${JSON.stringify(`${start}.*`)}`
}

export function toIso(atMs: number): string {
  return formatIsoTime(atMs) ?? ''
}
