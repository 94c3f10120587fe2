import { eventSeverities } from '../../../service/wire/enumerations.ts'
import type { WireAlert } from '../../../service/wire/alerts.ts'
import { jsonText } from '../../json-text.ts'
import type { Style } from '../../terminal.ts'
import { harmless } from '../../words.ts'
import { listInWords } from './asset-listing.ts'
import type { Listing } from '../listing.ts'
import { maskAlertParams } from './mask-alert-params.ts'
import { severityStyle } from '../severity-style.ts'

/** The alerts of a group; what configures their channel is masked unless `reveal`. */
export function alertListing(reveal: boolean): Listing<WireAlert> {
  const paramsOf = ({ params }: WireAlert): unknown =>
    reveal || params === undefined || params === null ? params : maskAlertParams(params)
  const paramsInWords = (params: unknown): string =>
    reveal ? jsonText(params ?? {}) : harmless(jsonText(params ?? {}), 1_000)
  return {
    columns: [
      { title: 'ID', width: 14, text: ({ id }) => String(id) },
      { title: 'TYPE', width: 17, text: ({ type }) => type ?? '' },
      { title: 'FREQUENCY', width: 9, text: ({ frequency }) => String(frequency ?? '') },
      { title: 'SEVERITIES', width: 22, text: severitiesIn, style: styleOf },
      { title: 'TARGET', width: 24, text: targetOf },
      { title: 'NAME', width: 40, text: ({ name }) => name ?? '' },
    ],
    below: (alert) => [
      `search types: ${harmless(listInWords(alert.search_types), 1_000)}`,
      ...(alert.experimental_search_types?.length
        ? [`experimental: ${harmless(listInWords(alert.experimental_search_types), 1_000)}`]
        : []),
      `channel ${alert.tenant_alert_channel_id ?? 'unknown'}: ${paramsInWords(paramsOf(alert))}`,
      ...(alert.feed_url ? [harmless(alert.feed_url)] : []),
    ],
    json: (alert) => ({ ...alert, ...('params' in alert && { params: paramsOf(alert) }) }),
    csv: alertKeys,
  }
}

/** As the description lists them. */
const alertKeys = [
  'id',
  'type',
  'name',
  'frequency',
  'start_at',
  'params',
  'feed_url',
  'feed_target_type',
  'feed_target_id',
  'created_at',
  'tenant_id',
  'organization_id',
  'search_types',
  'experimental_search_types',
  'risks',
  'tenant_alert_channel_id',
]

/** Risks 1 to 5 in the words of severities, the worst first (facts.md 1, row 5); others as they are. */
function severitiesIn({ risks }: WireAlert): string {
  const worstFirst = [...(risks ?? [])].toSorted((a, b) => b - a)
  return listInWords(worstFirst.map((risk) => eventSeverities[risk - 1] ?? risk))
}

/** In the colour of the worst, as events have it. */
function styleOf({ risks }: WireAlert): Style | undefined {
  const worst = eventSeverities[Math.max(0, ...(risks ?? [])) - 1]
  return worst && severityStyle(worst)
}

function targetOf({ feed_target_type: type, feed_target_id: id }: WireAlert): string {
  return [type, id].filter((part) => part !== undefined && part !== null).join(' ')
}
