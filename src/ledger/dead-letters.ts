/** Dead letters: items that were given up, kept, and can be replayed while their payload is kept. */
import type { Book } from './book.ts'
import { readRecord, type Item, type LedgerRecord } from './records.ts'

export interface DeadLetter {
  /** `<account>.<record>.<index>`: what the commands take. */
  id: string
  ref: string
  diedAtMs: number
  record: LedgerRecord
  item: Item
}

export interface DeadLetterPage {
  total: number
  letters: DeadLetter[]
}

/** Newest first. */
export async function listDeadLetters(
  book: Book,
  sink: string,
  { offset, count }: { offset: number; count: number },
): Promise<DeadLetterPage> {
  const total = await countDeadLetters(book, sink)
  const name = book.key('dead', sink)
  const refs = await book.redis.zrevrange(name, offset, offset + count - 1)
  const letters = await Promise.all(
    refs.map((ref) => {
      const [, recordId = '', index = ''] = ref.split(':')
      return readLetter(book, recordId, index)
    }),
  )
  return { total, letters: letters.filter((letter) => letter !== undefined) }
}

/** A letter ends with its record's story; those that did are forgotten here. */
export async function countDeadLetters(book: Book, sink: string): Promise<number> {
  const name = book.key('dead', sink)
  const [seconds] = await book.redis.time()
  const oldestMs = Number(seconds) * 1000 - book.retention.story
  await book.redis.zremrangebyscore(name, '-inf', oldestMs)
  return book.redis.zcard(name)
}

/** undefined: no such letter in this book. `id` without the account. */
export async function findDeadLetter(book: Book, id: string): Promise<DeadLetter | undefined> {
  const [recordId = '', index = ''] = id.split('.')
  return readLetter(book, recordId, index)
}

/** undefined where it is dead no more: its event may have come again since its record ended. */
async function readLetter(
  book: Book,
  recordId: string,
  index: string,
): Promise<DeadLetter | undefined> {
  const record = await readRecord(book, recordId)
  const item = record?.items[Number(index)]
  if (!record || item?.state !== 'dead') return undefined
  const ref = `i:${recordId}:${index}:${item.sink}`
  const id = `${book.account}.${recordId}.${index}`
  return { id, ref, diedAtMs: item.endedAtMs ?? 0, record, item }
}

/** `no_payload`: the retention has dropped what would be sent. `collect`: it waits for a batch. */
export type LetterOutcome = 'done' | 'collect' | 'not_dead' | 'no_payload'

export async function replayDeadLetter(
  book: Book,
  ref: string,
  batchWaitMs: number | undefined,
): Promise<LetterOutcome> {
  return changeLetter(book, ref, 'replay', batchWaitMs)
}

/** Closes the letter; the item stays counted as dead. */
export async function discardDeadLetter(book: Book, ref: string): Promise<LetterOutcome> {
  return changeLetter(book, ref, 'discard', undefined)
}

async function changeLetter(
  book: Book,
  ref: string,
  verb: 'replay' | 'discard',
  batchWaitMs: number | undefined,
): Promise<LetterOutcome> {
  const { story, payload } = book.retention
  const answer = await book.run('dead-letter', ref, verb, batchWaitMs ?? '', story, payload)
  return answer as LetterOutcome
}
