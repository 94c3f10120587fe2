/** Sealing: from that moment a message's members never change, whoever sends it and however often. */
import { createHash } from 'node:crypto'
import { severityRank } from '../event.ts'
import type { Summary } from '../messages/summary.ts'
import type { Book } from '../store/account-ledger.ts'
import { type Gathering, putOff, storedGathering, storedPlaces } from '../store/pending-items.ts'
import type { Verdict } from './flush-context.ts'
import { heldPlace } from './placement.ts'
import type { Fence, Turn } from './timers.ts'

/** One Redis script takes so many members at most: it blocks everybody else meanwhile. */
const sealChunk = 300

interface Sorted {
  ref: string
  destination: string
  /** `free`: it goes on by itself. */
  verdict: Verdict | { act: 'free' }
  /** Place in the message. */
  order: number
}

/**
 * Names the message of a turn: the same when the turn is taken up again after a crash. A collection
 * that ended counts its turns from the start when it opens again, so its opening is part of the name.
 */
export function messageIdOf({
  book,
  id,
  openedAtMs,
  sequence,
}: Pick<Turn, 'book' | 'id' | 'openedAtMs' | 'sequence'>): string {
  const parts = ['message', book.account, id, String(openedAtMs), String(sequence)]
  return createHash('sha1').update(parts.join('\0')).digest('hex')
}

/** The message that is being made, in one book. */
interface Sealing {
  messageId: string
  /** The collection whose turn it is, as it was when the turn was claimed. */
  leadId: string
  fence: Fence
  /** Of several collections at once. */
  isStorm?: boolean
}

/** Moves members where their verdicts want them; false where the turn was closed by somebody else. */
export async function sealMembers(
  book: Book,
  { messageId, leadId, fence, isStorm }: Sealing,
  members: readonly Sorted[],
): Promise<boolean> {
  for (let at = 0; at < members.length; at += sealChunk) {
    const ask = {
      lead: leadId,
      ...fence,
      bid: messageId,
      storm: isStorm,
      retention: book.retention,
      members: members.slice(at, at + sealChunk).map(storedMember),
    }
    if (Number(await book.run('seal-members', JSON.stringify(ask))) === 0) return false
  }
  return true
}

function storedMember({ ref, destination, verdict, order }: Sorted): Record<string, unknown> {
  switch (verdict.act) {
    case 'send':
      return { r: ref, a: 'keep', o: order }
    case 'free':
      return { r: ref, a: 'free' }
    case 'suppress':
      return { r: ref, a: 'suppress', reason: verdict.reason, rule: verdict.rule }
    case 'hold': {
      const place = storedGathering(heldPlace(destination, verdict.rule, verdict.untilMs))
      return { r: ref, a: 'hold', reason: 'mute', rule: verdict.rule, at: verdict.untilMs, place }
    }
  }
}

/** Sends a collection's members on, each by itself. */
export function freeMembers(turn: Turn, refs: readonly string[]): Promise<boolean> {
  const { book, id: leadId, fence, about } = turn
  const members = refs.map((ref, order) => {
    return { ref, destination: about.destination, verdict: { act: 'free' } as const, order }
  })
  return sealMembers(book, { messageId: messageIdOf(turn), leadId, fence }, members)
}

/** References that a message holds in this book already. */
export function sealedMembers(book: Book, messageId: string): Promise<string[]> {
  return book.redis.zrange(book.key('sealed', messageId), '0', '-1')
}

/** By which a message is claimed: of its worst severity; where it has none, as what holds several items. */
export function rankOf({ summary }: MessageAbout): number {
  return severityRank(summary.bySeverity[0]?.severity ?? 'high')
}

interface Closing {
  messageId: string
  /** How many members were sealed in this book. */
  members: number
  /**
   * The turns that end with this message, the leading one first, and when each has its next; undefined:
   * when something comes.
   */
  turns: { turn: Turn; nextMs: number | undefined }[]
  message?: { sink: string; destination: string; about: MessageAbout } | undefined
  /** Of digests: where the next window begins, and what is noted for it. */
  window?: { toMs: number; note: string } | undefined
}

/**
 * `again`: a member came or went while the message was counted. The ref is empty where there is no
 * message, and where the turn is over already.
 */
export async function closeSeal(
  book: Book,
  closing: Closing,
): Promise<{ status: 'closed'; ref: string } | { status: 'again' }> {
  const { message, window } = closing
  const ask = {
    bid: closing.messageId,
    members: closing.members,
    collections: closing.turns.map(({ turn, nextMs }, at) => ({
      id: turn.id,
      ...turn.fence,
      bid: at === 0 ? closing.messageId : messageIdOf(turn),
      k: turn.sink,
      claimed: turn.claimedUntilMs,
      next: nextMs ?? false,
      ...(window && { from: window.toMs, told: window.toMs, note: window.note }),
    })),
    ...(message && {
      message: {
        k: message.sink,
        d: message.destination,
        kind: message.about.summary.kind,
        about: JSON.stringify(message.about),
        total: message.about.summary.total,
        rr: message.about.repeatRisks,
        rk: rankOf(message.about),
      },
    }),
  }
  const answer = String(await book.run('close-seal', JSON.stringify(ask)))
  return answer === 'again' ? { status: 'again' } : { status: 'closed', ref: answer }
}

/** Sealed messages for people: what they say, who is in them, and their settling, some members at a time. */

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
async function haveLedger(lead: Book, accounts: readonly string[]): Promise<boolean> {
  const answers = await Promise.all(accounts.map((account) => lead.hasLedger(account)))
  return answers.includes(true)
}

/** Takes a sealed message apart again whose sink cannot be reached: its members go on as single items. */

interface UnsealOptions {
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
