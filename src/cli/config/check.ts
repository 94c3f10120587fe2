/** The `check` command: validates the configuration and summarizes what it does. */

import { Command } from 'commander'
import { type Config, ConfigError, formatMistake } from '../../config/config.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { createRouter, listNodes } from '../../routing/router.ts'
import { type Finding, findingLine, isProblem, runProbes } from '../set-up/probe.ts'
import { nodeLines } from './tree-text.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { pluralize } from '../terminal.ts'

interface CheckOptions extends CommonOptions {
  live?: true
}

export function checkCommand(context: Context): Command {
  return addCommonOptions(new Command('check'))
    .argument('[file]', 'the configuration; as --config')
    .option('--live', 'also ask each service whether it knows the words of filters')
    .action(async (file: string | undefined, options: CheckOptions) => {
      const loaded = load(context, file ?? options.config, options)
      if (loaded) await check(context, loaded, options)
    })
}

/** Returns undefined when its mistakes were printed as JSON. Throws ConfigError for text output. */
function load(
  context: Context,
  file: string | undefined,
  options: CheckOptions,
): LoadedConfig | undefined {
  try {
    return loadConfigFile(context, file)
  } catch (error) {
    if (!(error instanceof ConfigError) || options.output === 'text') throw error
    print(context, options, { json: { ok: false, mistakes: error.mistakes }, lines: () => [] })
    context.exitCode = 2
    return undefined
  }
}

/** Sets exit code 2 when the API would refuse a feed, or cannot be asked. */
async function check(context: Context, loaded: LoadedConfig, options: CheckOptions): Promise<void> {
  const { config, warnings } = loaded
  const live = options.live ? await askServices(context, config) : undefined
  const ok = !live?.some(isProblem)
  print(context, options, {
    json: { ok, warnings, ...(live && { live }) },
    lines: () => [
      ...summaryLines(loaded, context),
      ...(live ?? []).map((finding) => findingLine(context.terminal, finding)),
    ],
  })
  if (!ok) context.exitCode = 2
}

async function askServices({ stop }: Context, config: Config): Promise<Finding[]> {
  const { withRedis } = await import('../open/open-store.ts')
  const { createKeys } = await import('../../redis/keys.ts')
  const { withUpstream } = await import('../open/open-upstream.ts')
  const { probes } = await import('../set-up/probes.ts')
  return withRedis(config.redis, (redis) => {
    // opens no ledger: a check takes nothing in
    const store = { redis, keys: createKeys(config.redis.prefix), ledgers: [] }
    return withUpstream(config, store, async (upstream) => {
      const found: Finding[] = []
      for (const { name } of config.accounts) {
        const needs = { config, store, client: upstream.client(name) }
        found.push(...(await runProbes(probes.filters, needs, stop)))
      }
      return found
    })
  })
}

function summaryLines({ config, warnings }: LoadedConfig, { terminal }: Context): string[] {
  const { root } = createRouter(config.route)
  const { accounts, feeds, sinks } = config
  const counts = [
    pluralize(accounts.length, 'account'),
    pluralize(feeds.length, 'feed'),
    pluralize(sinks.length, 'sink'),
    pluralize(listNodes(root).length, 'route'),
  ]
  return [
    ...warnings.map(
      (warning) => `${terminal.paint('yellow', 'warning')} ${formatMistake(warning)}`,
    ),
    `${terminal.paint('green', 'good')}: ${counts.join(', ')}`,
    ...nodeLines(root).map((line) => `  ${line}`),
  ]
}
