/** The words and the JSON that tell an event's history: sightings, items, attempts, and why. */
import { formatUtcTime } from '../lib/time-zone.ts'
import { cleanLine } from '../messages/sanitize.ts'
import type { SinkReason } from '../sinks/sink.ts'
import { reasonOf, ruleOf, stateOf } from '../store/item-states.ts'
import type { AttemptNote, Item, LedgerRecord, Suppression } from '../store/records.ts'
import { formatIsoTime } from './reports/columns.ts'
import type { DestinationLabels } from './recipients.ts'

/** An event's history as JSON: times in ISO 8601, null for what is unknown. */
export function historyJson(
  record: LedgerRecord,
  labels: DestinationLabels,
): Record<string, unknown> & { account: string } {
  const { account, uid, type, severity, firstSeenMs, sightings, items } = record
  return {
    account,
    uid,
    type,
    severity,
    first_seen: formatIsoTime(firstSeenMs),
    closed: record.closed ?? null,
    seen_again: record.seenAgain ?? null,
    sightings: sightings.map(
      ({ feed, atMs, severity: then, labels: feedLabels, decisions, unread = [] }) => ({
        feed,
        at: formatIsoTime(atMs),
        severity: then,
        labels: feedLabels,
        routes: decisions,
        unread,
      }),
    ),
    items: items.map((item) => itemJson(item, labels)),
  }
}

export function itemJson(item: Item, labels: DestinationLabels): Record<string, unknown> {
  return {
    id: item.id,
    sink: item.sink,
    destination: labels.get(item.destination) ?? null,
    severity: item.severity,
    routes: item.routes,
    state: stateOf(item),
    held_for: item.state === 'held' ? (item.heldFor ?? null) : null,
    suppressed_for: item.state === 'suppressed' ? (item.heldFor ?? null) : null,
    rule: ruleOf(item) ?? null,
    raised_from: item.raisedFrom ?? null,
    created_at: formatIsoTime(item.createdAtMs),
    due_at: item.endedAtMs === undefined ? formatIsoTime(item.atMs) : null,
    ended_at: formatIsoTime(item.endedAtMs),
    attempts: item.attempts,
    answers_lost: item.repeatRisks,
    replays: item.replays,
    past: item.past.map((one) => ({ state: one.state, ended_at: formatIsoTime(one.endedAtMs) })),
    history: item.history.map(({ number, atMs, outcome, reason, answer }) => ({
      number,
      at: formatIsoTime(atMs),
      outcome,
      reason: reason ?? null,
      answer: answer ?? null,
    })),
  }
}

export function formatDestination({ sink, destination }: Item, labels: DestinationLabels): string {
  const label = labels.get(destination) ?? destination
  const isGone = !labels.has(destination)
  const place = label === sink ? sink : `${sink}, ${label}`
  return isGone ? `${place} (no longer configured)` : place
}

export function formatAttempt({ number, atMs, outcome, reason, answer }: AttemptNote): string {
  const why = reason === undefined ? '' : ` (${reason})`
  const answerText = answer === undefined || answer === '' ? '' : `: ${cleanLine(answer, 300)}`
  return `attempt ${number}, ${formatUtcTime(atMs)}: ${outcomeText(outcome)}${why}${answerText}`
}

export function outcomeText(outcome: string): string {
  return outcomeWords[outcome] ?? outcome
}

const outcomeWords: Record<string, string> = {
  delivered: 'accepted',
  retry: 'failed, to be tried again',
  dead: 'failed, given up',
  split: 'refused as a batch, halved',
  released: 'given back unsent',
}

/** How an item stands. */
export interface Standing {
  sinceMs: number
  /** Its cause; empty: the state says all. */
  why: string
  next: { what: string; atMs: number } | undefined
}

const nextWords: Partial<Record<Item['state'], string>> = {
  held: 'at the latest until',
  retrying: 'next try',
  batch: 'next try',
}

