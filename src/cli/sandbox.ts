/**
 * The `sandbox` command: starts the sandbox, writes a configuration for it and prints the messages
 * that it gets.
 */

import { existsSync, readFileSync } from 'node:fs'
import { Command, InvalidArgumentError, Option } from 'commander'
import { errorCode, quoteForShell } from '../lib/errors.ts'
import { duration, rate } from '../lib/config-fields.ts'
import { createPrivateFile, replacePrivateFile } from '../lib/private-files.ts'
import { appHost } from '../sandbox/api/event-items.ts'
import { type SandboxGroup, type SandboxOptions, withDefaults } from '../sandbox/options.ts'
import { objectsIn, type Received } from '../sandbox/receivers/received.ts'
import { knownReportRequests } from '../sandbox/reports/reports.ts'
import { type Sandbox, startSandbox } from '../sandbox/sandbox.ts'
import { addCommonOptions, calledAs, type CommonOptions, type Context } from './context.ts'
import { CommandError, sanitize, formatUtcTime } from './terminal.ts'

interface SandboxCommandOptions extends CommonOptions {
  host: string
  port: number
  smtpPort: number
  rate: number
  backlog: number
  seed: number
  lateShare: number
  lateBy: number
  credentialRate: number
  searchLimit: number
  basicLimit: number
  webhookSecret?: string
  writeConfig?: string
}

export function sandboxCommand(context: Context): Command {
  const command = addCommonOptions(new Command('sandbox'))
  for (const option of sandboxFlags()) command.addOption(option)
  return command.action((options: SandboxCommandOptions) => runSandbox(context, options))
}

function sandboxFlags(): Option[] {
  const flag = <Value>(flags: string, says: string, parse: (text: string) => Value): Option =>
    new Option(flags, says).argParser(parse)
  return [
    new Option('--host <address>', 'where to listen').default('127.0.0.1'),
    flag('--port <n>', 'port of the API and all receivers but mail; 0: any', parsePort).default(
      8080,
    ),
    flag('--smtp-port <n>', 'port of the mail server; 0: any', parsePort).default(2525),
    flag('--rate <rate>', 'rate of events, e.g. 1/s or 6/m', parseRate).default(0.2, '12/m'),
    flag('--backlog <n>', 'events of the last 24 h at the start', parseCount).default(20),
    flag('--seed <n>', 'the same seed makes the same events', parseCount).default(1),
    flag('--late-share <share>', 'share of late arrivals, 0 to 1', parseShare).default(0),
    flag('--late-by <duration>', 'longest delay of late arrivals, e.g. 3d', parseLateness).default(
      withDefaults({}).lateMaxMs,
      '30m',
    ),
    flag('--credential-rate <rate>', 'rate of leaked credentials', parseRate).default(0),
    flag('--search-limit <n>', 'search requests per second', parseLimit).default(1),
    flag('--basic-limit <n>', 'other requests per second', parseLimit).default(4),
    flag('--webhook-secret <whsec>', 'webhook signing secret; else random', parseWebhookSecret),
    new Option('--write-config <file>', 'write a configuration for the sandbox'),
  ]
}

async function runSandbox(context: Context, options: SandboxCommandOptions): Promise<void> {
  const sandbox = await startOrExplain(options)
  try {
    const { writeConfig: file } = options
    if (file !== undefined) writeConfig(file, configFor(options, sandbox))
    printStartup(context, options, sandbox)
    const stopShowing = sandbox.onReceived((message) => showReceived(context, options, message))
    await new Promise<void>((resolve) => {
      context.stop.addEventListener('abort', () => resolve(), { once: true })
      if (context.stop.aborted) resolve()
    })
    stopShowing()
  } finally {
    await sandbox.close()
  }
}

async function startOrExplain(options: SandboxCommandOptions): Promise<Sandbox> {
  try {
    return await startSandbox(toSandboxOptions(options))
  } catch (cause) {
    const code = errorCode(cause)
    if (!/^E(ADDR|ACCES|NOTFOUND)/.test(code)) throw cause
    const ports = `${options.port} and ${options.smtpPort}`
    const problem = `cannot listen on ${options.host} at the ports ${ports} (${code})`
    const remedy = 'choose others with --port and --smtp-port'
    throw new CommandError('refused', `the sandbox ${problem}; ${remedy}`, { cause })
  }
}

function toSandboxOptions(options: SandboxCommandOptions): SandboxOptions {
  const limits = { search: options.searchLimit, basic: options.basicLimit }
  return {
    host: options.host,
    port: options.port,
    smtpPort: options.smtpPort,
    seed: options.seed,
    backlog: options.backlog,
    eventsPerSecond: options.rate,
    lateShare: options.lateShare,
    lateMaxMs: options.lateBy,
    credentialsPerSecond: options.credentialRate,
    organizations: withDefaults({}).organizations.map((one) => ({ ...one, limits })),
    ...(options.webhookSecret ? { webhookSecret: options.webhookSecret } : {}),
  }
}

