/**
 * Compares what the service showed with what arrived: what was lost, what came twice, and whether each
 * repeat has an explanation that the ledger wrote down before it happened.
 */
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { scanRecords, type Item } from '../../../src/store/records.ts'
import type { Received } from '../../../src/sandbox/receivers/received.ts'

/** How one destination's messages are told apart. */
export interface Inbox {
  /** The ledger's destination id. */
  destination: string
  received: readonly Received[]
  saysRepeat: (message: Received) => boolean
  /** Messages of several events show the worst only: these are told apart by their own ids. */
  isSummary?: boolean
}

export interface Verdict {
  expected: number
  received: number
  lost: string[]
  repeated: number
  explained: number
  /** Destination and uid of repeats without a reason that the ledger wrote down. */
  unexplained: string[]
  /** Repeats that did not say that they may be one. */
  unmarked: string[]
}

export interface Case {
  ledger: AccountLedger
  uids: readonly string[]
  inboxes: readonly Inbox[]
  /** When Redis may have lost what it had acknowledged (failover): wall clock ms. */
  lossesMs?: readonly number[]
}

/** Before a failover, so much of what a master acknowledged may not have reached its replica. */
const lossWindowMs = 3_000

export async function giveVerdict({
  ledger,
  uids,
  inboxes,
  lossesMs = [],
}: Case): Promise<Verdict> {
  const items = await itemsByDestination(ledger)
  const verdict: Verdict = {
    expected: uids.length * inboxes.length,
    received: 0,
    lost: [],
    repeated: 0,
    explained: 0,
    unexplained: [],
    unmarked: [],
  }
  for (const inbox of inboxes) {
    const judge = inbox.isSummary ? judgeSummaries : judgeInbox
    judge(verdict, inbox, { uids, items, lossesMs })
  }
  return verdict
}

interface Evidence {
  uids: readonly string[]
  items: Map<string, Item>
  lossesMs: readonly number[]
}

function judgeInbox(verdict: Verdict, inbox: Inbox, { uids, items, lossesMs }: Evidence): void {
  const byUid = groupBy(inbox.received, ({ uids: named }) => named)
  for (const uid of uids) {
    const name = `${inbox.destination} ${uid}`
    const item = items.get(name)
    const messages = byUid.get(uid) ?? summariesOf(inbox, item)
    if (messages.length === 0) verdict.lost.push(name)
    verdict.received += messages.length
    const risks = item?.repeatRisks ?? 0
    judgeRepeats(verdict, { name, messages, risks, saysRepeat: inbox.saysRepeat, lossesMs })
  }
}

/** What people missed while their sink was down comes in one message, which names the worst only. */
function summariesOf({ received }: Inbox, item: Item | undefined): Received[] {
  const { messageId: sealedIn, state } = item ?? {}
  if (sealedIn === undefined || state !== 'delivered') return []
  return received.filter(({ id, body }) => id?.includes(sealedIn) || body.includes(sealedIn))
}

/** Lost: what the ledger does not know as delivered. Repeated: a message whose id came before. */
function judgeSummaries(verdict: Verdict, inbox: Inbox, { uids, items, lossesMs }: Evidence): void {
  for (const uid of uids) {
    const item = items.get(`${inbox.destination} ${uid}`)
    if (item?.state === 'delivered') verdict.received += 1
    else verdict.lost.push(`${inbox.destination} ${uid} (${item?.state ?? 'no item'})`)
  }
  const risks = risksOfMessages(inbox.destination, items)
  for (const [id, messages] of groupBy(inbox.received, ({ id: own }) => [own ?? ''])) {
    judgeRepeats(verdict, {
      name: `${inbox.destination} ${id}`,
      messages,
      risks: risks.find(([sealed]) => id.includes(sealed))?.[1] ?? 0,
      saysRepeat: inbox.saysRepeat,
      lossesMs,
    })
  }
}

/** By the id of the sealed message in which they went: how often an answer of it was lost. */
function risksOfMessages(destination: string, items: Map<string, Item>): [string, number][] {
  const risks = new Map<string, number>()
  for (const item of items.values()) {
    if (item.destination !== destination || item.messageId === undefined) continue
    risks.set(item.messageId, Math.max(risks.get(item.messageId) ?? 0, item.repeatRisks))
  }
  return [...risks]
}

interface Repeats {
  name: string
  messages: readonly Received[]
  /** How often the ledger noted, before the next try, that an answer was lost. */
  risks: number
  saysRepeat: Inbox['saysRepeat']
  lossesMs: readonly number[]
}

function judgeRepeats(verdict: Verdict, repeats: Repeats): void {
  const { name, messages, risks, saysRepeat, lossesMs } = repeats
  const extra = messages.length - 1
  if (extra < 1) return
  verdict.repeated += extra
  const forgotten = messages.slice(0, -1).filter(({ atMs }) => wasForgotten(atMs, lossesMs)).length
  const explained = Math.min(extra, risks + forgotten)
  verdict.explained += explained
  if (explained < extra) verdict.unexplained.push(name)
  const unmarked = messages.slice(1).filter((message) => !saysRepeat(message)).length
  if (unmarked > forgotten) verdict.unmarked.push(name)
}

function wasForgotten(atMs: number, lossesMs: readonly number[]): boolean {
  return lossesMs.some((lossMs) => atMs <= lossMs && atMs >= lossMs - lossWindowMs)
}

function groupBy(
  messages: readonly Received[],
  keysOf: (message: Received) => readonly string[],
): Map<string, Received[]> {
  const found = new Map<string, Received[]>()
  for (const message of messages) {
    for (const key of keysOf(message)) found.set(key, [...(found.get(key) ?? []), message])
  }
  return found
}

async function itemsByDestination(ledger: AccountLedger): Promise<Map<string, Item>> {
  const found = new Map<string, Item>()
  for await (const record of scanRecords(ledger)) {
    for (const item of record.items) found.set(`${item.destination} ${record.uid}`, item)
  }
  return found
}
