/** The sentences and JSON that tell an event's history: sightings, items, attempts, and why. */
import { type Message, unverifiedLinkLabel } from '../../messages/message.ts'
import { formatSeverity } from '../../messages/summary.ts'
import { reasonOf, stateOf } from '../../store/item-states.ts'
import type { AttemptNote, Item, LedgerRecord, Sighting } from '../../store/records.ts'
import type { DestinationLabels } from '../open/open-store.ts'
import { formatIsoTime, formatUtcTime, pluralize, sanitize } from '../terminal.ts'

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

/** An event's history for people. */
export function historyLines(record: LedgerRecord, labels: DestinationLabels): string[] {
  const { account, uid, type, severity, sightings, items } = record
  const head = `${sanitize(uid, 600)} (${sanitize(type, 60)}, ${formatSeverity(severity)}), account ${account}`
  const nothing = ['  No destination: every place it was routed to had it already.']
  return [
    head,
    ...sightings.flatMap((sighting, index) => sightingLines(sighting, index === 0)),
    ...seenAgainLines(record),
    ...(items.length === 0 ? nothing : items.flatMap((item) => itemLines(item, labels))),
  ]
}

function seenAgainLines({ seenAgain, closed }: LedgerRecord): string[] {
  const { times = 0, sources = [] } = seenAgain ?? {}
  const named = sources.length > 0 ? `: ${sources.map((one) => sanitize(one, 60)).join(', ')}` : ''
  return [
    ...(times > 0
      ? [`  the same login and secret came from ${pluralize(times, 'more source')}${named}`]
      : []),
    ...(closed ? [`  marked as ${closed} at the service`] : []),
  ]
}

function sightingLines(
  { feed, atMs, severity, decisions, unread = [] }: Sighting,
  isFirst: boolean,
): string[] {
  const verb = isFirst ? 'taken in' : 'seen again'
  return [
    `  ${verb} ${formatUtcTime(atMs)} by the feed ${feed}, severity ${formatSeverity(severity)}`,
    ...(unread.length === 0 ? [] : [`    could not read: ${unread.join(', ')}`]),
    ...decisions.map(({ path, why }) => {
      const because = why.length === 0 ? 'no other route took it' : why.join(' and ')
      return `    route ${path.join(' > ')}: ${sanitize(because, 600)}`
    }),
  ]
}

export function itemLines(item: Item, labels: DestinationLabels): string[] {
  return [
    `  → ${sanitize(formatDestination(item, labels))}, as ${formatSeverity(item.severity)}: ${formatState(item)}`,
    ...item.history.map((note) => `      ${formatAttempt(note)}`),
    ...repeatLines(item),
  ]
}

function formatDestination({ sink, destination }: Item, labels: DestinationLabels): string {
  const label = labels.get(destination) ?? destination
  const isGone = !labels.has(destination)
  const place = label === sink ? sink : `${sink}, ${label}`
  return isGone ? `${place} (no longer configured)` : place
}

export function formatAttempt({ number, atMs, outcome, reason, answer }: AttemptNote): string {
  const why = reason === undefined ? '' : ` (${reason})`
  const answerText = answer === undefined || answer === '' ? '' : `: ${sanitize(answer)}`
  return `attempt ${number}, ${formatUtcTime(atMs)}: ${outcomeWords[outcome] ?? outcome}${why}${answerText}`
}

const outcomeWords: Record<string, string> = {
  delivered: 'accepted',
  retry: 'failed, to be tried again',
  dead: 'failed, given up',
  split: 'refused as a batch, halved',
  released: 'given back unsent',
}

function repeatLines({ repeatRisks, replays, state, rule = '' }: Item): string[] {
  const [, who = 'an operator'] = /^resent by (.+)$/.exec(rule) ?? []
  const lost = `${pluralize(repeatRisks, 'answer')} lost`
  const effect =
    state === 'delivered'
      ? 'it may have arrived more than once, under the same id'
      : 'it may have arrived nevertheless'
  return [
    ...(repeatRisks > 0 ? [`      ${lost}: ${effect}`] : []),
    ...(replays > 0
      ? [`      resent ${pluralize(replays, 'time')}, last by ${sanitize(who, 100)}`]
      : []),
  ]
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
    return sanitize(`${heldWords[heldFor] ?? heldFor} ${rule}`, 300).trimEnd()
  }
  if (state === 'dead' || state === 'retrying') {
    const answer = history.at(-1)?.answer ?? ''
    return sanitize(`${reasonOf(item)}${answer === '' ? '' : `, ${answer}`}`)
  }
  return state === 'diverted' || state === 'discarded' ? sanitize(rule, 200) : ''
}

/** Headline, facts and link, indented. */
export function messageLines({ title, facts, extract, ...message }: Message): string[] {
  return [
    title,
    ...facts.map(({ label, value }) => `  ${label}: ${value}`),
    ...(extract ? [`  ${extract.label}: ${extract.text.replaceAll('\n', ' ')}`] : []),
    ...linkLines(message),
  ].map((line) => `  ${line}`)
}

export function linkLines({
  link,
  unverifiedLink,
}: Pick<Message, 'link' | 'unverifiedLink'>): string[] {
  if (link !== null) return [link]
  return unverifiedLink === null ? [] : [`${unverifiedLinkLabel}: ${unverifiedLink}`]
}