function printStartup(context: Context, options: SandboxCommandOptions, sandbox: Sandbox): void {
  const { terminal } = context
  const { url, slackUrl, webhookUrl, webhookSecret, smtpUrl, apiKeys } = sandbox
  const { teamsUrl, pagerDutyUrl, pagerDutyKey } = sandbox
  const config = configFor(options, sandbox)
  if (options.output === 'json') {
    const addresses = { url, api_keys: apiKeys, slack_url: slackUrl, webhook_url: webhookUrl }
    const secrets = { webhook_secret: webhookSecret, smtp_url: smtpUrl }
    const others = { teams_url: teamsUrl, pagerduty_url: pagerDutyUrl, routing_key: pagerDutyKey }
    const reports = { report_requests: knownReportRequests }
    terminal.print(JSON.stringify({ ...addresses, ...others, ...secrets, ...reports, config }))
    return
  }
  const tocsin = calledAs(context)
  const receivers = [
    ['Slack', slackUrl],
    ['Teams', teamsUrl],
    ['PagerDuty', `${pagerDutyUrl} (key ${pagerDutyKey})`],
    ['webhook', `${webhookUrl} (signed by ${webhookSecret})`],
    ['mail', `${new URL(smtpUrl).host} (${smtpUrl}, no user)`],
  ] as const
  terminal.print(
    [
      `${terminal.paint('bold', 'the sandbox runs')}: ${url} (API key ${apiKeys.join(', ')})`,
      `its state: ${url}/_sandbox/state; faults: POST ${url}/_sandbox/faults`,
      `requests for threat-flow reports that stand there: ${formatReportRequests()}`,
      `its receivers, as "${tocsin} init --allow-private --link-host ${appHost}" asks for them:`,
      ...receivers.map(([name, address]) => `  ${name.padEnd(9)} ${address}`),
      options.writeConfig === undefined
        ? 'a configuration that uses it: --write-config <file>'
        : `a configuration that uses it is written; try: ${tocsin} run --config ${quoteForShell(options.writeConfig)}`,
      terminal.paint('dim', 'what arrives is shown here; Ctrl-C ends the sandbox'),
    ].join('\n'),
  )
}

function configFor(options: SandboxCommandOptions, sandbox: Sandbox): string {
  return sandboxConfig(sandbox, withDefaults({}).groups, options.credentialRate > 0)
}

const writtenBySandbox = '# Written by "tocsin sandbox", which replaces it.\n'

/** Replaces what a sandbox wrote, and nothing else. Throws CommandError. */
function writeConfig(file: string, config: string): void {
  const text = `${writtenBySandbox}redis:\n  embedded: ./data\n\n${config}`
  try {
    if (!existsSync(file)) return createPrivateFile(file, text)
    if (readFileSync(file, 'utf8').startsWith(writtenBySandbox)) {
      return replacePrivateFile(file, text)
    }
  } catch (cause) {
    const code = errorCode(cause)
    throw new CommandError('mistake', `--write-config: ${file} cannot be written (${code})`, {
      cause,
    })
  }
  throw new CommandError(
    'mistake',
    `--write-config: ${file} is not of a sandbox; name another file`,
  )
}

function formatReportRequests(): string {
  return Object.entries(knownReportRequests)
    .map(([state, id]) => `${id} (${state})`)
    .join(', ')
}

function wholeNumber(text: string, max: number): number {
  if (!/^\d+$/.test(text) || Number(text) > max) {
    throw new InvalidArgumentError(`Write a whole number from 0 to ${max}.`)
  }
  return Number(text)
}

const parsePort = (text: string): number => wholeNumber(text, 65_535)
const parseCount = (text: string): number => wholeNumber(text, 1_000_000)

function parseShare(text: string): number {
  const value = Number(text)
  if (text !== '' && value >= 0 && value <= 1) return value
  throw new InvalidArgumentError('Write a number from 0 to 1.')
}

/**
 * Accepts 24 to 64 bytes in base64 (Standard Webhooks, Signature scheme). Throws
 * InvalidArgumentError.
 */
