/**
 * The configuration that `init` makes: its answers, the text that they become, and what is wrong
 * with them by the rules that every configuration is checked with.
 */
import { basename, extname, join } from 'node:path'
import { type Config, ConfigError } from '../../config/config.ts'
import { parseConfig } from '../../config/load.ts'
import { cleanLine } from '../../messages/sanitize.ts'

export interface Draft {
  redis: DraftRedis
  account: DraftAccount
  group: { id: number; name: string }
  sinks: DraftSink[]
}

/** A folder for a private Redis, relative to the file, or the URL of one that is there. */
export type DraftRedis = { folder: string } | { url: string }

export interface DraftAccount {
  baseUrl: string
  apiKey: string
  /** undefined: the host of `baseUrl` says enough. */
  linkHost: string | undefined
}

export type DraftSinkType = 'slack' | 'email' | 'teams' | 'pagerduty' | 'webhook'

export interface DraftSink {
  name: string
  type: DraftSinkType
  /** An address or a routing key: whoever has it may send. */
  secret: string
  /** Keys that are no secrets, as they are written. */
  keys: Record<string, string | boolean | string[]>
  /** Proves to a webhook's receiver who sends. */
  signingSecret?: string
  /** It was made here, so the receiver does not know it yet. */
  isSecretNew?: boolean
}

/** A secret of the draft, and the name of its file beside the configuration. */
interface DraftSecret {
  fileName: string
  value: string
}

/** The key that holds the secret of a sink. */
const secretKeyByType: Record<DraftSinkType, string> = {
  slack: 'url',
  email: 'smtp',
  teams: 'url',
  pagerduty: 'routing_key',
  webhook: 'url',
}

/** Beside the configuration. */
export const secretsFolder = 'secrets'

/** Names begin with that of the configuration, so that two in one folder share no secret. */
function placeSecret(file: string, what: string): string {
  return join(secretsFolder, `${basename(file, extname(file))}-${what}`)
}

/** Every configuration has this one. */
export function apiKeyFile(file: string): string {
  return placeSecret(file, 'api-key')
}

/** The text of the file, which names the files of its secrets, and what these hold. */
export function renderDraft(draft: Draft, file: string): { text: string; secrets: DraftSecret[] } {
  const secrets: DraftSecret[] = []
  const text = render(draft, (key, what, value) => {
    const fileName = placeSecret(file, what)
    secrets.push({ fileName, value })
    return `${key}_file: ${quote(fileName)}`
  })
  return { text, secrets }
}

/** `write` returns the line of a secret, of which `what` is the name of its file. */
function render(
  { redis, account, group, sinks }: Draft,
  write: (key: string, what: string, value: string) => string,
): string {
  const { baseUrl, linkHost } = account
  return [
    '# Written by "tocsin init". "tocsin check" says what it does;',
    '# docs/reference/configuration.md has every key.',
    '# The files named here hold secrets: nobody but you and the daemon should read them.',
    'redis:',
    'folder' in redis
      ? `  embedded: ${quote(redis.folder)} # a private Redis that Tocsin starts itself`
      : `  ${write('url', 'redis-url', redis.url)}`,
    '',
    'accounts:',
    '  main:',
    `    base_url: ${quote(baseUrl)}`,
    `    ${write('api_key', 'api-key', account.apiKey)}`,
    ...(linkHost === undefined
      ? []
      : [`    link_hosts: [${quote(linkHost)}] # links of events may lead here`]),
    '',
    'feeds:',
    '  brand:',
    '    type: events',
    `    identifier_group: ${group.id}${comment(group.name)}`,
    '',
    'sinks:',
    ...sinks.flatMap((sink) => sinkLines(sink, write)),
    '',
    '# Every event goes to these; docs/reference/configuration.md begins with routes by severity.',
    'route:',
    `  sinks: [${sinks.map(({ name }) => name).join(', ')}]`,
    '',
  ].join('\n')
}

function sinkLines(
  { name, type, secret, keys, signingSecret }: DraftSink,
  write: (key: string, what: string, value: string) => string,
): string[] {
  const key = secretKeyByType[type]
  const signed = signingSecret && write('secret', `${name}-secret`, signingSecret)
  return [
    `  ${name}:`,
    `    type: ${type}`,
    `    ${write(key, `${name}-${key.replace('_', '-')}`, secret)}`,
    ...(signed ? [`    ${signed} # the receiver needs it, too`] : []),
    ...Object.entries(keys).map(([other, value]) => `    ${other}: ${quote(value)}`),
  ]
}

/** JSON is YAML; `$$` is a literal `$`. */
function quote(value: string | boolean | string[]): string {
  return JSON.stringify(value).replaceAll('$', '$$$$')
}

function comment(text: string): string {
  const line = cleanLine(text, 60)
  return line === '' ? '' : ` # ${line}`
}

const exampleDraft: Draft = {
  redis: { folder: './data' },
  account: { baseUrl: 'https://api.example.com', apiKey: 'not-yet-known', linkHost: undefined },
  group: { id: 1, name: '' },
  sinks: [
    { name: 'soc', type: 'slack', secret: 'https://hooks.slack.com/services/T/B/x', keys: {} },
  ],
}

/** The configuration of what is answered so far; the rest is an example. Throws ConfigError. */
export function draftConfig(answered: Partial<Draft>, file: string): Config {
  const inline = (key: string, _what: string, value: string): string => `${key}: ${quote(value)}`
  const text = render({ ...exampleDraft, ...answered }, inline)
  return parseConfig(text, { file, env: {} }).config
}

/** What is wrong with one answer, with the remedy; undefined: nothing. */
export function findMistake(answer: Partial<Draft>, file: string): string | undefined {
  try {
    draftConfig(answer, file)
    return undefined
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const [first] = error.mistakes
    return first && `${first.problem}; ${first.remedy}`
  }
}
