/** Sealing: from that moment a message's members never change, whoever sends it and however often. */
import { createHash } from 'node:crypto'
import { severityRank } from '../event.ts'
import type { Summary } from '../messages/summary.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { type Group, postponeDue, toStoredGroup, toStoredGroups } from '../store/pending-items.ts'
import type { Verdict } from './flush-context.ts'
import { mutedGroup } from './placement.ts'
import type { Fence, Flush } from './timers.ts'

/** One Redis script takes so many members at most: it blocks everybody else meanwhile. */
const freezeChunk = 300

interface DecidedMember {
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
export function deriveMessageId({
  ledger,
  id,
  openedAtMs,
  sequence,
}: Pick<Flush, 'ledger' | 'id' | 'openedAtMs' | 'sequence'>): string {
  const parts = ['message', ledger.account, id, String(openedAtMs), String(sequence)]
  return createHash('sha1').update(parts.join('\0')).digest('hex')
}

/** The message that is being made, in one book. */
interface FreezeTarget {
  messageId: string
  /** The collection whose turn it is, as it was when the turn was claimed. */
  leadId: string
  fence: Fence
  /** Of several collections at once. */
  isStorm?: boolean
}

/** Moves members where their verdicts want them; false where the turn was closed by somebody else. */
export async function freezeMembers(
  ledger: AccountLedger,
  { messageId, leadId, fence, isStorm }: FreezeTarget,
  members: readonly DecidedMember[],
): Promise<boolean> {
  for (let offset = 0; offset < members.length; offset += freezeChunk) {
    const args = {
      lead: leadId,
      ...fence,
      bid: messageId,
      storm: isStorm,
      retention: ledger.retention,
      members: members.slice(offset, offset + freezeChunk).map(toStoredMember),
    }
    if (Number(await ledger.run('seal-members', JSON.stringify(args))) === 0) return false
  }
  return true
}

function toStoredMember({
  ref,
  destination,
  verdict,
  order,
}: DecidedMember): Record<string, unknown> {
  switch (verdict.act) {
    case 'send':
      return { r: ref, a: 'keep', o: order }
    case 'free':
      return { r: ref, a: 'free' }
    case 'suppress':
      return { r: ref, a: 'suppress', reason: verdict.reason, rule: verdict.rule }
    case 'hold': {
      const group = toStoredGroup(mutedGroup(destination, verdict.rule, verdict.untilMs))
      return {
        r: ref,
        a: 'hold',
        reason: 'mute',
        rule: verdict.rule,
        at: verdict.untilMs,
        place: group,
      }
    }
  }
}

/** Sends a collection's members on, each by itself. */
export function releaseMembers(flush: Flush, refs: readonly string[]): Promise<boolean> {
  const { ledger, id: leadId, fence, about } = flush
  const members = refs.map((ref, order) => {
    return { ref, destination: about.destination, verdict: { act: 'free' } as const, order }
  })
  return freezeMembers(ledger, { messageId: deriveMessageId(flush), leadId, fence }, members)
}

/** References that a message holds in this book already. */
export function readFrozenRefs(ledger: AccountLedger, messageId: string): Promise<string[]> {
  return ledger.redis.zrange(ledger.key('sealed', messageId), '0', '-1')
}

/** By which a message is claimed: of its worst severity; where it has none, as what holds several items. */
export function messageRank({ summary }: MessageAbout): number {
  return severityRank(summary.bySeverity[0]?.severity ?? 'high')
}

interface MessageClose {
  messageId: string
  /** How many members were sealed in this book. */
  members: number
  /**
   * The turns that end with this message, the leading one first, and when each has its next; undefined:
   * when something comes.
   */
  flushes: { flush: Flush; nextMs: number | undefined }[]
  message?: { sink: string; destination: string; about: MessageAbout } | undefined
  /** Of digests: where the next window begins, and what is noted for it. */
  window?: { toMs: number; note: string } | undefined
}

/**
 * `again`: a member came or went while the message was counted. The ref is empty where there is no
 * message, and where the turn is over already.
 */
export async function closeMessage(
  ledger: AccountLedger,
  close: MessageClose,
): Promise<{ status: 'closed'; ref: string } | { status: 'again' }> {
  const { message, window } = close
  const args = {
    bid: close.messageId,
    members: close.members,
    collections: close.flushes.map(({ flush, nextMs }, at) => ({
      id: flush.id,
      ...flush.fence,
      bid: at === 0 ? close.messageId : deriveMessageId(flush),
      k: flush.sink,
      claimed: flush.claimedUntilMs,
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
        rk: messageRank(message.about),
      },
    }),
  }
  const answer = String(await ledger.run('close-seal', JSON.stringify(args)))
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
export interface AnsweredMessage {
  /** The outcome. */
  o: 'delivered' | 'dead'
  /** Attempts, their notes, and how many answers were lost. */
  n: number
  h?: unknown
  rr?: number
  about?: string
}

/** When the rest of a message is looked at again that has members in a ledger which is closed here. */
const absentRetryMs = 3_600_000

/** One Redis script settles so many members at most: it blocks everybody else meanwhile. */
const settleChunk = 300

/**
 * Settles every member of a message in the books that hold them, then forgets the message. While an account
 * has a ledger that is not open here, its members stay, and the message with them.
 */
export async function settleMembers(
  lead: AccountLedger,
  ref: string,
  message: AnsweredMessage,
  findLedger: (account: string) => AccountLedger | undefined,
): Promise<void> {
  const messageId = ref.split(':')[1] ?? ''
  const { accounts } = JSON.parse(message.about ?? '{"accounts":[]}') as MessageAbout
  const args = {
    bid: messageId,
    outcome: message.o,
    n: message.n,
    h: message.h,
    rr: message.rr,
    max: settleChunk,
  }
  const absent = accounts.filter((account) => !findLedger(account))
  for (const account of accounts) {
    const ledger = findLedger(account)
    const text = JSON.stringify({ ...args, retention: ledger?.retention })
    while (ledger && Number(await ledger.run('settle-members', text)) > 0);
  }
  if (await someHaveLedger(lead, absent)) await postponeDue(lead, ref, absentRetryMs)
  else await lead.run('drop-message', ref)
}

/** Whether one of the accounts, whose books are not open here, has something; discarded ones have nothing. */
async function someHaveLedger(lead: AccountLedger, accounts: readonly string[]): Promise<boolean> {
  const answers = await Promise.all(accounts.map((account) => lead.hasLedger(account)))
  return answers.includes(true)
}

/** Takes a sealed message apart again whose sink cannot be reached: its members go on as single items. */

interface UnfreezeOptions {
  ledgers: readonly AccountLedger[]
  /** An attempt that began so many ms ago has died with its process. */
  staleMs: number
  /** How long the sink's batch collects; undefined where it sends singly. */
  batchWaitMs: number | undefined
  /** By destination: where people's items wait for company; empty for machines. */
  groups: Readonly<Record<string, Group>>
}

/** `busy`: it is being sent just now; `answered`: its outcome is known, only members are to be settled. */
export type UnfreezeResult = 'open' | 'busy' | 'answered'

/** One Redis script takes so many members at most: it blocks everybody else meanwhile. */
const unfreezeChunk = 300

interface AttemptFacts {
  n: number
  h?: unknown
  rr?: number
  x?: number
}

type UnfreezeStep =
  | { status: 'open' | 'busy' | 'answered' }
  | { status: 'going' | 'none'; left: number; facts: AttemptFacts; about?: string }

/**
 * Whoever is cut off in the middle leaves a message that nobody sends, still due: the next one to come
 * by goes on. A turn that was cut off while it sealed has members and no message; it is undone, too.
 */
export async function unfreezeMessage(
  lead: AccountLedger,
  ref: string,
  options: UnfreezeOptions,
): Promise<UnfreezeResult> {
  const first = await unfreezeSome(lead, ref, options)
  if (!('left' in first)) return first.status
  const accounts = readMessageAccounts(first.about, options.ledgers)
  for (const { account } of accounts) {
    const ledger = options.ledgers.find((other) => other.account === account)
    const facts = ledger === lead ? undefined : first.facts
    const ended = ledger && (await unfreezeRest(ledger, { ref, facts, options }))
    if (ended) return ended // accepted after all: the rest is settled, not taken out
  }
  if (first.status === 'none') return 'open'
  const absent = accounts
    .map(({ account }) => account)
    .filter((account) => !options.ledgers.some((ledger) => ledger.account === account))
  if (await someHaveLedger(lead, absent)) await postponeDue(lead, ref, absentRetryMs)
  else await lead.run('drop-message', ref)
  return 'open'
}

function readMessageAccounts(
  about: string | undefined,
  ledgers: readonly AccountLedger[],
): { account: string }[] {
  if (about === undefined) return [...ledgers]
  return (JSON.parse(about) as MessageAbout).accounts.map((account) => ({ account }))
}

async function unfreezeRest(
  ledger: AccountLedger,
  {
    ref,
    facts,
    options,
  }: { ref: string; facts: AttemptFacts | undefined; options: UnfreezeOptions },
): Promise<UnfreezeResult | undefined> {
  for (;;) {
    const step = await unfreezeSome(ledger, ref, options, facts)
    if (!('left' in step)) return step.status
    if (step.left === 0) return undefined
  }
}

function unfreezeSome(
  ledger: AccountLedger,
  ref: string,
  { staleMs, batchWaitMs, groups }: UnfreezeOptions,
  facts?: AttemptFacts,
): Promise<UnfreezeStep> {
  const args = { ref, stale: staleMs, max: unfreezeChunk, bw: batchWaitMs, facts }
  return ledger.runJson<UnfreezeStep>(
    'unseal-message',
    JSON.stringify({ ...args, places: toStoredGroups(groups) }),
  )
}
