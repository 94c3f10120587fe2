/** Where a command speaks: results on standard output, all else on standard error. */
import { createInterface, type Interface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { styleText } from 'node:util'
import { InvalidArgumentError } from 'commander'
import { suggestion, TocsinError } from '../lib/errors.ts'
import { escapeCharacters } from '../lib/logger.ts'
import { cleanLine } from '../messages/sanitize.ts'

export interface Terminal {
  /** Somebody reads standard output as it comes. */
  readonly isInteractive: boolean
  /** Aborts when standard output takes no more: its reader has seen enough, or its disk is full. */
  readonly outputClosed: AbortSignal
  print(text: string): void
  /** All of standard input. */
  readInput(): Promise<string>
  /** Errors may quote what somebody else wrote: what a terminal would act upon is shown instead. */
  printError(text: string): void
  /** Plain where colours are unwelcome: no terminal, NO_COLOR. */
  paint(style: Style, text: string): string
  /** One line that is written over; '' takes it away. Nothing but on a terminal. */
  progress(text: string): void
  /** undefined where nobody is there to answer. Throws Interruption. */
  confirm(question: string): Promise<boolean | undefined>
  /**
   * What is typed, without showing it; undefined where nobody is there to answer. Throws Interruption, and
   * CommandError where the question could not be seen.
   */
  askSecret(question: string): Promise<string | undefined>
}

const controlCharacters = /(?![\n\t])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/gu

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

type MaybeTerminal = { isTTY?: boolean }

export interface Streams {
  input: NodeJS.ReadableStream & MaybeTerminal
  output: NodeJS.WritableStream & MaybeTerminal
  errors: NodeJS.WritableStream & MaybeTerminal
}

/** Ctrl-C instead of an answer. */
export class Interruption extends Error {
  override readonly name = 'Interruption'
}

export function createTerminal({ input, output, errors }: Streams): Terminal {
  let hasProgressLine = false
  const outputClosed = watchOutputClosed(output)
  // nowhere is left to say so
  errors.on('error', () => undefined)
  return {
    isInteractive: output.isTTY === true,
    outputClosed,
    print(text) {
      if (!outputClosed.aborted) output.write(`${text}\n`)
    },
    readInput: () => textOf(input),
    printError: (text) => void errors.write(`${escapeCharacters(text, controlCharacters)}\n`),
    paint: (style, text) => styleText(style, text, { stream: output }),
    progress(text) {
      if (errors.isTTY && (text !== '' || hasProgressLine)) errors.write(`\r\u001B[K${text}`)
      hasProgressLine = text !== ''
    },
    async confirm(question) {
      if (!input.isTTY || !errors.isTTY) return undefined
      const reader = createInterface({ input, output: errors })
      reader.once('SIGINT', () => errors.write('\n'))
      const answer = await askLine(reader, `${question} [y/N] `)
      return /^y(es)?$/i.test(answer.trim())
    },
    async askSecret(question) {
      if (!input.isTTY) return undefined
      const screen = [errors, output].find(({ isTTY }) => isTTY)
      if (screen === undefined) throw new CommandError('mistake', noScreenProblem)
      const nullOutput = new Writable({ write: (_chunk, _encoding, done) => done() })
      screen.write(`${question} `)
      try {
        return await askLine(createInterface({ input, output: nullOutput, terminal: true }), '')
      } finally {
        screen.write('\n')
      }
    },
  }
}

const noScreenProblem =
  'a secret is asked for where nobody can see it; give it on standard input, or leave standard error on the terminal'

function watchOutputClosed(output: Streams['output']): AbortSignal {
  const closed = new AbortController()
  output.on('error', (error) => closed.abort(error))
  return closed.signal
}

/** Empty where the input ends instead. The terminal is as it was afterwards. */
async function askLine(reader: Interface, question: string): Promise<string> {
  try {
    return await new Promise((resolve, reject) => {
      reader.once('SIGINT', () => reject(new Interruption()))
      reader.once('close', () => resolve(''))
      reader.question(question).then(resolve, reject)
    })
  } finally {
    reader.close()
  }
}

/** Times, spans and tables as people read them. */

export { formatDuration } from '../lib/time-zone.ts'

/** `2026-11-01 12:00:05 UTC`. */
export function formatUtcTime(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

export function formatIsoTime(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString()
}

export function pluralize(count: number, thing: string, several = `${thing}s`): string {
  return `${count} ${count === 1 ? thing : several}`
}

/** Text that others wrote, on one line and harmless to a terminal. */
export function sanitize(text: string, maxLength = 300): string {
  return cleanLine(text, maxLength)
}

/** Columns two spaces apart; the last one is as long as it is. */
export function formatTable(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_cell, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** Invisible, or a line's end to some reader; of controls JSON itself escapes only some. */
const invisibleCharacters = /(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/gu

/** JSON that no terminal acts upon: the same value when it is parsed. */
export function jsonText(value: unknown, indent?: number): string {
  return escapeCharacters(JSON.stringify(value, null, indent), invisibleCharacters)
}

const maxShortText = 200

/** What an operator writes for others to read. Throws commander's InvalidArgumentError. */
export function parseShortText(text: string): string {
  const trimmed = text.trim()
  if (trimmed !== '' && trimmed.length <= maxShortText && !/\p{Cc}/u.test(trimmed)) return trimmed
  throw new InvalidArgumentError(`Write up to ${maxShortText} characters, in one line.`)
}

/** `mistake`: the operator must ask differently; `refused`: the world said no. */
type CommandReason = 'mistake' | 'refused'

/** A command that cannot do what it was asked. */
export class CommandError extends TocsinError {
  override readonly name = 'CommandError'
  readonly code = 'TOCSIN_COMMAND'
  readonly reason: CommandReason

  constructor(reason: CommandReason, message: string, options: { cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.reason = reason
  }
}

/** The member called `name`; throws CommandError with the nearest name, or all there are. */
export function findNamed<Named extends { name: string }>(
  members: readonly Named[],
  name: string,
  thing: string,
): Named {
  const found = members.find((member) => member.name === name)
  if (found !== undefined) return found
  const names = members.map((member) => member.name)
  const remedy = names.length === 0 ? 'there is none' : suggestion(name, names, 'there are')
  throw new CommandError('mistake', `there is no ${thing} "${name}"; ${remedy}`)
}

/** How many columns a terminal gives to a text. */

const wideCharacter =
  /[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/u
const zeroWidthCharacter = /\p{M}/u

/** Of text without control characters; two columns for what East Asia writes and for emoji. */
export function measureWidth(text: string): number {
  let width = 0
  for (const character of text) width += measureCharacter(character)
  return width
}

/** At most `columns` wide, the last column an ellipsis where something was cut. */
export function cutToWidth(text: string, columns: number): string {
  if (measureWidth(text) <= columns) return text
  let cut = ''
  let left = columns - 1
  for (const character of text) {
    left -= measureCharacter(character)
    if (left < 0) break
    cut += character
  }
  return columns < 1 ? '' : `${cut}…`
}

function measureCharacter(character: string): number {
  if (zeroWidthCharacter.test(character)) return 0
  return wideCharacter.test(character) ? 2 : 1
}
