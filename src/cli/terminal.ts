/** Where a command speaks: results on standard output, all else on standard error. */
import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import { text as textOf } from 'node:stream/consumers'
import { styleText } from 'node:util'

export interface Terminal {
  /** Somebody reads standard output as it comes. */
  readonly isWatched: boolean
  print(text: string): void
  /** All of standard input. */
  readInput(): Promise<string>
  complain(text: string): void
  /** Plain where colours are unwelcome: no terminal, NO_COLOR. */
  paint(style: Style, text: string): string
  /** One line that is written over; '' takes it away. Nothing but on a terminal. */
  progress(text: string): void
  /** undefined where nobody is there to answer. */
  confirm(question: string): Promise<boolean | undefined>
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

type MaybeTerminal = { isTTY?: boolean }

export interface Streams {
  input: NodeJS.ReadableStream & MaybeTerminal
  output: NodeJS.WritableStream & MaybeTerminal
  errors: NodeJS.WritableStream & MaybeTerminal
}

export function createTerminal({ input, output, errors }: Streams): Terminal {
  let isOnLine = false
  return {
    isWatched: output.isTTY === true,
    print: (text) => void output.write(`${text}\n`),
    readInput: () => textOf(input),
    complain: (text) => void errors.write(`${text}\n`),
    paint: (style, text) => styleText(style, text, { stream: output }),
    progress(text) {
      if (errors.isTTY && (text !== '' || isOnLine)) errors.write(`\r\u001B[K${text}`)
      isOnLine = text !== ''
    },
    async confirm(question) {
      if (!input.isTTY || !errors.isTTY) return undefined
      const reader = createInterface({ input, output: errors })
      try {
        const closed = once(reader, 'close').then(() => '')
        const answer = await Promise.race([reader.question(`${question} [y/N] `), closed])
        return /^y(es)?$/i.test(answer.trim())
      } finally {
        reader.close()
      }
    },
  }
}
