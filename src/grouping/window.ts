/**
 * The end of a window, of a group or a digest: what it collected in one ledger or several becomes one
 * message. A flush that a crash interrupted is taken up with what it froze already.
 */
import { compareForDigest } from '../messages/summary.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import type { FlushContext } from './flush-context.ts'
import {
  closeMessage,
  deriveMessageId,
  freezeMembers,
  type MessageAbout,
  messageRank,
  readFrozenRefs,
} from './freeze.ts'
import { type Member, readMembers } from './members.ts'
import { type Fence, type Flush, readAllMemberRefs, readFence } from './timers.ts'

export interface EndingWindow {
  /** The groups that share the message; the first leads. */
  flushes: readonly [Flush, ...Flush[]]
  /** Whose members it takes. */
  ledgers: readonly AccountLedger[]
  /** What a mute holds waits for the next window, in place of a group of its own. */
  keepsHeld: boolean
  compose: (slices: readonly LedgerSlice[]) => Promise<Composed>
  /** When a group is flushed next; undefined: once a new member arrives. */
  nextMs: (flush: Flush, hasMembers: boolean) => number | undefined
}

interface Composed {
  /** undefined: no message is sent. */
  about: MessageAbout | undefined
  /** Digests only: where the next window begins, and the counters noted for it. */
  window?: { toMs: number; note: string }
}

/** The members that wait in one account's ledger. */
export interface LedgerSlice {
  ledger: AccountLedger
  /** The group before its members were read. */
  fence: Fence
  /**
   * Members that an interrupted flush froze already; they are not checked for suppression again.
   */
  frozen: Member[]
  fresh: Member[]
}

/** How often a disturbed flush starts again at once; after that its timer retries it. */
const maxTries = 3

/** Resolves with the number of messages made. */
export async function endWindow(options: FlushContext, ending: EndingWindow): Promise<number> {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const messages = await tryToEnd(options, ending)
    if (messages !== 'again') return messages
  }
  return 0
}

async function tryToEnd(options: FlushContext, ending: EndingWindow): Promise<number | 'again'> {
  const { flushes, compose, nextMs } = ending
  const [lead] = flushes
  const { sink, about: facts } = lead
  const slices = await freezeAll(options, ending, await readSlices(options, ending))
  if (!slices) return 0
  const { about, window } = await compose(slices)
  const hasMembers = selectMembers(slices).length > 0
  let messages = 0
  // The other ledgers first: once the first ledger has the message, no member can join it anywhere.
  for (const { ledger, fence, ...slice } of slices.toReversed()) {
    const isLead = ledger === lead.ledger
    const closed = await closeMessage(ledger, {
      messageId: deriveMessageId(lead),
      members: selectMembers([slice]).length,
      flushes: flushes.map((flush) => ({
        flush: flush === lead ? { ...flush, ledger, fence } : flush,
        nextMs: nextMs(flush, hasMembers),
      })),
      window,
      message: isLead && about ? { sink, destination: facts.destination, about } : undefined,
    })
    if (closed.status === 'again') return 'again'
    if (!about || closed.ref === '') continue
    options.announce(ledger.account, [{ sink, rank: messageRank(about) }])
    messages = 1
  }
  return messages
}

async function readSlices(
  { rules }: FlushContext,
  { flushes, ledgers }: EndingWindow,
): Promise<LedgerSlice[]> {
  const [lead] = flushes
  const messageId = deriveMessageId(lead)
  const slices: LedgerSlice[] = []
  for (const ledger of ledgers) {
    const fence = ledger === lead.ledger ? lead.fence : await readFence(ledger, lead.id)
    const frozen = await readMembers(ledger, await readFrozenRefs(ledger, messageId))
    const fresh: Member[] = []
    for (const { id } of flushes)
      fresh.push(...(await readMembers(ledger, await readAllMemberRefs({ ledger, id }), rules)))
    slices.push({ ledger, fence, frozen, fresh })
  }
  return slices
}

/**
 * Freezes the members and resolves with what the message finally holds; undefined if another
 * replica ended the flush. A ledger that an interrupted try has closed already takes no more: newer
 * items wait for the next window.
 */
async function freezeAll(
  options: FlushContext,
  { flushes, keepsHeld }: EndingWindow,
  slices: readonly LedgerSlice[],
): Promise<LedgerSlice[] | undefined> {
  const [lead] = flushes
  const positions = new Map(
    selectMembers(slices).map(({ account, ref }, at) => [`${account} ${ref}`, at]),
  )
  const target = { messageId: deriveMessageId(lead), leadId: lead.id, isStorm: flushes.length > 1 }
  const result: LedgerSlice[] = []
  for (const { ledger, fence, frozen, fresh } of slices) {
    const decided = fresh
      .filter(({ verdict }) => verdict.act !== 'hold' || !keepsHeld)
      .map((member) => ({
        ...member,
        order: positions.get(`${member.account} ${member.ref}`) ?? 0,
      }))
    const isOpen = await freezeMembers(ledger, { ...target, fence }, decided)
    if (!isOpen && ledger === lead.ledger) return undefined
    if (isOpen) reportSuppressed(options, lead.sink, fresh)
    result.push({ ledger, fence, frozen, fresh: isOpen ? fresh : [] })
  }
  return result
}

function reportSuppressed(
  { onSuppressed }: FlushContext,
  sink: string,
  members: readonly Member[],
): void {
  for (const { verdict, severity } of members) {
    if (verdict.act === 'suppress') onSuppressed(sink, severity, verdict.reason)
  }
}

/** Selects the members that go into the message, the worst and newest first. */
export function selectMembers(slices: readonly Pick<LedgerSlice, 'frozen' | 'fresh'>[]): Member[] {
  return slices
    .flatMap(({ frozen, fresh }) => [
      ...frozen,
      ...fresh.filter(({ verdict }) => verdict.act === 'send'),
    ])
    .toSorted(compareForDigest)
}
