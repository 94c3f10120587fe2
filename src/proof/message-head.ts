import { messageIdOf } from '../digest/seal.ts'
import type { Book } from '../ledger/book.ts'
import { parseRef } from '../ledger/refs.ts'

export interface Message {
  messageId: string
  sink: string
}

/**
 * What a sealed message lacks; undefined: nothing. Its head is in one of the books: the message itself, or,
 * while it is being made, the timer whose turn makes it. So a digest's is in the book that leads.
 */
export async function headOf(
  books: readonly Book[],
  message: Message,
): Promise<'message' | 'message_due' | undefined> {
  for (const book of books) if (await isBeingMade(book, message)) return undefined
  for (const book of books) {
    const { messageId, sink } = message
    if ((await book.redis.exists(book.key('batch', messageId))) === 0) continue
    const due = await book.redis.zscore(book.key('due', sink), `b:${messageId}:${sink}`)
    return due === null ? 'message_due' : undefined
  }
  return 'message'
}

async function isBeingMade(book: Book, { messageId, sink }: Message): Promise<boolean> {
  const made = await messagesBeingMade(book, sink)
  return made.some((message) => message.messageId === messageId)
}

/** Messages that the book's turns make, or would make next: for a sink, or for all. */
export async function messagesBeingMade(book: Book, sink?: string): Promise<Message[]> {
  const timers = await book.redis.zrange(book.key('timers'), '0', '-1')
  const refs = timers
    .map(parseRef)
    .filter((ref) => ref.kind === 'gathering')
    .filter((ref) => sink === undefined || ref.sink === sink)
  return Promise.all(
    refs.map(async ({ id, sink: to }) => {
      const [opened, seq] = await book.redis.hmget(book.key('gather', id), 'opened', 'seq')
      const turn = { book, id, openedAtMs: Number(opened), sequence: Number(seq ?? 0) }
      return { messageId: messageIdOf(turn), sink: to }
    }),
  )
}
