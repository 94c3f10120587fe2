/** The `check` command: validates the configuration, and prints what it has and its tree. */
import { Command } from 'commander'
import { ConfigError, formatMistake } from '../../config/config.ts'
import { createRouter, listNodes } from '../../routing/router.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { pluralize } from '../terminal.ts'
import { nodeLines } from './tree-text.ts'

export function checkCommand(context: Context): Command {
  return addCommonOptions(new Command('check'))
    .argument('[file]', 'the configuration; as --config')
    .action((file: string | undefined, options: CommonOptions) =>
      check(context, file ?? options.config, options),
    )
}

/** Throws ConfigError for text output. */
function check(context: Context, file: string | undefined, options: CommonOptions): void {
  try {
    const { config, warnings } = loadConfigFile(context, file)
    const { root } = createRouter(config.route)
    const counts = [
      pluralize(config.accounts.length, 'account'),
      pluralize(config.feeds.length, 'feed'),
      pluralize(config.sinks.length, 'sink'),
      pluralize(listNodes(root).length, 'route'),
    ]
    const { terminal } = context
    print(context, options, {
      json: { ok: true, warnings },
      lines: () => [
        ...warnings.map(
          (warning) => `${terminal.paint('yellow', 'warning')} ${formatMistake(warning)}`,
        ),
        `${terminal.paint('green', 'good')}: ${counts.join(', ')}`,
        ...nodeLines(root).map((line) => `  ${line}`),
      ],
    })
  } catch (error) {
    if (!(error instanceof ConfigError) || options.output === 'text') throw error
    print(context, options, { json: { ok: false, mistakes: error.mistakes }, lines: () => [] })
    context.exitCode = 2
  }
}
