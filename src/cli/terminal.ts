/** Where a command writes: results to standard output, everything else to standard error. */
import { createInterface, type Interface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { styleText } from 'node:util'
import { InvalidArgumentError } from 'commander'
import { Interruption, suggestion, ReasonedError } from '../lib/errors.ts'
import { escapeCharacters } from '../lib/logger.ts'
import { measureWidth } from '../lib/text-width.ts'
import { cleanLine } from '../messages/sanitize.ts'

export interface Terminal {
  /** Standard output is a terminal. */
  readonly isInteractive: boolean
  /** Aborts when standard output takes no more: its reader closed it, or its disk is full. */
  readonly outputClosed: AbortSignal
  print(text: string): void
  /** Standard input. */
  readonly input: NodeJS.ReadableStream
  /**
   * Writes to standard error; control characters are shown instead of sent, since errors may quote
   * outside text.
   */
  printError(text: string): void
  /** Adds no colour where there is no terminal, or with NO_COLOR. */
  paint(style: Style, text: string): string
  /** Overwrites one status line; '' removes it. Does nothing without a terminal. */
  progress(text: string): void
  /** Resolves with undefined when nobody can answer. Throws Interruption. */
  confirm(question: string): Promise<boolean | undefined>
  /**
   * Reads a line without echo; undefined when nobody can answer. Throws Interruption, and
   * CommandError when the question could not be seen.
   */
  askSecret(question: string): Promise<string | undefined>
}

const controlCharacters = /(?![\n\t])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/gu

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

type MaybeTerminal = { isTTY?: boolean; readableEnded?: boolean }

export interface Streams {
  input: NodeJS.ReadableStream & MaybeTerminal
  output: NodeJS.WritableStream & MaybeTerminal
  errors: NodeJS.WritableStream & MaybeTerminal
}

export function createTerminal({ input, output, errors }: Streams): Terminal {
  let hasProgressLine = false
  const outputClosed = watchOutputClosed(output)
  const canAsk = input.isTTY === true && errors.isTTY === true
  // There is no other stream on which to report this.
  errors.on('error', () => undefined)
  return {
    isInteractive: output.isTTY === true,
    outputClosed,
    print(text) {
      if (!outputClosed.aborted) output.write(`${text}\n`)
    },
    input,
    printError: (text) => void errors.write(`${escapeCharacters(text, controlCharacters)}\n`),
    paint: (style, text) => styleText(style, text, { stream: output }),
    progress(text) {
      if (errors.isTTY && (text !== '' || hasProgressLine)) errors.write(`\r\u001B[K${text}`)
      hasProgressLine = text !== ''
    },
    async confirm(question) {
      if (!canAsk) return undefined
      if (input.readableEnded) return false
      const reader = createInterface({ input, output: errors })
      reader.once('SIGINT', () => errors.write('\n'))
      return /^y(es)?$/i.test((await askLine(reader, `${question} [y/N] `)).trim())
    },
    async askSecret(question) {
      if (!input.isTTY) return undefined
      if (input.readableEnded) return ''
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
  'nobody can see the question for a secret; give it on standard input, or leave standard error on the terminal'

function watchOutputClosed(output: Streams['output']): AbortSignal {
  const closed = new AbortController()
  output.on('error', (error) => closed.abort(error))
  return closed.signal
}

/** Resolves with '' at the end of input, and restores the terminal. */
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

export { formatDuration, formatUtcTime } from '../lib/time-zone.ts'
export { Interruption, pluralize } from '../lib/errors.ts'
export { formatIsoTime, standstillJson } from '../operator/reports/columns.ts'

/** Makes outside text one line that is safe to print on a terminal. */
export function sanitize(text: string, maxLength = 300): string {
  return cleanLine(text, maxLength)
}

/** Pads columns to two spaces apart; the last one is not padded. */
export function formatTable(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_cell, column) =>
    Math.max(...rows.map((row) => measureWidth(row[column] ?? ''))),
  )
  return rows.map((row) =>
    row
      .map((cell, column) => padToWidth(cell, widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

function padToWidth(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - measureWidth(text)))
}

/**
 * Characters that are invisible, or line breaks to some readers; JSON itself escapes only some of
 * the controls.
 */
const invisibleCharacters = /(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/gu

/** JSON without characters that a terminal acts on; it parses to the same value. */
export function jsonText(value: unknown, indent?: number): string {
  return escapeCharacters(JSON.stringify(value, null, indent), invisibleCharacters)
}

/** Throws InvalidArgumentError. */
export function refuseEmpty(text: string): void {
  if (text.trim() === '') throw new InvalidArgumentError('It is empty; write a value.')
}

const maxShortText = 200

/** Parses a text that an operator writes for others. Throws InvalidArgumentError. */
export function parseShortText(text: string): string {
  const trimmed = text.trim()
  if (trimmed !== '' && trimmed.length <= maxShortText && !/\p{Cc}/u.test(trimmed)) return trimmed
  throw new InvalidArgumentError(`Write up to ${maxShortText} characters, in one line.`)
}

/**
 * `mistake`: the operator must change the command; `refused`: the state of things does not allow
 * it.
 */
type CommandReason = 'mistake' | 'refused'

/** A command cannot do what it was asked to. */
export class CommandError extends ReasonedError<CommandReason> {
  override readonly name = 'CommandError'
  readonly code = 'TOCSIN_COMMAND'
}

/** The member called `name`. Throws CommandError with the nearest name, or all names. */
export function findNamed<Named extends { name: string }>(
  members: readonly Named[],
  name: string,
  thing: string,
): Named {
  const found = members.find((member) => member.name === name)
  if (found !== undefined) return found
  const known = members.map((member) => member.name)
  const remedy = known.length === 0 ? 'there is none' : suggestion(name, known, 'known')
  throw new CommandError('mistake', `no ${thing} "${name}"; ${remedy}`)
}
