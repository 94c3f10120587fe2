/**
 * The `completion` command: a script that completes commands, options and their words in a shell,
 * from the commands themselves. The names of feeds, sinks and accounts it asks this command for.
 */
import { Argument, Command } from 'commander'
import { isName } from '../lib/config-fields.ts'
import { namesInFile } from '../config/parse-file.ts'
import { bashScript, fishScript, type CompletionTable, zshScript } from './completion-scripts.ts'
import { loadCommands } from './commands.ts'
import { type Context, defaultConfigFile } from './context.ts'

const shells = { bash: bashScript, zsh: zshScript, fish: fishScript }
const sections = ['feeds', 'sinks', 'accounts'] as const

type Section = (typeof sections)[number]

export function completionCommand(context: Context): Command {
  const what = new Argument('<shell>', 'the shell; or whose names are printed, one a line')
  return new Command('completion')
    .addArgument(what.choices([...Object.keys(shells), ...sections]))
    .option(
      '--config <file>',
      'where names are read (default: config/tocsin.yaml, then tocsin.yaml)',
    )
    .action(async (word: keyof typeof shells | Section, { config }: { config?: string }) => {
      if (word === 'feeds' || word === 'sinks' || word === 'accounts') {
        const names = readNames(context, word, config ?? defaultConfigFile())
        if (names.length > 0) context.terminal.print(names.join('\n'))
      } else {
        const table = tabulate(await loadCommands(context))
        context.terminal.print(shells[word](table))
      }
    })
}

/** None for a file that cannot be read: a shell that completes is no place for its mistakes. */
function readNames({ env }: Context, section: Section, file: string): string[] {
  try {
    // a shell would act on anything but a name
    return namesInFile(section, { file, env }).filter(isName)
  } catch {
    return []
  }
}

function tabulate(commands: readonly Command[]): CompletionTable {
  const table: CompletionTable = { words: [], options: [], values: [] }
  const topNames = commands.map((command) => command.name())
  table.words.push({ path: '', words: [...topNames, 'help'].join(' ') })
  for (const command of commands) addRows(table, command, command.name())
  return table
}

function addRows(table: CompletionTable, command: Command, path: string): void {
  const { commands, options, registeredArguments } = command
  const [first] = registeredArguments
  const words =
    first === undefined || commands.length > 0
      ? commands.map((inner) => inner.name()).join(' ')
      : (first.argChoices?.join(' ') ?? wordsFor(first.name()))
  if (words !== '') table.words.push({ path, words })
  const flags = options.filter(({ hidden }) => !hidden)
  table.options.push({ path, words: [...flags.map(({ long }) => long ?? ''), '--help'].join(' ') })
  for (const option of flags.filter((one) => one.required || one.optional)) {
    const placeholder = /<([a-z ]+)(\.\.\.)?>/.exec(option.flags)?.[1] ?? ''
    const value = option.argChoices?.join(' ') ?? wordsFor(option.name(), placeholder)
    table.values.push({ path: `${path} ${option.long}`, words: value })
  }
  for (const inner of commands) addRows(table, inner, `${path} ${inner.name()}`)
}

/** `@feeds` and the like stand for names of the configuration, `@none` for free words. */
function wordsFor(name: string, placeholder = name): string {
  if (name === 'feed') return '@feeds'
  if (name === 'account') return '@accounts'
  if (name === 'sink' || name === 'from' || placeholder === 'sink') {
    return placeholder === 'place' ? '@none' : '@sinks'
  }
  return placeholder === 'file' || placeholder === 'folder' ? '@files' : '@none'
}
