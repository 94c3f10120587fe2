import { parseItem } from '../../../feeds/parse-item.ts'
import { cutCounting } from '../../../messages/clean-text.ts'
import { severityLabel } from '../../../messages/severity-counts.ts'
import { inertLine } from '../../../messages/inert-line.ts'
import { typeLabel } from '../../../messages/type-label.ts'
import type { WireFullEvent } from '../../../service/wire/events.ts'
import { linkLines } from '../../about.ts'
import type { Terminal } from '../../terminal.ts'
import { harmless, table, timeInWords } from '../../words.ts'
import { eventTitle } from './events-title.ts'
import { revealed } from '../revealed.ts'
import { severityStyle } from '../severity-style.ts'

const longestValue = 500
const longestPath = 60
const mostFields = 200

interface Shown extends WireFullEvent {
  metadata: { uid: string }
  data: Readonly<Record<string, unknown>>
  /** Its address as it may be clicked, or null: it does not lead to the service. */
  serviceLink: (url: string | null) => string | null
  /** What the title is made of: it shows no secret, whatever the fields do. */
  maskedData: Readonly<Record<string, unknown>>
}

/** An event for people: what it is, when and where, and every field that has a value, a line each. */
export function eventCard(
  terminal: Terminal,
  { event_type, metadata, data, maskedData, serviceLink }: Shown,
): string[] {
  const masked = new Map(fieldsOf(maskedData))
  const fields = fieldsOf(data)
  const more = fields.length - mostFields
  return [
    ...headOf(
      terminal,
      { metadata: { ...metadata, type: event_type } },
      { maskedData, serviceLink },
    ),
    '',
    ...table(
      fields
        .slice(0, mostFields)
        .map(([path, value]) => [
          harmless(path, longestPath),
          shownValue(value, { isRevealed: masked.get(path) !== value }),
        ]),
    ),
    ...(more > 0 ? [`… and ${more} more fields; --output json has them all`] : []),
  ]
}

function headOf(
  terminal: Terminal,
  item: { metadata: { uid: string; type: string | null | undefined } },
  { maskedData, serviceLink }: Pick<Shown, 'maskedData' | 'serviceLink'>,
): string[] {
  const parsed = parseItem(item)
  const uid = harmless(item.metadata.uid, 600)
  if (!parsed.ok) return [terminal.paint('bold', uid)]
  const { event } = parsed
  const { severity, createdAtMs, matchedAtMs, url } = event
  const title = eventTitle(event, maskedData)
  const name = title === null ? typeLabel(event.type) : `${typeLabel(event.type)}: ${title}`
  const shownSeverity = terminal.paint(severityStyle(severity), severityLabel(severity))
  const times = [
    ...(createdAtMs === null ? [] : [`created ${timeInWords(createdAtMs)}`]),
    ...(matchedAtMs === null ? [] : [`matched ${timeInWords(matchedAtMs)}`]),
  ]
  return [
    `${shownSeverity}  ${terminal.paint('bold', harmless(name))}`,
    ...(times.length === 0 ? [] : [times.join(', ')]),
    uid,
    ...linkLines({ link: serviceLink(url), unverifiedLink: url && inertLine(url, 600) }),
  ]
}

/** Dotted paths; a list of plain values is one field. */
function fieldsOf(value: unknown, path = ''): [string, string][] {
  if (value === null || value === undefined || value === '') return []
  if (typeof value !== 'object') return [[path, `${value as string | number | boolean}`]]
  if (Array.isArray(value) && value.every((entry) => typeof entry !== 'object' || entry === null)) {
    return value.length === 0 ? [] : [[path, value.map(String).join(', ')]]
  }
  return Object.entries(value).flatMap(([key, inner]) =>
    fieldsOf(inner, path === '' ? key : `${path}.${key}`),
  )
}

/** What a mask would change may be a secret: it is whole. */
function shownValue(value: string, { isRevealed }: { isRevealed: boolean }): string {
  return isRevealed ? revealed(value) : cutCounting(harmless(value, Infinity), longestValue)
}
