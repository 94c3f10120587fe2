import { severities } from '../../../events/severity.ts'
import { readFields, type Fields } from '../../../messages/read-fields.ts'
import type { Context } from '../../context.ts'
import { harmless } from '../../words.ts'
import type { Listing } from '../listing.ts'
import { masked } from '../reveal.ts'
import { severityInWords } from '../../../messages/severity-counts.ts'
import { severityStyle } from '../severity-style.ts'
import { shortTime } from '../short-time.ts'

export interface LegacyRow {
  /** As the service has it, secrets masked unless they are revealed; `fields` may have left out any part. */
  item: Record<string, unknown>
  severity: string
  created: string
  type: string
  title: string
  uid: string
}

/** An item has the older shape: `metadata`, `header` and `data` (facts.md 4). */
export function legacyRow(received: Record<string, unknown>, reveal: boolean): LegacyRow {
  const item = reveal ? received : maskedItem(received)
  const fields = readFields(item, {})
  const uid = fields.text('header.uid', 'metadata.uid', 'uid', 'data.uid') ?? ''
  return {
    item,
    severity: fields.text('metadata.severity') ?? severityOfRisk(fields),
    created: shortTime(fields.text('metadata.estimated_created_at', 'header.timestamp')),
    type:
      fields.text('header.type', 'metadata.type', 'type', 'data.type') ?? uid.split('/')[0] ?? '',
    title: fields.text('header.title', 'data.title', 'header.content_preview', 'data.name') ?? uid,
    uid,
  }
}

/** The uids stay whole: they are what an event is asked for by. */
function maskedItem(received: Record<string, unknown>): Record<string, unknown> {
  const item = masked(received)
  const parts = ['header', 'metadata', 'data'].flatMap((part) => {
    const [shown, whole] = [item[part], received[part]]
    const isThere = isObject(shown) && isObject(whole) && 'uid' in whole
    return isThere ? [[part, { ...shown, uid: whole['uid'] }] as const] : []
  })
  const { uid } = received
  return { ...item, ...(uid !== undefined && { uid }), ...Object.fromEntries(parts) }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function severityOfRisk(fields: Fields): string {
  const risk = fields.number('header.risk.score')
  return risk === null ? '' : (severities[risk - 1] ?? String(risk))
}

export function legacyListing({ terminal }: Context): Listing<LegacyRow> {
  return {
    columns: [
      {
        title: 'SEVERITY',
        width: 8,
        text: ({ severity }) => severityInWords(severity),
        style: ({ severity }) => severityStyle(severity),
      },
      { title: 'CREATED (UTC)', width: 16, text: ({ created }) => created },
      { title: 'TYPE', width: 20, text: ({ type }) => type },
      { title: 'EVENT', width: 80, text: ({ title }) => title },
    ],
    below: ({ title, uid }) => (title === uid ? [] : [terminal.paint('dim', harmless(uid, 600))]),
    json: ({ item }) => item,
    csvFields: ({ item, uid }) => ({ ...item, uid }), // wherever it stands
    csv: [
      'header.uid',
      'header.type',
      'uid',
      'metadata.type',
      'metadata.severity',
      'metadata.estimated_created_at',
      'metadata.matched_at',
      'header.title',
      'header.source',
      'header.timestamp',
      'header.risk.score',
      'metadata',
      'header',
      'data',
    ],
  }
}
