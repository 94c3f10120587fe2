/** What is said of a command line that cannot be read: what is wrong, and what was probably meant. */
import { type Command, InvalidArgumentError } from 'commander'
import { findNearest, formatList } from '../lib/errors.ts'
import { unknownName } from './terminal.ts'

/** Rewrites commander's message, which names the wrong word but not where it stands. */
export function explainUsageError(text: string, command: Command, args: readonly string[]): string {
  const unknownCommand = /^error: unknown command '(.*)'/s.exec(text)?.[1]
  if (unknownCommand !== undefined) return unknownCommandError(unknownCommand, command, args)
  const unknownOption = /^error: unknown option '(.*)'/s.exec(text)?.[1]
  if (unknownOption !== undefined) return unknownOptionError(unknownOption, command)
  return explainUnknownValue(text) ?? text
}

/** One form for a value of a closed list, whether commander looked it up or `parseWord` did. */
function explainUnknownValue(text: string): string | undefined {
  const option = /^error: option '(?:-\w, )?(--[\w-]+).*?' argument '(.*)' is invalid\. (.*)$/s
  const argument = /^error: command-argument value '(.*)' is invalid for argument '(.*)'\. (.*)$/s
  const [, flag, given] = option.exec(text) ?? []
  const [, value, name] = argument.exec(text) ?? []
  const [thing, word] = flag === undefined ? [name, value] : [flag, given]
  if (thing === undefined || word === undefined) return undefined
  const choices = /\. Allowed choices are (.*)\.\s*$/s.exec(text)?.[1]
  if (choices !== undefined) return `error: ${unknownName(thing, word, choices.split(', '))}`
  const said = /\. no (".*)$/s.exec(text)?.[1]
  return said && `error: no ${thing} ${said}`
}

/** Throws InvalidArgumentError. */
export function refuseEmpty(text: string): void {
  if (text.trim() === '') throw new InvalidArgumentError('It is empty; write a value.')
}

/** The words by which a command is called, the program first. */
function fullName(command: Command): string {
  return command.parent ? `${fullName(command.parent)} ${command.name()}` : command.name()
}

function unknownCommandError(word: string, command: Command, args: readonly string[]): string {
  const names = [...command.commands.map((inner) => inner.name()), 'help']
  const problem = `error: no command "${fullName(command)} ${word}"`
  // `list feeds`
  const next = args[args.indexOf(word) + 1] ?? ''
  if (!command.parent && command.commands.some((inner) => inner.name() === next))
    return `${problem}; did you mean "tocsin ${next} ${word}"?`
  return `${problem}; ${whatThereIs(word, names, `${fullName(command)} `)}`
}

function unknownOptionError(flag: string, command: Command): string {
  const [given = flag] = flag.split('=')
  const name = fullName(command)
  const problem = `error: ${name} has no option ${given}`
  if (!command.parent) {
    return `${problem}; options stand behind the command, such as: tocsin check --output json`
  }
  const flags = command.options.flatMap(({ long, hidden }) => (long && !hidden ? [long] : []))
  const meant = isLong(given) ? findMeantFlag(given, [...flags, '--help']) : undefined
  const remedy = meant === undefined ? `see: ${name} --help` : `did you mean ${meant}?`
  return `${problem}; ${remedy}`
}

function isLong(flag: string): boolean {
  return flag.startsWith('--')
}

/** Its beginning counts: `--out` is `--output`, which is far from it by letters. */
function findMeantFlag(given: string, flags: readonly string[]): string | undefined {
  const bare = flags.map((flag) => flag.slice(2))
  const word = given.slice(2)
  const beginning = word.length > 1 ? bare.filter((flag) => flag.startsWith(word)) : []
  const meant = beginning.length === 1 ? beginning[0] : findNearest(word, bare)
  return meant === undefined ? undefined : `--${meant}`
}

/** `did you mean "…"?`, else all that there are. `before`: what stands before the word. */
function whatThereIs(word: string, known: readonly string[], before: string): string {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[_\s-]/g, '')
  const beginning = known.filter((one) => word.length > 2 && plain(one).startsWith(plain(word)))
  const meant = beginning.length === 1 ? beginning[0] : findNearest(plain(word), known)
  return meant === undefined ? `known: ${formatList(known)}` : `did you mean "${before}${meant}"?`
}

/** Prints the help that `help feeds list` asks for; commander's own knows one word. Throws then. */
export function showHelp(program: Command, args: readonly string[]): void {
  const words = helpWords(args)
  let command = program
  for (const word of words) {
    if (command.commands.length === 0) break
    const next = command.commands.find((inner) => inner.name() === word)
    if (!next) {
      const code = 'commander.unknownCommand'
      return command.error(`error: unknown command '${word}'`, { code })
    }
    command = next
  }
  if (words.length > 0) command.help()
}

/** `help feeds list` and `feeds help list`; empty: no such question. */
function helpWords(args: readonly string[]): string[] {
  const [first = '', second, ...rest] = args
  if (args.some((word) => word.startsWith('-'))) return []
  if (first === 'help') return args.slice(1)
  return second === 'help' ? [first, ...rest] : []
}
