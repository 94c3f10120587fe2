/** `pause` and `resume` of feeds and of sinks. */
import { Command } from 'commander'
import type { Config } from '../config/config.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from './context.ts'
import { type OpenStore, recordCommand, withStore } from './open/open-store.ts'
import { findNamed, formatUtcTime, parseShortText, sanitize, standstillJson } from './terminal.ts'

interface Pausing {
  thing: 'feed' | 'sink'
  /** Returns since when it is paused, ms: one that was paused already stays so since then. */
  pause: (store: OpenStore, config: Config, about: PauseReason) => Promise<number>
  /** Returns what it was before, and what that means. */
  resume: (store: OpenStore, config: Config, name: string) => Promise<Resumed>
}

export interface PauseReason {
  name: string
  reason: string
}

export interface Resumed {
  facts: Record<string, boolean | number>
  said: string
}

/** Adds both to the commands of the thing, and returns these. */
export function addPauseCommands(
  commands: Command,
  context: Context,
  { thing, ...acts }: Pausing,
): Command {
  const load = (name: string, options: CommonOptions): Config => {
    const { config } = loadConfigFile(context, options.config)
    findNamed<{ name: string }>(config[`${thing}s`], name, thing)
    return config
  }
  const record = <Result>(
    config: Config,
    place: string,
    perform: (store: OpenStore) => Promise<Result>,
  ): Promise<Result> =>
    withStore(config, (store) =>
      recordCommand(context, store, { act: `/${thing}s/${place}` }, () => perform(store)),
    )
  const pause = addCommonOptions(new Command('pause'))
    .description(`let a ${thing} stand still until it is resumed; nothing is lost`)
    .argument(`<${thing}>`, `name of the ${thing}`)
    .requiredOption(
      '--reason <text>',
      `why; whoever looks at the ${thing} reads it`,
      parseShortText,
    )
    .action(async (name: string, options: CommonOptions & { reason: string }) => {
      const { reason } = options
      const config = load(name, options)
      const sinceMs = await record(config, `${name}/pause`, (store) =>
        acts.pause(store, config, { name, reason }),
      )
      print(context, options, {
        json: { [thing]: name, paused: standstillJson({ reason, sinceMs }) },
        lines: () => [
          `${name} is paused since ${formatUtcTime(sinceMs)}: ${sanitize(reason)}`,
          `  What is under way still ends. It goes on with: tocsin ${thing}s resume ${name}`,
        ],
      })
    })
  const resume = addCommonOptions(new Command('resume'))
    .description(`let a ${thing} go on where it stopped, also one that is refused or down`)
    .argument(`<${thing}>`, `name of the ${thing}`)
    .action(async (name: string, options: CommonOptions) => {
      const config = load(name, options)
      const { facts, said } = await record(config, `${name}/resume`, (store) =>
        acts.resume(store, config, name),
      )
      print(context, options, { json: { [thing]: name, ...facts }, lines: () => [said] })
    })
  return commands.addCommand(pause).addCommand(resume)
}