export function standingOf(item: Item): Standing {
  const { state, atMs, createdAtMs, endedAtMs } = item
  const what = nextWords[state]
  return {
    sinceMs: endedAtMs ?? (state === 'sending' ? atMs : undefined) ?? createdAtMs,
    why: causeOf(item),
    next: what === undefined || atMs === undefined ? undefined : { what, atMs },
  }
}

/** Its standing in a line. */
export function formatState(item: Item): string {
  const { sinceMs, why, next } = standingOf(item)
  const since = item.endedAtMs === undefined ? ' since' : ''
  const because = why === '' ? '' : `: ${why}`
  const then = next ? `, ${next.what} ${formatUtcTime(next.atMs)}` : ''
  return `${stateOf(item)}${since} ${formatUtcTime(sinceMs)}${because}${then}`
}

/** Why a send failed. */
export const sinkReasonWords: Record<SinkReason, string> = {
  unavailable: 'nothing was accepted: 408, 425, 5xx, connection refused, DNS',
  timeout: 'no answer came in time after it was sent',
  connection_lost: 'the connection broke after it was sent',
  rate_limited: 'the receiver takes no more for now: 429 and its like',
  rejected:
    'the receiver refuses it: another 4xx, such as 404 during a deployment; a mail refused without a reason',
  unauthorized: 'the receiver refuses the key or the sign-in: 401, 403',
  redirected: 'the address leads to another one, which is not followed',
  forbidden_address: 'the address is private, and allow_private is not set',
  misconfigured:
    'the sink cannot work: its address, TLS, a certificate, an unreadable secret file, or a sender that the mail server refuses',
  gone: 'the receiver is no more: 410, an archived channel, a revoked webhook',
  invalid: 'this message will never be accepted: 400, 413, 422',
  recipient_refused: 'the mail server refuses this recipient for good',
  recipient_deferred: 'the mail server refuses this recipient for now, as with a full mailbox',
}

/** Every reason that the ledger gives: why an item waits, was not sent, or failed. */
const reasonWords = {
  ...sinkReasonWords,
  detail: 'waits for its full event',
  silence: 'a silence suppresses such events',
  inhibition: 'an event that says more came shortly before',
  mute: 'its route is muted',
  shadow: 'only routes in mode: shadow, which send nothing, chose its sink',
  ignored: 'somebody marked it as ignored',
  remediated: 'somebody marked it as remediated',
  seen_again: 'the same login and secret came before',
  superseded: 'it came back more severe before it was sent',
  fallback: 'its sink failed, so another one took it',
  moved: 'an operator moved it to another sink',
  discarded: 'an operator gave it up',
  malformed: 'it cannot be read as an event',
  payload_expired: 'its content was gone before it could be sent',
  recipient_removed: 'the configuration no longer has its recipient',
  interrupted: 'the process ended before an answer came',
  unknown: 'no reason is known',
} satisfies Record<Suppression, string> & Record<string, string>

/** null: the reason has no words. */
export function reasonText(reason: string): string | null {
  return Object.hasOwn(reasonWords, reason) ? reasonWords[reason as keyof typeof reasonWords] : null
}

function causeOf(item: Item): string {
  const { state, history } = item
  const rule = ruleOf(item) ?? ''
  if (state === 'group') return 'for the next message of its group'
  if (state === 'digest') return 'for the next digest'
  if (state === 'diverted' || state === 'discarded') return cleanLine(rule, 200)
  const reason = reasonOf(item) ?? 'unknown'
  const words = reasonText(reason) ?? reason
  if (state === 'held' || state === 'suppressed') {
    return cleanLine(rule === '' ? words : `${words}: ${rule}`, 300)
  }
  if (state !== 'dead' && state !== 'retrying') return ''
  const answer = history.at(-1)?.answer ?? ''
  return cleanLine(`${reason}, ${words}${answer === '' ? '' : `; ${answer}`}`, 300)
}
