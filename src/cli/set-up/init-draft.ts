/**
 * The configuration that `init` writes: one text, whose gaps are variables of the environment, files of
 * secrets, or the answers themselves where they are tried.
 */
import { basename, extname, join } from 'node:path'
import { type Config, ConfigError } from '../../config/config.ts'
import { parseConfig } from '../../config/load.ts'

/** A key of the configuration whose value `init` does not know. */
export interface Gap {
  key: string
  /** What is asked for. */
  asks: string
  variable: string
  /** It has a file of its own, closed to others. */
  isSecret?: true
  /** A comma stands between its values. */
  isList?: true
  /** Without an answer a new one is made. */
  isMade?: true
}

export interface SinkKind {
  type: 'slack' | 'email' | 'teams' | 'pagerduty' | 'webhook'
  /** What the first sink of the kind is called. */
  name: string
  gaps: readonly Gap[]
  /** A comment under its keys. */
  hint?: string
}

function secret(key: string, variable: string, asks: string): Gap {
  return { key, variable, asks, isSecret: true }
}

const mailServer = 'mail server, smtp://user:password@host:587 or smtps://…:465'

export const sinkKinds: readonly SinkKind[] = [
  {
    type: 'slack',
    name: 'soc',
    gaps: [secret('url', 'SLACK_WEBHOOK_URL', 'URL of an incoming webhook of Slack')],
  },
  {
    type: 'email',
    name: 'oncall',
    gaps: [
      secret('smtp', 'SMTP_URL', mailServer),
      { key: 'from', variable: 'MAIL_FROM', asks: 'sender of mails' },
      { key: 'to', variable: 'MAIL_TO', asks: 'who gets mails (a,b)', isList: true },
    ],
  },
  {
    type: 'teams',
    name: 'chat',
    gaps: [secret('url', 'TEAMS_WEBHOOK_URL', "URL of a workflow's webhook in Teams")],
  },
  {
    type: 'pagerduty',
    name: 'duty',
    gaps: [secret('routing_key', 'PAGERDUTY_KEY', 'key of an Events API v2 integration')],
    hint: 'url: https://events.eu.pagerduty.com, for accounts of the EU region',
  },
  {
    type: 'webhook',
    name: 'siem',
    gaps: [
      secret('url', 'WEBHOOK_URL', 'URL of a webhook'),
      {
        ...secret('secret', 'WEBHOOK_SECRET', 'secret that signs for it; empty: a new one'),
        isMade: true,
      },
    ],
  },
]

const redisUrl = secret('url', 'REDIS_URL', 'URL of your Redis; empty: a private one in ./data')
const baseUrl: Gap = {
  key: 'base_url',
  variable: 'TOCSIN_BASE_URL',
  asks: "Address of the service's API, such as https://api.example.com",
}
const apiKey = secret('api_key', 'TOCSIN_API_KEY', 'API key')
export const gaps = { redisUrl, baseUrl, apiKey }

export interface DraftSink {
  name: string
  kind: SinkKind
  values: Readonly<Record<string, string>>
}

/** What was answered so far. */
export interface Draft {
  /** undefined: a private Redis beside the file. */
  redisUrl?: string | undefined
  baseUrl?: string
  apiKey?: string
  /** undefined: the default of the key's user. */
  tenantId?: string | undefined
  /** undefined: the feed reads all of the tenant. */
  groupId?: string | undefined
  sinks: readonly DraftSink[]
  allowPrivate: boolean
}

/** The next sink of a kind: its name is in no use yet. */
export function nameSink({ name }: SinkKind, { sinks }: Draft): string {
  const same = sinks.filter((sink) => sink.kind.name === name).length
  return same === 0 ? name : `${name}${same + 1}`
}

/** Writes the line of a gap; `of` names whose it is. */
type Write = (gap: Gap, value: string | undefined, of: string) => string

/** The text whose gaps are variables of the environment, and their names. */
export function renderWithVariables(draft: Draft): { text: string; variables: string[] } {
  const variables: string[] = []
  const text = render(draft, ({ key, variable, isList }) => {
    variables.push(variable)
    return isList
      ? `${key}: ['\${${variable}}'] # one value; an item for each further one`
      : `${key}: \${${variable}}`
  })
  return { text, variables }
}

