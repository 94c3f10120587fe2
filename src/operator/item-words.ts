/** The words and the JSON that tell an event's history: sightings, items, attempts, and why. */
import { formatUtcTime } from '../lib/time-zone.ts'
import { cleanLine } from '../messages/sanitize.ts'
import { reasonOf, stateOf } from '../store/item-states.ts'
import type { AttemptNote, Item, LedgerRecord } from '../store/records.ts'
import { formatIsoTime } from './columns.ts'
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
    rule: item.rule ?? null,
    raised_from: item.raisedFrom ?? null,
    created_at: formatIsoTime(item.createdAtMs),
    due_at: item.endedAtMs === undefined ? formatIsoTime(item.atMs) : null,
    ended_at: formatIsoTime(item.endedAtMs),
    attempts: item.attempts,
    answers_lost: item.repeatRisks,
    replays: item.replays,
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

/** How an item stands: its state, with its time and, where there is one, its cause. */
export function formatState(item: Item): string {
  const { state, atMs, createdAtMs, endedAtMs } = item
  const why = causeOf(item)
  const because = why === '' ? '' : `: ${why}`
  if (endedAtMs !== undefined) return `${stateOf(item)} ${formatUtcTime(endedAtMs)}${because}`
  const since = state === 'sending' ? (atMs ?? createdAtMs) : createdAtMs
  const tried = state === 'retrying' || state === 'batch' ? 'next try' : undefined
  const until = tried ?? (state === 'held' ? 'at the latest until' : undefined)
  const next = atMs === undefined || until === undefined ? '' : `, ${until} ${formatUtcTime(atMs)}`
  return `${stateOf(item)} since ${formatUtcTime(since)}${because}${next}`
}

/** Before the name of the rule. */
const heldWords: Readonly<Record<string, string>> = {
  detail: 'waits for its full event',
  orphaned: 'the running configuration has no such sink',
  silence: 'silenced by',
  inhibition: 'inhibited by the rule',
  mute: 'its route is muted by',
  shadow: 'its route has mode: shadow',
  ignored: 'marked as ignored at the service',
  remediated: 'marked as remediated at the service',
  seen_again: 'the same login and secret came as',
  superseded: 'came back before it was sent, as',
}

function causeOf(item: Item): string {
  const { state, heldFor = 'no reason is known', rule = '', history } = item
  if (state === 'group') return 'for the next message of its group'
  if (state === 'digest') return 'for the next digest'
  if (state === 'held' || state === 'suppressed') {
    return cleanLine(`${heldWords[heldFor] ?? heldFor} ${rule}`, 300).trimEnd()
  }
  if (state === 'dead' || state === 'retrying') {
    const answer = history.at(-1)?.answer ?? ''
    return cleanLine(`${reasonOf(item)}${answer === '' ? '' : `, ${answer}`}`, 300)
  }
  return state === 'diverted' || state === 'discarded' ? cleanLine(rule, 200) : ''
}
