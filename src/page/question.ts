/** A question that the API answers: its query as zod, and who reads the answer. */
import { z } from 'zod'
import { severities } from '../event.ts'
import { readPastTime, readPeriodEnd } from '../lib/moment.ts'
import type { Asker } from './asker.ts'
import { PageError } from './page-error.ts'

export interface Question<Query extends z.ZodObject = z.ZodObject, Answer = unknown> {
  /** Below `/api/v1`, with `:name` for parts of the path. */
  path: string
  summary: string
  query: Query
  /** It is dear, and the same for all who see the same accounts. */
  isShared?: true
  ask(asker: Asker, query: z.output<Query>): Promise<Answer>
}

export type AnswerOf<Row extends { ask: (...asked: never[]) => Promise<unknown> }> = Awaited<
  ReturnType<Row['ask']>
>

/** Infers the query and the answer of a row. */
export function question<Query extends z.ZodObject, Answer>(
  row: Question<Query, Answer>,
): Question<Query, Answer> {
  return row
}

/** Throws PageError 400 that names the field. */
export function readFields<Fields extends z.ZodObject>(
  fields: Fields,
  given: object,
): z.output<Fields> {
  const parsed = fields.safeParse(given)
  if (parsed.success) return parsed.data
  const [first] = parsed.error.issues
  const place = first?.path.join('.') ?? ''
  throw new PageError('bad_request', `${place}: ${first?.message ?? 'not valid'}`)
}

const shortText = (describe: string): z.ZodType<string | undefined> =>
  z
    .string()
    .trim()
    .max(600)
    .optional()
    .transform((text) => (text === '' ? undefined : text)) // a form sends its empty fields
    .describe(describe)

const oneOf = <Word extends string>(
  words: readonly Word[],
  describe: string,
): z.ZodType<Word | undefined> =>
  z
    .union([z.enum(words), z.literal('')])
    .optional()
    .transform((word) => word || undefined)
    .describe(describe)

/** Fields of queries. An empty one counts as left out. */
export const field = {
  text: shortText,
  oneOf,
  account: shortText('Only of this account.'),
  since: shortText('From then on: how long ago, such as 7d, or a time such as 2026-11-01T12:00Z.'),
  until: shortText('Up to then, as since; a day such as 2026-11-01 counts whole.'),
  cursor: shortText('Where to go on: next of the answer before.'),
  severity: oneOf(severities, 'This or higher.'),
  limit: z.coerce.number().int().min(1).max(200).default(50).describe('How many, at most.'),
}

/** By what both lists of messages and of items are narrowed. */
export const listFields = {
  account: field.account,
  since: field.since,
  until: field.until,
  sink: field.text('Of this sink.'),
  recipient: field.text('Of this recipient, as lists name it.'),
  severity: field.severity,
}

export interface AskedPeriod {
  fromMs: number
  toMs: number
}

const weekMs = 7 * 86_400_000

/** Resolves `since`, by default a week before `until`, as far back as the ledger goes. Throws PageError 400. */
export function readPeriod(
  { since, until }: { since?: string | undefined; until?: string | undefined },
  { nowMs, config }: Pick<Asker, 'nowMs' | 'config'>,
): AskedPeriod {
  const toMs = until === undefined ? nowMs : requireTime('until', readPeriodEnd(until, nowMs))
  const fromMs =
    since === undefined ? toMs - weekMs : requireTime('since', readPastTime(since, nowMs))
  if (fromMs > toMs) throw new PageError('bad_request', 'since: lies after until', 'exchange them')
  const firstMs = nowMs - config.ledger.historyRetentionMs
  return { fromMs: Math.max(fromMs, firstMs), toMs: Math.max(toMs, firstMs) }
}

function requireTime(name: string, time: ReturnType<typeof readPastTime>): number {
  if (typeof time === 'number') return time
  throw new PageError('bad_request', `${name}: ${time.problem}`, time.remedy)
}
