/** Where a command speaks: results on standard output, all else on standard error. */
import { createInterface, type Interface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { styleText } from 'node:util'
import { InvalidArgumentError } from 'commander'
import { suggestion, TocsinError } from '../lib/errors.ts'
import { escaped } from '../lib/logger.ts'
import { cleanLine } from '../messages/sanitize.ts'

export interface Terminal {
  /** Somebody reads standard output as it comes. */
  readonly isWatched: boolean
  /** Aborts when standard output takes no more: its reader has seen enough, or its disk is full. */
  readonly unheard: AbortSignal
  print(text: string): void
  /** All of standard input. */
  readInput(): Promise<string>
  /** Errors may quote what somebody else wrote: what a terminal would act upon is shown instead. */
  complain(text: string): void
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

const actedUpon = /(?![\n\t])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/gu

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
  let isOnLine = false
  const unheard = unheardBy(output)
  // nowhere is left to say so
  errors.on('error', () => undefined)
  return {
    isWatched: output.isTTY === true,
    unheard,
    print(text) {
      if (!unheard.aborted) output.write(`${text}\n`)
    },
    readInput: () => textOf(input),
    complain: (text) => void errors.write(`${escaped(text, actedUpon)}\n`),
    paint: (style, text) => styleText(style, text, { stream: output }),
    progress(text) {
      if (errors.isTTY && (text !== '' || isOnLine)) errors.write(`\r\u001B[K${text}`)
      isOnLine = text !== ''
    },
    async confirm(question) {
      if (!input.isTTY || !errors.isTTY) return undefined
      const reader = createInterface({ input, output: errors })
      reader.once('SIGINT', () => errors.write('\n'))
      const answer = await ask(reader, `${question} [y/N] `)
      return /^y(es)?$/i.test(answer.trim())
    },
    async askSecret(question) {
      if (!input.isTTY) return undefined
      const seen = [errors, output].find(({ isTTY }) => isTTY)
      if (seen === undefined) throw new CommandError('mistake', unseenQuestion)
      const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
      seen.write(`${question} `)
      try {
        return await ask(createInterface({ input, output: nowhere, terminal: true }), '')
      } finally {
        seen.write('\n')
      }
    },
  }
}

const unseenQuestion =
  'a secret is asked for where nobody can see it; give it on standard input, or leave standard error on the terminal'

function unheardBy(output: Streams['output']): AbortSignal {
  const unheard = new AbortController()
  output.on('error', (error) => unheard.abort(error))
  return unheard.signal
}

/** Empty where the input ends instead. The terminal is as it was afterwards. */
async function ask(reader: Interface, question: string): Promise<string> {
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

export { spanInWords } from '../lib/time-zone.ts'

/** `2026-11-01 12:00:05 UTC`. */
export function timeInWords(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

export function isoTime(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString()
}

export function counted(count: number, thing: string, several = `${thing}s`): string {
  return `${count} ${count === 1 ? thing : several}`
}

/** Text that others wrote, on one line and harmless to a terminal. */
export function harmless(text: string, maxLength = 300): string {
  return cleanLine(text, maxLength)
}

/** Columns two spaces apart; the last one is as long as it is. */
export function table(rows: readonly (readonly string[])[]): string[] {
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
const unseen = /(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/gu

/** JSON that no terminal acts upon: the same value when it is parsed. */
export function jsonText(value: unknown, indent?: number): string {
  return escaped(JSON.stringify(value, null, indent), unseen)
}

const maxLength = 200

/** What an operator writes for others to read. Throws commander's InvalidArgumentError. */
export function shortText(text: string): string {
  const trimmed = text.trim()
  if (trimmed !== '' && trimmed.length <= maxLength && !/\p{Cc}/u.test(trimmed)) return trimmed
  throw new InvalidArgumentError(`Write up to ${maxLength} characters, in one line.`)
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

const wide =
  /[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/u
const without = /\p{M}/u

/** Of text without control characters; two columns for what East Asia writes and for emoji. */
export function widthOf(text: string): number {
  let width = 0
  for (const character of text) width += columnsOf(character)
  return width
}

/** At most `columns` wide, the last column an ellipsis where something was cut. */
export function cutToWidth(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  let kept = ''
  let left = columns - 1
  for (const character of text) {
    left -= columnsOf(character)
    if (left < 0) break
    kept += character
  }
  return columns < 1 ? '' : `${kept}…`
}

function columnsOf(character: string): number {
  if (without.test(character)) return 0
  return wide.test(character) ? 2 : 1
}
