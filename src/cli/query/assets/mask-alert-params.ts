import { fullMask } from '../../../events/mask-secret.ts'

type Params = Readonly<Record<string, unknown>>

/** Texts that configure a channel and let nobody in (facts.md 7); whatever else is a text may be a secret. */
const openFields = new Set([
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
 * What configures an alert's channel, for everybody to see: of web addresses the host, since all behind
 * it may be a key; of what is nested, such as headers, nothing but its names.
 */
export function maskAlertParams(params: Params): Record<string, unknown> {
  return masked(params, (key) => openFields.has(key))
}

function masked(params: Params, isOpen: (key: string) => boolean): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(params).map(([key, value]) => [key, maskValue(value, isOpen(key))]),
  )
}

function maskValue(value: unknown, isOpen: boolean): unknown {
  if (typeof value === 'string') return maskText(value, isOpen)
  if (typeof value === 'number') return isOpen ? value : fullMask
  if (Array.isArray(value)) return value.map((member) => maskValue(member, isOpen))
  return typeof value === 'object' && value !== null ? masked({ ...value }, () => false) : value
}

function maskText(text: string, isOpen: boolean): string {
  const url = URL.parse(text)
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (isWeb) return `${url.origin}/${fullMask}`
  return isOpen || text === '' ? text : fullMask
}
