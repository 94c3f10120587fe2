/** Where a command speaks: results on standard output, all else on standard error. */
import { createInterface, type Interface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { styleText } from 'node:util'
import { escaped } from '../runtime/escaped.ts'
import { CommandError } from './command-error.ts'

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