/** Beside the configuration. */
export const secretsFolder = 'secrets'

/** The text that names the files of its secrets, and what these hold. */
export function renderWithFiles(
  draft: Draft,
  file: string,
): { text: string; secrets: { fileName: string; value: string }[] } {
  const secrets: { fileName: string; value: string }[] = []
  const text = render(draft, (gap, value = '', of) => {
    if (!gap.isSecret) return inline(gap, value)
    // names begin with that of the configuration, so that two in one folder share no secret
    const name = [basename(file, extname(file)), of, gap.key.replace('_', '-')].join('-')
    const fileName = join(secretsFolder, name)
    secrets.push({ fileName, value })
    return `${gap.key}_file: ${quote(fileName)}`
  })
  return { text, secrets }
}

function inline({ key, isList }: Gap, value: string): string {
  return `${key}: ${quote(isList ? value.split(',').map((part) => part.trim()) : value)}`
}

/** JSON is YAML; `$$` is a literal `$`. */
function quote(value: string | string[]): string {
  return JSON.stringify(value).replaceAll('$', '$$$$')
}

/** Stand where nothing was answered yet. */
const exampleAnswers = { baseUrl: 'https://api.example.com', apiKey: 'not-yet-known' }
const exampleSink: DraftSink = {
  name: 'soc',
  kind: { type: 'slack', name: 'soc', gaps: [secret('url', '', '')] },
  values: { url: 'https://hooks.slack.com/services/T/B/x' },
}

/**
 * The configuration of what is answered so far; `folder` holds a private Redis. Returns what is wrong
 * with the answers, with the remedy, in place of it.
 */
export function tryDraft(draft: Draft, file: string, folder = './data'): Config | string {
  const sinks = draft.sinks.length > 0 ? draft.sinks : [exampleSink]
  const text = render(
    { ...exampleAnswers, ...draft, sinks },
    (gap, value = '') => inline(gap, value),
    folder,
  )
  try {
    return parseConfig(text, { file, env: {} }).config
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const [first] = error.mistakes
    return `${first?.path}: ${first?.problem}; ${first?.remedy}`
  }
}

function render(draft: Draft, write: Write, folder = './data'): string {
  const { tenantId, groupId, sinks } = draft
  return `# Written by "tocsin init". "tocsin check" says what it does;
# docs/reference/configuration.md has every key.
redis:
  ${draft.redisUrl === undefined ? `embedded: ${quote(folder)} # a private Redis that Tocsin starts; or name yours with url` : write(redisUrl, draft.redisUrl, 'redis')}

accounts:
  main:
    ${write(baseUrl, draft.baseUrl, 'main')}
    ${write(apiKey, draft.apiKey, 'main')}
    ${tenantId === undefined ? `# tenant_id: 42 # "tocsin tenants list" shows them` : `tenant_id: ${tenantId}`}
    # link_hosts: [app.example.com] # where links of events may lead, beside the host of base_url

feeds:
  all:
    ${
      groupId === undefined
        ? 'type: events # or with the identifier_group of one group: "tocsin groups list"'
        : `type: events\n    identifier_group: ${groupId}`
    }

sinks:
${sinks.map((sink) => sinkText(sink, draft, write)).join('')}
# Every event goes to these; docs/reference/configuration.md begins with routes by severity.
route:
  sinks: [${sinks.map(({ name }) => name).join(', ')}]
`
}

function sinkText({ name, kind, values }: DraftSink, draft: Draft, write: Write): string {
  // a mail server may have any address
  const isGuarded = kind.type !== 'email' && draft.allowPrivate
  const lines = [
    `type: ${kind.type}`,
    ...kind.gaps.map((gap) => write(gap, values[gap.key], name)),
    ...(kind.hint === undefined ? [] : [`# ${kind.hint}`]),
    ...(isGuarded ? ['allow_private: true'] : []),
  ]
  return `  ${name}:\n${lines.map((line) => `    ${line}\n`).join('')}`
}
