/** The fields of an event for machines and templates, and one event that has them all. */

export interface EventData {
  id: string
  /** What, whose and where, as messages to people say it; the summary has the severity in front. */
  title: string
  summary: string
  uid: string
  kind: string
  type: string
  source: string
  severity: string
  original_severity: string | null
  account: string
  /** The tenant that the account is configured for. */
  tenant_id: number | null
  feed: string
  labels: Readonly<Record<string, string>>
  routes: readonly string[]
  identifiers: { id: number; name: string }[]
  tags: string[]
  notes: string | null
  /** What to do about it, by the configuration. */
  next_step: string | null
  /** The event in the upstream web application. */
  url: string | null
  /** The event's page of Tocsin, where one is known. */
  page_url?: string
  /** A link that does not lead upstream: defanged text, `hxxps://evil[.]com`. */
  unverified_link?: string
  /** ISO 8601 UTC, as are the next two. */
  created_at: string | null
  matched_at: string | null
  fetched_at: string
  /** When people ignored or remediated it upstream. */
  ignored_at?: string
  remediated_at?: string
  /** The severity under which this destination got it before. */
  raised_from?: string
  /** A leaked secret in clear: only for a sink that reveals. */
  leaked_secret?: string
  /** Untrusted text, like `detail`, `notes` and `tags`: what leak sites wrote. */
  highlights: Record<string, string[]>
  detail: Record<string, unknown> | null
  /** Texts were left out, because the sink shows none (`excerpts: never`). */
  excerpts_withheld?: true
  /** The full event was asked for but not available in time. */
  detail_unavailable?: true
  /** Fields that could not be read, or only in part. */
  unread_fields?: string[]
  test?: true
  /** Something was cut for size; the whole event is behind `url`. */
  truncated?: true
}

/** What templates may name: the same fields, and what messages to people make of the event. */
export interface TemplateValues extends EventData {
  /** As `url`. */
  link: string | null
  /** As messages list them: most telling first, defanged. */
  facts: { label: string; value: string }[]
}

const moment = '2026-11-21T07:59:30.000Z'

/** Every field of an event for templates; docs/templates.md shows it. */
export const fullSample: Required<TemplateValues> = {
  id: 'e4f1c9d2a7b305861b7e0a95c3d286f4e',
  title: 'Stealer log: joe@acme[.]com at sso[.]acme[.]com',
  summary: 'CRITICAL Stealer log: joe@acme[.]com at sso[.]acme[.]com',
  uid: 'stealer_log/stealer_logs/12345',
  kind: 'event',
  type: 'stealer_log',
  source: 'stealer_logs',
  severity: 'critical',
  original_severity: 'high',
  account: 'main',
  tenant_id: 42,
  feed: 'brand',
  labels: { team: 'brand' },
  routes: ['urgent'],
  identifiers: [{ id: 77, name: 'acme.com' }],
  tags: ['seen-twice'],
  notes: 'Known to the help desk.',
  next_step: 'Reset the passwords of these accounts.',
  url: 'https://app.example.com/#/uid?uid=stealer_log/stealer_logs/12345',
  link: 'https://app.example.com/#/uid?uid=stealer_log/stealer_logs/12345',
  page_url: 'https://tocsin.example.net/events/main/5f2c9a1b7d3e4f6a8b0c1d2e',
  unverified_link: 'hxxps://evil[.]com/a',
  created_at: '2026-11-21T07:58:00.000Z',
  matched_at: moment,
  fetched_at: '2026-11-21T08:00:04.000Z',
  ignored_at: moment,
  remediated_at: moment,
  raised_from: 'low',
  leaked_secret: 'hunter2',
  highlights: { 'victim_information.username': ['joe'] },
  detail: { ip: '192.0.2.7' },
  excerpts_withheld: true,
  detail_unavailable: true,
  unread_fields: ['tags'],
  facts: [
    { label: 'Account', value: 'joe@acme[.]com' },
    { label: 'Login', value: 'sso[.]acme[.]com' },
  ],
  test: true,
  truncated: true,
}
