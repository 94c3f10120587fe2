/** Sealing: from that moment a message's members never change, whoever sends it and however often. */
import { severityRank } from '../events/severity.ts'
import { createHash } from 'node:crypto'
import type { Book } from '../ledger/book.ts'
import { storedGathering } from '../ledger/collecting.ts'
import type { MessageAbout } from './sealed-message.ts'
import { heldPlace } from './placement.ts'
import type { Verdict } from './gate.ts'
import type { Fence, Turn } from './timers.ts'

/** One Redis script takes so many members at most: it blocks everybody else meanwhile. */
const sealChunk = 300

export interface Sorted {
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
export interface Sealing {
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
  { messageId, leadId, fence, isStorm = false }: Sealing,
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

export interface Closing {
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
