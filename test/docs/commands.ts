/** The commands with their arguments and options, from the table that parses them. */
import { itemStates } from '../../src/store/item-states.ts'
import { PassThrough } from 'node:stream'
import { Command, type Argument, type Option } from 'commander'
import { addCommands } from '../../src/cli/commands.ts'
import type { Context } from '../../src/cli/context.ts'
import { createTerminal } from '../../src/cli/terminal.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { code, codes, plain, sentence, table } from './markdown.ts'

/** An option of so many commands stands in one table for all. */
const manyCommands = 5

/** A command that has none below it, as it is called. */
interface Leaf {
  name: string
  command: Command
}

/** Every command with the options that it takes, such as `feeds list` and `--why`. */
export async function optionsByCommand(): Promise<Map<string, string[]>> {
  const leaves = (await topCommands()).flatMap((command) => leavesOf(command))
  return new Map(
    leaves.map(({ name, command }) => [
      name,
      command.options.flatMap(({ long, short }) => [long, short]).filter((flag) => flag != null),
    ]),
  )
}

/** One part for each noun, and one for the options that many commands have. */
export async function commandBlocks(): Promise<[string, string][]> {
  const tops = await topCommands()
  const leaves = tops.flatMap((command) => sectionsOf(command))
  const options = leaves.flatMap(({ command }) => optionsOf(command))
  const isCommon = (option: Option): boolean =>
    options.filter((other) => isAlike(option, other)).length >= manyCommands
  const common = options.filter(
    (option, at) => isCommon(option) && options.findIndex((other) => isAlike(option, other)) === at,
  )
  return [
    ['common options', optionTable(common)],
    [
      'item states',
      table(
        ['State', 'The item'],
        Object.entries(itemStates).map(([state, says]) => [code(state), says]),
      ),
    ],
    ...tops.map((top): [string, string] => [
      `command ${top.name()}`,
      sectionsOf(top)
        .map((leaf) => sectionOf(leaf, isCommon))
        .join('\n\n'),
    ]),
  ]
}

/** Each noun is loaded by its own arguments; the others stand there by name alone. */
async function topCommands(): Promise<Command[]> {
  const none = new Command('tocsin')
  await addCommands(none, [], idleContext())
  return Promise.all(
    none.commands.map(async (bare) => {
      const program = new Command('tocsin')
      await addCommands(program, [bare.name()], idleContext())
      const found = program.commands.find((command) => command.name() === bare.name())
      return found ?? bare
    }),
  )
}

/** Nothing is run, so nothing is asked of it. */
function idleContext(): Context {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  return {
    env: {},
    terminal: createTerminal({ input, output, errors }),
    stop: new AbortController().signal,
    reloads: new EventTarget(),
    clock: systemClock,
    exitCode: 0,
  }
}

function leavesOf(command: Command, above = ''): Leaf[] {
  const name = `${above} ${command.name()}`.trim()
  const below = command.createHelp().visibleCommands(command)
  const own = below.filter((inner) => inner.name() !== 'help')
  return own.length === 0 ? [{ name, command }] : own.flatMap((inner) => leavesOf(inner, name))
}

/** The operations of the API stand in docs/api-notes.md, and their options in their help. */
function sectionsOf(top: Command): Leaf[] {
  return top.name() === 'api' ? [{ name: 'api', command: top }] : leavesOf(top)
}

function optionsOf(command: Command): Option[] {
  const options = command.createHelp().visibleOptions(command)
  return options.filter(({ long }) => long !== '--help')
}

function isAlike(a: Option, b: Option): boolean {
  return optionCells(a).join('\n') === optionCells(b).join('\n')
}

function sectionOf({ name, command }: Leaf, isCommon: (option: Option) => boolean): string {
  const options = optionsOf(command)
  const own = options.filter((option) => !isCommon(option))
  const common = options.filter(isCommon).map(({ long }) => code(long ?? ''))
  const usage = [name, ...command.registeredArguments.map(argumentTerm)].join(' ')
  const args = command.registeredArguments.filter(({ description }) => description)
  return [
    `### ${code(usage)}`,
    plain(sentence(command.description())),
    ...args.map((one) => `- ${code(argumentTerm(one))}: ${plain(sentence(one.description))}`),
    ...(own.length > 0 ? [optionTable(own)] : []),
    ...(common.length > 0 ? [`[Also](#common-options): ${common.join(', ')}.`] : []),
  ].join('\n\n')
}

function argumentTerm(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${name}>` : `[${name}]`
}

function optionTable(options: readonly Option[]): string {
  return table(['Option', 'Default', 'Meaning'], options.map(optionCells))
}

function optionCells(option: Option): string[] {
  const { flags, description, argChoices, defaultValue, defaultValueDescription } = option
  const [, told] = / \(default: (.+)\)$/.exec(description) ?? []
  const fallback = option.negate ? undefined : (defaultValue as string | number | undefined)
  const choices = argChoices ? ` Choices: ${codes(argChoices)}.` : ''
  return [
    code(flags),
    fallback === undefined ? (told ?? '') : code(defaultValueDescription ?? String(fallback)),
    sentence(description.replace(/ \(default: .+\)$/, '')) + choices,
  ]
}
