/**
 * Settles what an account that left still has: each item in one script, so after an interruption the
 * same command goes on.
 */
import { listUpcomingMessages, type MessageRef } from '../../operator/ledger-check.ts'
import { readAnsweredMessage } from '../../delivery/claims.ts'
import { readFrozenRefs, settleMembers } from '../../grouping/freeze.ts'
import { redisNow } from '../../redis/scripts.ts'
import { type AccountLedger, parseRef } from '../../store/account-ledger.ts'
import {
  discardItem,
  holdOrphan,
  listDeadLetters,
  readRepeatRisks,
  readSinkNames,
  type RecordItem,
  type RedirectStatus,
  scanPendingItems,
} from '../../store/pending-items.ts'
import type { OpenLedgers } from '../../operator/open-ledgers.ts'

export interface AccountDiscard {
  store: OpenLedgers
  account: string
  /**
   * undefined: the account ledger was already removed, by a run that was interrupted after that.
   */
  ledger: AccountLedger | undefined
  by: string
  onProgress: (items: number) => void
}

export interface DiscardCounts {
  items: number
  deadLetters: number
  quarantined: number
  /** Items in messages that are being sent right now. While there are any, nothing is removed. */
  busy: number
}

/** An attempt that began longer ago than this died with its process. */
const staleAttemptMs = 60_000

/** Gives up what is left, and adds to the counts; a message on its way stays. */
export async function settleAccount(
  discarding: AccountDiscard,
  counts: DiscardCounts,
): Promise<void> {
  const { onProgress, ledger } = discarding
  if (!ledger) return
  counts.busy += await releaseOthers(discarding, ledger) // first: what is taken apart later has no head any more
  for await (const placed of scanPendingItems(ledger)) {
    const outcome = await settleItem(discarding, ledger, placed)
    if (outcome === 'busy') counts.busy += 1
    if (outcome === 'done') counts.items += 1
    if (counts.items % 50 === 0) onProgress(counts.items)
  }
  for (const sink of counts.busy > 0 ? [] : await readSinkNames(ledger)) {
    counts.deadLetters += await closeDeadLetters(discarding, ledger, sink)
  }
}

async function settleItem(
  discarding: AccountDiscard,
  ledger: AccountLedger,
  { ref, item }: RecordItem,
): Promise<RedirectStatus> {
  const by = `by ${discarding.by}`
  const first = await discardItem(ledger, ref, by)
  if (first !== 'busy') return first
  const { sink, messageId, atMs } = item
  if (messageId !== undefined) {
    const dissolved = await dissolveMessage(discarding, { messageId: messageId, sink }, [ledger])
    if (dissolved !== 'done') return dissolved
  } else {
    if (await isBeingSent(discarding, atMs)) return 'busy'
    await holdOrphan(ledger, ref)
  }
  return discardItem(ledger, ref, by)
}

/**
 * Takes the items of other accounts out of the frozen messages that this account leads, so that
 * they remain to be delivered. Returns how many are in messages that are being sent.
 */
async function releaseOthers(discarding: AccountDiscard, ledger: AccountLedger): Promise<number> {
  const others = discarding.store.ledgers.filter(({ account }) => account !== ledger.account)
  let busy = 0
  for (const message of [
    ...(await listLedMessages(ledger)),
    ...(await listUpcomingMessages(ledger)),
  ]) {
    const members = await Promise.all(others.map((one) => readFrozenRefs(one, message.messageId)))
    const count = members.flat().length
    if (count > 0 && (await dissolveMessage(discarding, message, others)) === 'busy') busy += count
  }
  return busy
}

async function listLedMessages(ledger: AccountLedger): Promise<MessageRef[]> {
  const messages: MessageRef[] = []
  for (const sink of await readSinkNames(ledger)) {
    const refs = await ledger.redis.zrange(ledger.key('due', sink), '0', '-1')
    for (const ref of refs.map(parseRef)) {
      if (ref.kind === 'batch') messages.push({ messageId: ref.batchId, sink })
    }
  }
  return messages
}

/**
 * Removes the targets' items from a frozen message, whichever account leads it. Returns `other`
 * when the message's outcome was already known.
 */
async function dissolveMessage(
  discarding: AccountDiscard,
  { messageId, sink }: MessageRef,
  targets: readonly AccountLedger[],
): Promise<'done' | 'busy' | 'other'> {
  const { store, account, ledger: leader } = discarding
  const ref = `b:${messageId}:${sink}`
  const others = store.ledgers.filter((one) => one.account !== account)
  const ledgers = leader ? [leader, ...others] : others
  const head = await findMessageHead(ledgers, messageId)
  if (await isBeingSent(discarding, head?.sentAtMs)) return 'busy'
  const answered = head && (await readAnsweredMessage(head.ledger, ref))
  if (head && answered) {
    const findLedger = (name: string): AccountLedger | undefined =>
      ledgers.find((one) => one.account === name)
    await settleMembers(head.ledger, ref, answered, findLedger)
    return 'other'
  }
  const risks = head ? await readRepeatRisks(head.ledger, ref) : 0
  for (const ledger of targets) await holdOrphan(ledger, ref, risks)
  return 'done'
}

async function isBeingSent(
  { store }: AccountDiscard,
  sentAtMs: number | undefined,
): Promise<boolean> {
  return sentAtMs !== undefined && (await redisNow(store)) - sentAtMs < staleAttemptMs
}

/** Finds a frozen message at the account that leads it, which may be another one. */
async function findMessageHead(
  ledgers: readonly AccountLedger[],
  messageId: string,
): Promise<{ ledger: AccountLedger; sentAtMs: number | undefined } | undefined> {
  for (const ledger of ledgers) {
    const text = await ledger.redis.get(ledger.key('batch', messageId))
    if (text === null) continue
    const { st, at } = JSON.parse(text) as { st?: string; at?: number }
    return { ledger, sentAtMs: st === 'sending' ? at : undefined }
  }
  return undefined
}

async function closeDeadLetters(
  { by }: AccountDiscard,
  ledger: AccountLedger,
  sink: string,
): Promise<number> {
  let closed = 0
  for (;;) {
    const { letters } = await listDeadLetters(ledger, sink, { offset: 0, count: 200 })
    let done = 0
    for (const { ref } of letters)
      done += (await discardItem(ledger, ref, `by ${by}`)) === 'done' ? 1 : 0
    if (done === 0) return closed
    closed += done
  }
}
