/** `alerts get`: the alerts of an assets group as the API returns them, with secrets masked. */
import { Command } from 'commander'
import { fullMask } from '../../masking/mask-secret.ts'
import type { WireAlert } from '../../upstream/resources/assets.ts'
import { eventSeverities } from '../../upstream/resources/enumerations.ts'
import type { Context } from '../context.ts'
import { sanitize, jsonText, type Style } from '../terminal.ts'
import { nameFailure, parseId } from './api-command.ts'
import { formatList, type Listing, severityStyle } from './listing.ts'
import { listCommand } from './pages.ts'

export function alertsCommand(context: Context): Command {
  const get = listCommand(context, {
    name: 'alerts get',
    description: 'how an assets group is alerted on',
    options: (command) => command.argument('<group>', 'id of the assets group', parseId),
    reveal: 'show secrets and addresses as they are',
    ask: (_options, group) => Number(group),
    listing: ({ reveal }) => alertListing(reveal === true),
    async fetch({ client, callOptions, asked: groupId }) {
      const alerts = client.groupAlerts({ groupId, ...callOptions() })
      return { rows: await nameFailure(`assets group ${groupId}`, alerts), next: null }
    },
  })
  return new Command('alerts').addCommand(get)
}

/** The listing of a group's alerts; the parameters of their channels are masked unless `reveal`. */
export function alertListing(reveal: boolean): Listing<WireAlert> {
  const shownParams = ({ params }: WireAlert): unknown =>
    reveal || params === undefined || params === null ? params : maskAlertParams(params)
  const formatParams = (params: unknown): string =>
    reveal ? jsonText(params ?? {}) : sanitize(jsonText(params ?? {}), 1_000)
  return {
    columns: [
      { title: 'ID', width: 14, text: ({ id }) => String(id) },
      { title: 'TYPE', width: 17, text: ({ type }) => type ?? '' },
      { title: 'FREQUENCY', width: 9, text: ({ frequency }) => String(frequency ?? '') },
      { title: 'SEVERITIES', width: 22, text: formatSeverities, style: worstStyle },
      { title: 'TARGET', width: 24, text: formatTarget },
      { title: 'NAME', width: 40, text: ({ name }) => name ?? '' },
    ],
    below: (alert) => [
      `search types: ${sanitize(formatList(alert.search_types), 1_000)}`,
      ...(alert.experimental_search_types?.length
        ? [`experimental: ${sanitize(formatList(alert.experimental_search_types), 1_000)}`]
        : []),
      `channel ${alert.tenant_alert_channel_id ?? 'unknown'}: ${formatParams(shownParams(alert))}`,
      ...(alert.feed_url ? [sanitize(alert.feed_url)] : []),
    ],
    json: (alert) => ({ ...alert, ...('params' in alert && { params: shownParams(alert) }) }),
    csv: alertKeys,
  }
}

/** In the order of the API description. */
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

/**
 * Risks 1 to 5 as severities, worst first (docs/api-notes.md, Severities); other numbers stay as
 * they are.
 */
function formatSeverities({ risks }: WireAlert): string {
  const worstFirst = [...(risks ?? [])].toSorted((a, b) => b - a)
  return formatList(worstFirst.map((risk) => eventSeverities[risk - 1] ?? risk))
}

/** The colour of the worst severity, as events show it. */
function worstStyle({ risks }: WireAlert): Style | undefined {
  const worst = eventSeverities[Math.max(0, ...(risks ?? [])) - 1]
  return worst && severityStyle(worst)
}

function formatTarget({ feed_target_type: type, feed_target_id: id }: WireAlert): string {
  return [type, id].filter((part) => part !== undefined && part !== null).join(' ')
}

type Params = Readonly<Record<string, unknown>>

/** Channel fields that hold no secret (docs/api-notes.md, Alerts); any other text may be one. */
const publicFields = new Set([
  'alert_channel_id',
  'email',
  'entra_client_id',
  'entra_tenant_id',
  'index',
  'issue_type',
  'labels',
  'language',
  'netloc',
  'project_key',
  'server_netloc',
  'subject_tag',
  'table_name',
  'username',
  'workspace_id',
])

/**
 * Masks an alert's channel parameters. A URL keeps only its host, since the rest may be a key; a
 * nested value, such as headers, keeps only its keys.
 */
export function maskAlertParams(params: Params): Record<string, unknown> {
  return maskParams(params, (key) => publicFields.has(key))
}

function maskParams(params: Params, isPublic: (key: string) => boolean): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(params).map(([key, value]) => [key, maskValue(value, isPublic(key))]),
  )
}

function maskValue(value: unknown, isPublic: boolean): unknown {
  if (typeof value === 'string') return maskText(value, isPublic)
  if (typeof value === 'number') return isPublic ? value : fullMask
  if (Array.isArray(value)) return value.map((member) => maskValue(member, isPublic))
  return typeof value === 'object' && value !== null ? maskParams({ ...value }, () => false) : value
}

function maskText(text: string, isPublic: boolean): string {
  const url = URL.parse(text)
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (isWeb) return `${url.origin}/${fullMask}`
  return isPublic || text === '' ? text : fullMask
}
