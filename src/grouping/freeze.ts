/**
 * Frozen messages: freezing fixes a message's members, so that they stay the same whoever sends it
 * and however often. Also their settling and unfreezing, a bounded number of members at a time.
 */
import { createHash } from 'node:crypto'
import { severityRank } from '../event.ts'
import type { Summary } from '../messages/summary.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import {
  type Group,
  postponeDue,
  toStoredGroups,
  toStoredSuppressed,
} from '../store/pending-items.ts'
import type { Verdict } from '../routing/suppression.ts'
import { suppressedBy } from './placement.ts'
import type { Fence, Flush } from './timers.ts'

/** Members per Redis script: Redis serves nobody else while a script runs. */
const freezeChunk = 300

interface DecidedMember {
  ref: string
  destination: string
  verdict: Verdict
  /** Position in the message. */
  order: number
}

/**
 * Derives the id of a flush's message: the same when the flush is resumed after a crash. A group
 * that ended counts its flushes from the start when it opens again, so its opening time is part of
 * the id.
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

/** The message that is being made, in one account's ledger. */
interface FreezeTarget {
  messageId: string
  /** The group that is flushed, as it was when the flush was claimed. */
  leadId: string
  fence: Fence
  /** The message covers several groups. */
  isStorm?: boolean
}

/**
 * Moves each member to where its verdict puts it. Resolves with false if somebody else closed the
 * flush.
 */
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
    if (Number(await ledger.run('freeze-members', JSON.stringify(args))) === 0) return false
  }
  return true
}

function toStoredMember(member: DecidedMember): Record<string, unknown> {
  const { ref, verdict, order } = member
  if (verdict.act === 'send') return { r: ref, a: 'keep', o: order }
  return toStoredSuppressed(suppressedBy(member, verdict))
}

/** References of the members that a message holds in this ledger. */
export function readFrozenRefs(ledger: AccountLedger, messageId: string): Promise<string[]> {
  return ledger.redis.zrange(ledger.key('members', messageId), '0', '-1')
}

/**
 * Returns the rank under which a message is claimed: that of its highest severity, or `high` if it
 * is empty.
 */
export function messageRank({ summary }: MessageAbout): number {
  return severityRank(summary.bySeverity[0]?.severity ?? 'high')
}

interface MessageClose {
  messageId: string
  /** How many members were frozen in this ledger. */
  members: number
  /**
   * The flushes that this message ends, the leading one first, and when each is next due;
   * undefined: once a new member arrives.
   */
  flushes: { flush: Flush; nextMs: number | undefined }[]
  message?: { sink: string; destination: string; about: MessageAbout } | undefined
  /** Digests only: where the next window begins, and the counters noted for it. */
  window?: { toMs: number; note: string } | undefined
}

/**
 * Closes the flush and queues its message. `again`: a member came or went while the message was
 * composed. The ref is empty if there is no message or the flush was over already.
 */
export async function closeMessage(
  ledger: AccountLedger,
  close: MessageClose,
): Promise<{ status: 'closed'; ref: string } | { status: 'again' }> {
  const { message, window } = close
  const args = {
    bid: close.messageId,
    members: close.members,
    groups: close.flushes.map(({ flush, nextMs }, at) => ({
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
  const answer = String(await ledger.run('close-flush', JSON.stringify(args)))
  return answer === 'again' ? { status: 'again' } : { status: 'closed', ref: answer }
}

/** What is stored of a frozen message besides its members. */
export interface MessageAbout {
  summary: Summary
  /** The members to show, in order, and the account whose ledger holds each. */
  shown: { account: string; ref: string }[]
  /** Every account whose ledger holds members. */
  accounts: string[]
  /** Attempts on the members that ended without an answer: the message may repeat them. */
  repeatRisks: number
}

/** A message as stored, once its outcome is known. */
export interface AnsweredMessage {
  /** The outcome. */
  o: 'delivered' | 'dead'
  /** Attempts (`n`), their notes (`h`), and how many ended without an answer (`rr`). */
  n: number
  h?: unknown
  rr?: number
  about?: string
  /** Of its members. */
  total?: number
}

/**
 * When a message is looked at again whose remaining members are in a ledger that is not open here.
 */
const absentRetryMs = 3_600_000

/** Members per Redis script: Redis serves nobody else while a script runs. */
const settleChunk = 300

/**
 * Settles every member of a message in the ledgers that hold them, then drops the message. While an
 * account's ledger exists but is not open here, its members stay, and the message with them.
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
    part: accounts.length > 1 || (message.total ?? 0) > settleChunk,
  }
  const absent = accounts.filter((account) => !findLedger(account))
  for (const account of accounts) {
    const ledger = findLedger(account)
    const text = JSON.stringify({ ...args, retention: ledger?.retention })
    while (ledger && Number(await ledger.run('settle-members', text)) > 0);
  }
  if (await someHaveLedger(lead, absent)) await postponeDue(lead, ref, absentRetryMs)
  else await lead.run('drop-message', ref, lead.retention.payload)
}

/** Whether one of the accounts, whose ledgers are not open here, still has a ledger. */
async function someHaveLedger(lead: AccountLedger, accounts: readonly string[]): Promise<boolean> {
  const answers = await Promise.all(accounts.map((account) => lead.hasLedger(account)))
  return answers.includes(true)
}

/** Options for taking apart a frozen message whose sink cannot be reached. */
interface UnfreezeOptions {
  ledgers: readonly AccountLedger[]
  /** An attempt that began this many ms ago died with its process. */
  staleMs: number
  /** How long the sink's batch collects, ms; undefined if it sends singly. */
  batchWaitMs: number | undefined
  /** By destination: the group that items for people join; empty for machines. */
  groups: Readonly<Record<string, Group>>
}

/**
 * `busy`: it is being sent just now; `answered`: its outcome is known, only its members have to be
 * settled.
 */
export type UnfreezeResult = 'open' | 'busy' | 'answered'

/** Members per Redis script: Redis serves nobody else while a script runs. */
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
 * Takes a frozen message apart: its members go on as single items. If that is interrupted, the
 * message stays due and the next caller resumes it. Also undoes a flush that was interrupted while
 * freezing, which has members and no message.
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
  else await lead.run('drop-message', ref, lead.retention.payload)
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
    'unfreeze-message',
    JSON.stringify({ ...args, places: toStoredGroups(groups) }),
  )
}
