import { Command, Option } from 'commander'
import { ConfigError, formatMistake } from '../config/config-error.ts'
import type { Config, SinkConfig } from '../config/config.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { RouteConfig } from '../routing/config.ts'
import { loadConfigFile } from './config-file.ts'
import { addCommonOptions, print, type CommonOptions, type Context } from './context.ts'
import { askedJson, feedInWords } from './feed-words.ts'
import { refuseLater } from './later-commands.ts'
import { counted, spanInWords } from './words.ts'

interface CheckOptions extends CommonOptions {
  againstRedis?: true
}

export function checkCommand(context: Context): Command {
  return addCommonOptions(new Command('check'))
    .description('name every mistake in the configuration, or say what it does')
    .argument('[file]', 'the configuration; as --config')
    .addOption(new Option('--against-redis').hideHelp())
    .action((file: string | undefined, options: CheckOptions) => {
      if (options.againstRedis) refuseLater('check --against-redis')
      check(context, file ?? options.config, options)
    })
}

function check(context: Context, file: string | undefined, options: CheckOptions): void {
  try {
    const loaded = loadConfigFile(context, file)
    print(context, options, {
      json: { ok: true, warnings: loaded.warnings, ...summaryOf(loaded.config) },
      lines: () => linesOf(loaded, context),
    })
  } catch (error) {
    if (!(error instanceof ConfigError) || options.output === 'text') throw error
    print(context, options, { json: { ok: false, mistakes: error.mistakes }, lines: () => [] })
    context.exitCode = 2
  }
}

function summaryOf({ accounts, feeds, sinks, route }: Config): Record<string, unknown> {
  return {
    accounts: accounts.map(({ name, baseUrl, limits }) => ({ name, base_url: baseUrl, limits })),
    feeds: feeds.map((feed) => ({
      name: feed.name,
      account: feed.account,
      type: feed.type,
      ...askedJson(feed),
      every_seconds: feed.everyMs / 1000,
    })),
    sinks: sinks.map((sink) => ({ name: sink.name, type: sink.type })),
    routes: routesOf(route).map(({ depth: _depth, ...entry }) => entry),
  }
}

function linesOf({ config, warnings }: LoadedConfig, { terminal }: Context): string[] {
  const { accounts, feeds, sinks, route } = config
  const heading = (text: string): string => terminal.paint('bold', text)
  return [
    ...warnings.map(
      (warning) => `${terminal.paint('yellow', 'warning')} ${formatMistake(warning)}`,
    ),
    `${terminal.paint('green', 'good')}: ${countsOf(config)}`,
    heading('accounts'),
    ...accounts.map(
      ({ name, baseUrl, limits }) =>
        `  ${name}: ${baseUrl}, search ${limits.search}/s, basic ${limits.basic}/s`,
    ),
    heading('feeds'),
    ...feeds.map(
      (feed) =>
        `  ${feed.name}: ${feedInWords(feed)}, account ${feed.account}, every ${spanInWords(feed.everyMs)}`,
    ),
    heading('sinks'),
    ...sinks.map((sink) => `  ${sink.name}: ${describeSink(sink)}`),
    heading('routes'),
    ...routesOf(route).map(routeLine),
  ]
}

function countsOf({ accounts, feeds, sinks, route }: Config): string {
  return [
    counted(accounts.length, 'account'),
    counted(feeds.length, 'feed'),
    counted(sinks.length, 'sink'),
    counted(routesOf(route).length, 'route'),
  ].join(', ')
}

function describeSink(sink: SinkConfig): string {
  switch (sink.type) {
    case 'slack':
      return 'Slack'
    case 'email':
      return `e-mail to ${sink.to.join(', ')}`
    case 'webhook': {
      const signed = sink.secrets.length > 0 ? 'signed' : 'unsigned'
      return `webhook, ${signed}${sink.batch ? `, batches of up to ${sink.batch.max}` : ''}`
    }
  }
}

interface RouteEntry {
  name: string
  depth: number
  matchers: string[]
  /** Its own, or what it has from above. */
  sinks: string[]
  continue: boolean
}

function routesOf(route: RouteConfig, depth = 0, above: string[] = []): RouteEntry[] {
  const sinks = route.sinks ?? above
  const matchers = route.matchers.map(({ text }) => text)
  const entry = { name: route.name, depth, matchers, sinks, continue: route.continue }
  return [entry, ...route.routes.flatMap((child) => routesOf(child, depth + 1, sinks))]
}

function routeLine({ name, depth, matchers, sinks, ...route }: RouteEntry): string {
  const rest = depth === 0 ? 'the rest' : 'every event'
  const when = matchers.length === 0 ? rest : matchers.join(' and ')
  const goesOn = route.continue ? ', and the search goes on' : ''
  return `${'  '.repeat(depth + 1)}${name}: ${when} → ${sinks.join(', ')}${goesOn}`
}
