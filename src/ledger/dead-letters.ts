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
  const name = book.key('dead', sink)
  const total = await countDeadLetters(book, sink)
  const pairs = await book.redis.zrevrange(name, offset, offset + count - 1, 'WITHSCORES')
  const letters: DeadLetter[] = []
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const letter = await readLetter(book, pairs[i] ?? '', Number(pairs[i + 1]))
    if (letter) letters.push(letter)
  }
  return { total, letters }
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
  const record = await readRecord(book, recordId)
  const item = record?.items[Number(index)]
  if (!item || item.state !== 'dead') return undefined
  return readLetter(book, `i:${recordId}:${index}:${item.sink}`, item.endedAtMs ?? 0)
}

async function readLetter(
  book: Book,
  ref: string,
  diedAtMs: number,
): Promise<DeadLetter | undefined> {
  const [, recordId = '', index = ''] = ref.split(':')
  const record = await readRecord(book, recordId)
  const item = record?.items[Number(index)]
  if (!record || !item) return undefined
  return { id: `${book.account}.${recordId}.${index}`, ref, diedAtMs, record, item }
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
