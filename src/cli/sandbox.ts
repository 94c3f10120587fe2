/**
 * The `sandbox` command: starts the sandbox, writes a configuration for it and prints the messages
 * that it gets.
 */

import { existsSync, readFileSync } from 'node:fs'
import { Command, InvalidArgumentError, Option } from 'commander'
import { errorCode, quoteForShell } from '../lib/errors.ts'
import { rate } from '../lib/config-fields.ts'
import { createPrivateFile, replacePrivateFile } from '../lib/private-files.ts'
import { appHost } from '../sandbox/api/event-items.ts'
import { type SandboxGroup, type SandboxOptions, withDefaults } from '../sandbox/options.ts'
import { objectsIn, type Received } from '../sandbox/receivers/received.ts'
import { knownReportRequests } from '../sandbox/reports/reports.ts'
import { type Sandbox, type SandboxAddresses, startSandbox } from '../sandbox/sandbox.ts'
import { addCommonOptions, calledAs, type CommonOptions, type Context } from './context.ts'
import { durationParser } from './options.ts'
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
    flag(
      '--late-by <duration>',
      'longest delay of late arrivals, e.g. 3d',
      durationParser('1s'),
    ).default(withDefaults({}).lateMaxMs, '30m'),
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
  const { url, slackUrl, teamsUrl, webhookUrl, webhookSecret, smtpUrl, apiKeys } = sandbox
  const { pagerDutyUrl, pagerDutyKey } = sandbox
  if (options.output === 'json') {
    const started = {
      url,
      api_keys: apiKeys,
      slack_url: slackUrl,
      teams_url: teamsUrl,
      pagerduty_url: pagerDutyUrl,
      routing_key: pagerDutyKey,
      webhook_url: webhookUrl,
      webhook_secret: webhookSecret,
      smtp_url: smtpUrl,
      report_requests: knownReportRequests,
      config: configFor(options, sandbox),
    }
    return terminal.print(JSON.stringify(started))
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

function numberParser(least: number, most: number, isWhole = false): (text: string) => number {
  return (text) => {
    const value = text === '' ? Number.NaN : Number(text)
    if (value >= least && value <= most && (!isWhole || /^\d+$/.test(text))) return value
    const what = isWhole ? 'a whole number' : 'a number'
    throw new InvalidArgumentError(`Write ${what} from ${least} to ${most}.`)
  }
}

const parsePort = numberParser(0, 65_535, true)
const parseCount = numberParser(0, 1_000_000, true)
const parseShare = numberParser(0, 1)
const parseLimit = numberParser(0.001, 10_000)

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

const rateField = rate('What arrives.')

function parseRate(text: string): number {
  if (text === '0') return 0
  const parsed = rateField.safeParse(text)
  if (parsed.success) return parsed.data
  throw new InvalidArgumentError('Write 0, or a rate such as 1/s or 30/m.')
}

/**
 * A configuration, as YAML, that polls the sandbox and delivers to its mock receivers: a feed for
 * each group, and with `hasCredentials` one for each identifier.
 */
export function sandboxConfig(
  sandbox: SandboxAddresses,
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
  return `accounts:
  main:
    base_url: ${sandbox.url}
    link_hosts: [${appHost}]
    api_key: ${sandbox.apiKeys[0] ?? ''}

feeds:
${[...feeds, ...credentialFeeds].join('\n')}

${sinksYaml(sandbox)}
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

function sinksYaml(sandbox: SandboxAddresses): string {
  return `sinks:
  soc:
    type: slack
    url: ${sandbox.slackUrl}
    allow_private: true
  teams:
    type: teams
    url: ${sandbox.teamsUrl}
    allow_private: true
  duty:
    type: pagerduty
    routing_key: ${sandbox.pagerDutyKey}
    url: ${sandbox.pagerDutyUrl}
    allow_private: true
  oncall:
    type: email
    smtp: ${sandbox.smtpUrl}
    from: tocsin@example.com
    to: [oncall@example.com]
    tls: off
  siem:
    type: webhook
    url: ${sandbox.webhookUrl}
    secret: ${sandbox.webhookSecret}
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
