/** Sealed messages for people: what they say, who is in them, and their settling, some members at a time. */
import type { Summary } from '../messages/summary.ts'
import type { Book } from '../ledger/book.ts'
import { putOff } from '../ledger/due.ts'

/** What is kept of a sealed message besides its members. */
export interface MessageAbout {
  summary: Summary
  /** The members to show, in order; the books that hold them. */
  shown: { account: string; ref: string }[]
  /** Every account that holds members. */
  accounts: string[]
  /** Answers that were lost to members before: the message may repeat them. */
  repeatRisks: number
}

/** A summary as stored, once its outcome is known. */
export interface SettlingBatch {
  /** The outcome. */
  o: 'delivered' | 'dead'
  /** Attempts, their notes, and how many answers were lost. */
  n: number
  h?: unknown
  rr?: number
  about?: string
}

/** When the rest of a message is looked at again that has members in a ledger which is closed here. */
const absentMs = 3_600_000

/** One Redis script settles so many members at most: it blocks everybody else meanwhile. */
const settleChunk = 300

/**
 * Settles every member of a message in the books that hold them, then forgets the message. While an account
 * has a ledger that is not open here, its members stay, and the message with them.
 */
export async function settleMembers(
  lead: Book,
  ref: string,
  batch: SettlingBatch,
  bookOf: (account: string) => Book | undefined,
): Promise<void> {
  const messageId = ref.split(':')[1] ?? ''
  const { accounts } = JSON.parse(batch.about ?? '{"accounts":[]}') as MessageAbout
  const ask = {
    bid: messageId,
    outcome: batch.o,
    n: batch.n,
    h: batch.h,
    rr: batch.rr,
    max: settleChunk,
  }
  const absent = accounts.filter((account) => !bookOf(account))
  for (const account of accounts) {
    const book = bookOf(account)
    const text = JSON.stringify({ ...ask, retention: book?.retention })
    while (book && Number(await book.run('settle-members', text)) > 0);
  }
  if (await haveLedger(lead, absent)) await putOff(lead, ref, absentMs)
  else await lead.run('drop-message', ref)
}

/** Whether one of the accounts, whose books are not open here, has something; discarded ones have nothing. */
export async function haveLedger(lead: Book, accounts: readonly string[]): Promise<boolean> {
  const answers = await Promise.all(accounts.map((account) => lead.hasLedger(account)))
  return answers.includes(true)
}
