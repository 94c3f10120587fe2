/** The lines that tell an event's history on a terminal. */
import { type EventWords, unverifiedLinkLabel } from '../../messages/message.ts'
import { formatSeverity } from '../../messages/summary.ts'
import { formatAttempt, formatDestination, formatState } from '../../operator/item-words.ts'
import type { DestinationLabels } from '../../operator/recipients.ts'
import type { Item, LedgerRecord, Sighting } from '../../store/records.ts'
import { formatUtcTime, pluralize, sanitize } from '../terminal.ts'

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

function repeatLines({ repeatRisks, replays, state, rule = '', past }: Item): string[] {
  const [, who = 'an operator'] = /^resent by (.+)$/.exec(rule) ?? []
  const lost = `${pluralize(repeatRisks, 'answer')} lost`
  const effect =
    state === 'delivered'
      ? 'it may have arrived more than once, under the same id'
      : 'it may have arrived nevertheless'
  return [
    ...(repeatRisks > 0 ? [`      ${lost}: ${effect}`] : []),
    ...past.map((one) => `      ${one.state} before, ${formatUtcTime(one.endedAtMs ?? 0)}`),
    ...(replays > 0
      ? [`      resent ${pluralize(replays, 'time')}, last by ${sanitize(who, 100)}`]
      : []),
  ]
}

/** Headline, facts and link, indented. */
export function messageLines({ title, facts, extract, ...message }: EventWords): string[] {
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
}: Pick<EventWords, 'link' | 'unverifiedLink'>): string[] {
  if (link !== null) return [link]
  return unverifiedLink === null ? [] : [`${unverifiedLinkLabel}: ${unverifiedLink}`]
}
