/** What happened to one event, as the ledger has it: the words of `explain` and of a dead letter. */
import type { AttemptNote, Item, LedgerRecord, Sighting } from '../ledger/records.ts'
import type { DestinationLabels } from './destination-labels.ts'
import { severityInWords } from '../messages/severity-counts.ts'
import { counted, harmless, isoTime, timeInWords } from './words.ts'

/** The story for machines: times in ISO 8601, what is not known is null. */
export function storyJson(
  record: LedgerRecord,
  labels: DestinationLabels,
): Record<string, unknown> & { account: string } {
  const { account, uid, type, severity, firstSeenMs, sightings, items } = record
  return {
    account,
    uid,
    type,
    severity,
    first_seen: isoTime(firstSeenMs),
    closed: record.closed ?? null,
    seen_again: record.seenAgain ?? null,
    sightings: sightings.map(
      ({ feed, atMs, severity: then, labels: feedLabels, decisions, unread = [] }) => ({
        feed,
        at: isoTime(atMs),
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
    state: item.state,
    held_for: item.state === 'held' ? (item.heldFor ?? null) : null,
    suppressed_for: item.state === 'suppressed' ? (item.heldFor ?? null) : null,
    rule: item.rule ?? null,
    raised_from: item.raisedFrom ?? null,
    created_at: isoTime(item.createdAtMs),
    due_at: item.endedAtMs === undefined ? isoTime(item.atMs) : null,
    ended_at: isoTime(item.endedAtMs),
    attempts: item.attempts,
    answers_lost: item.repeatRisks,
    replays: item.replays,
    history: item.history.map(({ number, atMs, outcome, reason, answer }) => ({
      number,
      at: isoTime(atMs),
      outcome,
      reason: reason ?? null,
      answer: answer ?? null,
    })),
  }
}

/** The story for people. */
export function storyLines(record: LedgerRecord, labels: DestinationLabels): string[] {
  const { account, uid, type, severity, sightings, items } = record
  const head = `${harmless(uid, 600)} (${harmless(type, 60)}, ${severityInWords(severity)}), account ${account}`
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
  const named = sources.length > 0 ? `: ${sources.map((one) => harmless(one, 60)).join(', ')}` : ''
  return [
    ...(times > 0
      ? [`  the same login and secret came from ${counted(times, 'more source')}${named}`]
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
    `  ${verb} ${timeInWords(atMs)} by the feed ${feed}, severity ${severityInWords(severity)}`,
    ...(unread.length === 0 ? [] : [`    could not read: ${unread.join(', ')}`]),
    ...decisions.map(({ path, why }) => {
      const because = why.length === 0 ? 'no other route took it' : why.join(' and ')
      return `    route ${path.join(' > ')}: ${harmless(because, 600)}`
    }),
  ]
}

export function itemLines(item: Item, labels: DestinationLabels): string[] {
  return [
    `  → ${harmless(placeOf(item, labels))}, as ${severityInWords(item.severity)}: ${stateInWords(item)}`,
    ...item.history.map((note) => `      ${attemptInWords(note)}`),
    ...repeatLines(item),
  ]
}

function placeOf({ sink, destination }: Item, labels: DestinationLabels): string {
  const label = labels.get(destination) ?? destination
  const isGone = !labels.has(destination)
  const place = label === sink ? sink : `${sink}, ${label}`
  return isGone ? `${place} (no longer configured)` : place
}

function attemptInWords({ number, atMs, outcome, reason, answer }: AttemptNote): string {
  const why = reason === undefined ? '' : ` (${reason})`
  const said = answer === undefined || answer === '' ? '' : `: ${harmless(answer)}`
  return `attempt ${number}, ${timeInWords(atMs)}: ${outcomeWords[outcome] ?? outcome}${why}${said}`
}

const outcomeWords: Record<string, string> = {
  delivered: 'accepted',
  retry: 'failed, to be tried again',
  dead: 'failed, given up',
  split: 'refused as a batch, halved',
  released: 'given back unsent',
}

function repeatLines({ repeatRisks, replays, state }: Item): string[] {
  const lost = `${counted(repeatRisks, 'answer')} lost`
  const effect =
    state === 'delivered'
      ? 'it may have arrived more than once, under the same id'
      : 'it may have arrived nevertheless'
  return [
    ...(repeatRisks > 0 ? [`      ${lost}: ${effect}`] : []),
    ...(replays > 0 ? [`      replayed ${counted(replays, 'time')} by an operator`] : []),
  ]
}

/** An item's state in plain words, with its time and, where there is one, its cause. */
export function stateInWords(item: Item): string {
  const at = (ms: number | undefined): string =>
    ms === undefined ? 'at an unknown time' : timeInWords(ms)
  switch (item.state) {
    case 'queued':
      return `waiting for its turn since ${at(item.createdAtMs)}`
    case 'held':
      return heldInWords(item)
    case 'group':
      return `waiting for the next message of its group since ${at(item.createdAtMs)}`
    case 'digest':
      return `waiting for the next digest since ${at(item.createdAtMs)}`
    case 'batch':
      return 'in a sealed message, on its way'
    case 'sending':
      return `being sent since ${at(item.atMs)}`
    case 'retrying':
      return `retrying at ${at(item.atMs)}${lastReason(item)}`
    case 'delivered':
      return `delivered ${at(item.endedAtMs)}`
    case 'dead':
      return `dead since ${at(item.endedAtMs)}${lastReason(item)}`
    case 'discarded':
      return `dead since ${at(item.endedAtMs)}, and the letter discarded by an operator`
    case 'suppressed':
      return `not sent, ${suppressedInWords(item)}, ${at(item.endedAtMs)}`
    case 'diverted':
      return `moved to another sink${byWhom(item)} ${at(item.endedAtMs)}`
  }
}

/** Why an item was not sent, with the rule by its name. */
function suppressedInWords({ heldFor, rule }: Item): string {
  const named = harmless(rule ?? 'unknown', 200)
  switch (heldFor) {
    case 'silence':
      return `silenced by ${named}`
    case 'inhibition':
      return `inhibited by the rule ${named}`
    case 'mute':
      return `dropped because its route is muted (${named})`
    case 'shadow':
      return 'recorded only: its route is in stage shadow'
    case 'ignored':
    case 'remediated':
      return `marked as ${heldFor} at the service`
    case 'seen_again':
      return `seen again: the same login and secret came as ${named}`
    case 'superseded':
      return `came back as ${named} before it was sent, and goes as that`
    case undefined:
    default:
      return `suppressed (${harmless(heldFor ?? 'no reason is known', 60)})`
  }
}

function byWhom({ rule }: Item): string {
  return rule === undefined ? '' : ` (${harmless(rule, 200)})`
}

function heldInWords({ heldFor, atMs, sink, rule }: Item): string {
  if (heldFor === 'orphaned') return `held: the running configuration has no sink "${sink}"`
  const until = atMs === undefined ? '' : `, at the latest until ${timeInWords(atMs)}`
  if (heldFor === 'detail') return `held for its full event${until}`
  if (heldFor === 'mute')
    return `held because its route is muted (${harmless(rule ?? '', 200)})${until}`
  return `held (${heldFor})${until}`
}

/** Why the last attempt failed. */
export function reasonOf({ history }: Item): string {
  return history.at(-1)?.reason ?? 'unknown'
}

function lastReason(item: Item): string {
  const last = item.history.at(-1)
  if (last === undefined) return ''
  const said = last.answer === undefined || last.answer === '' ? '' : `: ${harmless(last.answer)}`
  return ` because of ${reasonOf(item)}${said}`
}
