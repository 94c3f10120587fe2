/** The `sandbox` command: starts the sandbox, and writes a configuration for it. */

import { existsSync, readFileSync, rmSync } from 'node:fs'
import { Command, InvalidArgumentError, Option } from 'commander'
import { errorCode, quoteForShell } from '../../lib/errors.ts'
import { rate } from '../../lib/config/config-fields.ts'
import { createPrivateFile } from '../../lib/config/private-files.ts'
import { appHost } from '../../sandbox/api/event-items.ts'
import { type SandboxGroup, withDefaults } from '../../sandbox/options.ts'
import { type Sandbox, type SandboxAddresses, startSandbox } from '../../sandbox/sandbox.ts'
import { addCommonOptions, calledAs, type CommonOptions, type Context } from '../context.ts'
import { CommandError } from '../terminal.ts'

interface SandboxCommandOptions extends CommonOptions {
  host: string
  port: number
  smtpPort: number
  rate: number
  writeConfig?: string
}

export function sandboxCommand(context: Context): Command {
  return addCommonOptions(new Command('sandbox'))
    .option('--host <address>', 'where to listen', '127.0.0.1')
    .option('--port <n>', 'port of the API and all receivers but mail; 0: any', parsePort, 8080)
    .option('--smtp-port <n>', 'port of the mail server; 0: any', parsePort, 2525)
    .addOption(
      new Option('--rate <rate>', 'rate of events, e.g. 1/s or 6/m')
        .argParser(parseRate)
        .default(0.2, '12/m'),
    )
    .option('--write-config <file>', 'write a configuration for the sandbox')
    .action((options: SandboxCommandOptions) => runSandbox(context, options))
}

async function runSandbox(context: Context, options: SandboxCommandOptions): Promise<void> {
  const sandbox = await startOrExplain(options)
  try {
    const { writeConfig: file } = options
    if (file !== undefined) writeConfig(file, configFor(sandbox))
    printStartup(context, options, sandbox)
    await new Promise<void>((resolve) => {
      context.stop.addEventListener('abort', () => resolve(), { once: true })
      if (context.stop.aborted) resolve()
    })
  } finally {
    await sandbox.close()
  }
}

async function startOrExplain(options: SandboxCommandOptions): Promise<Sandbox> {
  const { host, port, smtpPort, rate: eventsPerSecond } = options
  try {
    return await startSandbox({
      host,
      port,
      smtpPort,
      eventsPerSecond,
      backlog: 20,
      seed: 1,
    })
  } catch (cause) {
    const code = errorCode(cause)
    if (!/^E(ADDR|ACCES|NOTFOUND)/.test(code)) throw cause
    const problem = `cannot listen on ${host} at the ports ${port} and ${smtpPort} (${code})`
    const remedy = 'choose others with --port and --smtp-port'
    throw new CommandError('refused', `the sandbox ${problem}; ${remedy}`, { cause })
  }
}

function printStartup(context: Context, options: SandboxCommandOptions, sandbox: Sandbox): void {
  const { terminal } = context
  const { url, slackUrl, teamsUrl, webhookUrl, webhookSecret, smtpUrl, apiKeys } = sandbox
  const { pagerDutyUrl, pagerDutyKey } = sandbox
  if (options.output === 'json') {
    return terminal.print(JSON.stringify({ url, api_keys: apiKeys, config: configFor(sandbox) }))
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
      `what its receivers get, live: ${sandbox.receivedUrl}`,
      `its state: ${url}/_sandbox/state; faults: POST ${url}/_sandbox/faults`,
      `its receivers, for sinks with allow_private: true (links lead to ${appHost}):`,
      ...receivers.map(([name, address]) => `  ${name.padEnd(9)} ${address}`),
      options.writeConfig === undefined
        ? 'a configuration that uses it: --write-config <file>'
        : `a configuration that uses it is written; try: ${tocsin} run --config ${quoteForShell(options.writeConfig)}`,
      terminal.paint('dim', 'Ctrl-C ends the sandbox'),
    ].join('\n'),
  )
}

function configFor(sandbox: Sandbox): string {
  return sandboxConfig(sandbox, withDefaults({}).groups)
}

const writtenBySandbox = '# Written by "tocsin sandbox", which replaces it.\n'

/** Replaces what a sandbox wrote, and nothing else. Throws CommandError. */
function writeConfig(file: string, config: string): void {
  if (file === '-') throw new CommandError('mistake', '--write-config -: write the name of a file')
  const text = `${writtenBySandbox}redis:\n  embedded: ./data-sandbox\n\n${config}`
  try {
    const isOwn = existsSync(file) && readFileSync(file, 'utf8').startsWith(writtenBySandbox)
    if (isOwn) rmSync(file)
    if (isOwn || !existsSync(file)) return createPrivateFile(file, text)
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

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Infinity
  if (port <= 65_535) return port
  throw new InvalidArgumentError('Write a whole number from 0 to 65535.')
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
 * each group.
 */
export function sandboxConfig(sandbox: SandboxAddresses, groups: readonly SandboxGroup[]): string {
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
${feeds.join('\n')}

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
