/** Takes a sealed message apart again whose sink cannot be reached: its members go on as single items. */
import type { Book } from '../ledger/book.ts'
import { storedPlaces, type Gathering } from '../ledger/collecting.ts'
import { putOff } from '../ledger/due.ts'
import { haveLedger, type MessageAbout } from './sealed-message.ts'

export interface UnsealOptions {
  books: readonly Book[]
  /** An attempt that began so many ms ago has died with its process. */
  staleMs: number
  /** How long the sink's batch collects; undefined where it sends singly. */
  batchWaitMs: number | undefined
  /** By destination: where people's items wait for company; empty for machines. */
  places: Readonly<Record<string, Gathering>>
}

/** `busy`: it is being sent just now; `answered`: its outcome is known, only members are to be settled. */
export type Unsealed = 'open' | 'busy' | 'answered'

/** One Redis script takes so many members at most: it blocks everybody else meanwhile. */
const unsealChunk = 300

/** When the rest of a message is looked at again that has members in a ledger which is closed here. */
const absentMs = 3_600_000

interface Facts {
  n: number
  h?: unknown
  rr?: number
  x?: number
}

type Step =
  | { status: 'open' | 'busy' | 'answered' }
  | { status: 'going' | 'none'; left: number; facts: Facts; about?: string }

/**
 * Whoever is cut off in the middle leaves a message that nobody sends, still due: the next one to come
 * by goes on. A turn that was cut off while it sealed has members and no message; it is undone, too.
 */
export async function unsealMessage(
  lead: Book,
  ref: string,
  options: UnsealOptions,
): Promise<Unsealed> {
  const first = await unsealSome(lead, ref, options)
  if (!('left' in first)) return first.status
  const accounts = accountsOf(first.about, options.books)
  for (const { account } of accounts) {
    const book = options.books.find((one) => one.account === account)
    const facts = book === lead ? undefined : first.facts
    const ended = book && (await unsealRest(book, { ref, facts, options }))
    if (ended) return ended // accepted after all: the rest is settled, not taken out
  }
  if (first.status === 'none') return 'open'
  const absent = accounts
    .map(({ account }) => account)
    .filter((account) => !options.books.some((book) => book.account === account))
  if (await haveLedger(lead, absent)) await putOff(lead, ref, absentMs)
  else await lead.run('drop-message', ref)
  return 'open'
}

function accountsOf(about: string | undefined, books: readonly Book[]): { account: string }[] {
  if (about === undefined) return [...books]
  return (JSON.parse(about) as MessageAbout).accounts.map((account) => ({ account }))
}

async function unsealRest(
  book: Book,
  { ref, facts, options }: { ref: string; facts: Facts | undefined; options: UnsealOptions },
): Promise<Unsealed | undefined> {
  for (;;) {
    const step = await unsealSome(book, ref, options, facts)
    if (!('left' in step)) return step.status
    if (step.left === 0) return undefined
  }
}

function unsealSome(
  book: Book,
  ref: string,
  { staleMs, batchWaitMs, places }: UnsealOptions,
  facts?: Facts,
): Promise<Step> {
  const ask = { ref, stale: staleMs, max: unsealChunk, bw: batchWaitMs, facts }
  return book.ask<Step>('unseal-message', JSON.stringify({ ...ask, places: storedPlaces(places) }))
}
