/** An act: a POST that changes something, by whoever may act. */
import type { z } from 'zod'
import type { Asker } from './asker.ts'

/** What an act came to, in sentences. */
export interface ActResult {
  /** False: nothing was changed, and the sentences say why. */
  done: boolean
  said: string[]
  /** Where the page shows what was touched. */
  url?: string | undefined
}

export type Actor = Asker

export interface ActRow<Input extends z.ZodObject = z.ZodObject> {
  /** Of the page, and below `/api/v1`; with `:name` for parts of the path. */
  path: string
  summary: string
  /** Parts of the path and fields of the body. */
  input: Input
  /** Throws PageError. */
  perform(actor: Actor, input: z.output<Input>): Promise<ActResult>
}

/** Infers the input of a row. */
export function act<Input extends z.ZodObject>(row: ActRow<Input>): ActRow<Input> {
  return row
}