function parseWebhookSecret(text: string): string {
  const [, encoded = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? []
  const { length } = Buffer.from(encoded, 'base64')
  if (length >= 24 && length <= 64) return text
  throw new InvalidArgumentError('Write whsec_ and 24 to 64 bytes in base64.')
}

function parseLimit(text: string): number {
  const value = Number(text)
  if (value > 0 && value <= 10_000) return value
  throw new InvalidArgumentError('Write a number above 0.')
}

const latenessField = duration('How late at most.', '1s')

function parseLateness(text: string): number {
  const parsed = latenessField.safeParse(text)
  if (parsed.success) return parsed.data
  throw new InvalidArgumentError('Write a duration of 1s or more, such as 30m or 3d.')
}

const rateField = rate('What arrives.')

function parseRate(text: string): number {
  if (text === '0') return 0
  const parsed = rateField.safeParse(text)
  if (parsed.success) return parsed.data
  throw new InvalidArgumentError('Write 0, or a rate such as 1/s or 30/m.')
}

type SandboxAddresses = Pick<
  Sandbox,
  | 'url'
  | 'slackUrl'
  | 'teamsUrl'
  | 'pagerDutyUrl'
  | 'pagerDutyKey'
  | 'webhookUrl'
  | 'webhookSecret'
  | 'smtpUrl'
  | 'apiKeys'
>

/**
 * A configuration, as YAML, that polls the sandbox and delivers to its mock receivers: a feed for
 * each group, and with `hasCredentials` one for each identifier.
 */
export function sandboxConfig(
  addresses: SandboxAddresses,
  groups: readonly SandboxGroup[],
  hasCredentials = false,
): string {
  const identifiers = hasCredentials ? groups.flatMap((group) => group.identifiers) : []
  const credentialFeeds = identifiers.flatMap(({ id }) => [
    `  credentials-${id}:`,
    '    type: credentials',
    `    identifier: ${id}`,
    '    severity: high',
    '    every: 10s',
  ])
  const feeds = groups.flatMap(({ id, name }) => [
    `  ${name.toLowerCase()}:`,
    '    type: events',
    `    identifier_group: ${id}`,
    '    every: 10s',
    '    detail: [high, critical]',
  ])
  const { url, apiKeys } = addresses
  return `accounts:
  main:
    base_url: ${url}
    link_hosts: [${appHost}]
    api_key: ${apiKeys[0] ?? ''}

feeds:
${[...feeds, ...credentialFeeds].join('\n')}

${sinksYaml(addresses)}
route:
  sinks: [siem]
  routes:
    - name: urgent
      matchers: ['severity>=high']
      sinks: [soc, teams, duty, siem, oncall]
    - name: medium
      matchers: ['severity="medium"']
      sinks: [soc, teams, siem]
`
}

function sinksYaml(addresses: SandboxAddresses): string {
  const { slackUrl, teamsUrl, pagerDutyUrl, pagerDutyKey } = addresses
  const { webhookUrl, webhookSecret, smtpUrl } = addresses
  return `sinks:
  soc:
    type: slack
    url: ${slackUrl}
    allow_private: true
  teams:
    type: teams
    url: ${teamsUrl}
    allow_private: true
  duty:
    type: pagerduty
    routing_key: ${pagerDutyKey}
    url: ${pagerDutyUrl}
    allow_private: true
  oncall:
    type: email
    smtp: ${smtpUrl}
    from: tocsin@example.com
    to: [oncall@example.com]
    tls: off
  siem:
    type: webhook
    url: ${webhookUrl}
    secret: ${webhookSecret}
    allow_private: true
    batch: { max: 50, wait: 1s }
`
}

/** Prints one line for each message that a mock receiver took. */
export function showReceived(
  { terminal }: Context,
  { output }: CommonOptions,
  message: Received,
): void {
  const { sink, id, atMs, to, uids } = message
  if (output === 'json') {
    terminal.print(JSON.stringify({ at: new Date(atMs).toISOString(), sink, to, id, uids }))
    return
  }
  const place = `${sink.padEnd(9)} ${sanitize(to, 60)}`
  terminal.print(
    `${terminal.paint('dim', formatUtcTime(atMs))} ${place}: ${sanitize(messageSubject(message), 160)}`,
  )
}

function messageSubject({ sink, mail, json, uids, id }: Received): string {
  if (mail) return mail.subject
  const texts = sink === 'webhook' ? [] : objectsIn(json).map(titleIn)
  const text = texts.find((found) => found !== undefined)
  if (text !== undefined) return text
  return uids.length > 0 ? uids.join(', ') : (id ?? 'a message without an id')
}

/** The text of a Slack message, the summary of an incident, or the first line of a card. */
function titleIn({ text, summary, inlines }: Record<string, unknown>): string | undefined {
  if (Array.isArray(inlines))
    return objectsIn(inlines)
      .map((run) => String(run['text']))
      .join('')
  return [text, summary].find((one) => typeof one === 'string')
}
