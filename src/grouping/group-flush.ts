/**
 * The message of one group, or of several groups where there are too many to send each by itself.
 */
import { blankEvent, type ThreatEvent } from '../event.ts'
import {
  compareForDigest,
  compareSeverities,
  summarise,
  type Summary,
  type SummaryKind,
  type SummaryPart,
} from '../messages/summary.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { type FoundItem, readItems } from '../store/records.ts'
import type { SuppressionRules, SuppressionInput, FlushContext } from './flush-context.ts'
import type { Verdict } from '../routing/suppression.ts'
import {
  closeMessage,
  type MessageAbout,
  deriveMessageId,
  messageRank,
  readFrozenRefs,
  freezeMembers,
} from './freeze.ts'
import { readAllMemberRefs, type Flush } from './timers.ts'

/** Events that a group's message shows; the rest is counted. */
const maxShownInGroup = 10

/** How often a disturbed flush starts again at once; after that its timer retries it. */
const maxTries = 3

/** Flushes groups of one destination and one ledger. Resolves with the number of messages made. */
export async function flushGroups(options: FlushContext, flushes: Flush[]): Promise<number> {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const messages = await tryFlush(options, flushes)
    if (messages !== 'again') return messages
  }
  return 0
}

async function tryFlush(options: FlushContext, flushes: Flush[]): Promise<number | 'again'> {
  const [lead] = flushes
  if (!lead) return 0
  const { ledger } = lead
  const messageId = deriveMessageId(lead)
  const frozen = await readMembers(ledger, await readFrozenRefs(ledger, messageId))
  const fresh: Member[] = []
  for (const flush of flushes) {
    fresh.push(...(await readMembers(ledger, await readAllMemberRefs(flush), options.rules)))
  }
  const sorted = fresh.map((member, order) => ({ ...member, order: frozen.length + order }))
  const target = { leadId: lead.id, messageId, fence: lead.fence, isStorm: flushes.length > 1 }
  if (!(await freezeMembers(ledger, target, sorted))) return 0
  reportSuppressed(options, lead.sink, fresh)
  const members = [...frozen, ...fresh.filter(({ verdict }) => verdict.act === 'send')]
  const about = members.length > 0 ? composeGroupMessage(flushes, members) : undefined
  const closed = await closeMessage(ledger, {
    messageId,
    members: members.length,
    flushes: flushes.map((flush) => ({
      flush,
      nextMs: nextFlushMs(options, flush, members.length > 0),
    })),
    message: about && { sink: lead.sink, destination: lead.about.destination, about },
  })
  if (closed.status === 'again') return 'again'
  if (!about || closed.ref === '') return 0
  options.announce(ledger.account, [{ sink: lead.sink, rank: messageRank(about) }])
  return 1
}

export function reportSuppressed(
  { onSuppressed }: FlushContext,
  sink: string,
  members: readonly Member[],
): void {
  for (const { verdict, severity } of members) {
    if (verdict.act === 'suppress') onSuppressed(sink, severity, verdict.reason)
  }
}

/** What later pages find within this time after a summary shares a message too. */
const backlogIntervalMs = 30_000

/**
 * When the group is flushed next. After a message, groups and backlogs collect for an interval;
 * those of digests and mutes end.
 */
function nextFlushMs(options: FlushContext, flush: Flush, hasMessage: boolean): number | undefined {
  if (!hasMessage) return undefined
  if (flush.kind === 'group') return options.clock.now() + options.intervalMs(flush.about.route)
  return flush.kind === 'backlog' ? options.clock.now() + backlogIntervalMs : undefined
}

function composeGroupMessage(flushes: Flush[], members: Member[]): MessageAbout {
  const [lead] = flushes
  const isStorm =
    flushes.length > 1 || (lead !== undefined && lead.stormId === deriveMessageId(lead))
  const summary = summarise(members, {
    kind: isStorm ? 'storm' : summaryKind(lead),
    labels: isStorm ? {} : (lead?.about.labels ?? {}),
    route: isStorm ? null : (lead?.about.route ?? null),
    ...describeUndelivered(lead, members),
  })
  const account = lead?.ledger.account ?? ''
  return {
    summary,
    shown: chooseShown(members, maxShownInGroup).map(({ ref }) => ({ account, ref })),
    accounts: [account],
    repeatRisks: Math.max(0, ...members.map(({ repeatRisks }) => repeatRisks)),
  }
}

/** Fallback groups only: the sink that could not be reached, and since when. */
function describeUndelivered(
  lead: Flush | undefined,
  members: Member[],
): Pick<Summary, 'undelivered'> {
  const sink = lead?.about.divertedFrom
  if (sink === undefined) return {}
  return {
    undelivered: {
      sink,
      sinceMs: Math.min(...members.map(({ itemCreatedAtMs }) => itemCreatedAtMs)),
    },
  }
}

function summaryKind(flush: Flush | undefined): SummaryKind {
  return flush?.kind ?? 'group'
}

/** Chooses the highest severities as the summary counts them, of equal ones the newest. */
function chooseShown(members: Member[], count: number): Member[] {
  return members
    .toSorted(
      (a, b) =>
        compareSeverities(a.severity, b.severity) ||
        b.fetchedAtMs - a.fetchedAtMs ||
        compareForDigest(a, b),
    )
    .slice(0, count)
}

/** A member without its payload: a message may cover a hundred thousand. */
export interface Member extends SummaryPart {
  account: string
  ref: string
  uid: string
  destination: string
  repeatRisks: number
  /** When the item was created, ms; `createdAtMs` is the event's. */
  itemCreatedAtMs: number
  verdict: Verdict
}

const readChunk = 300

/**
 * Reads the members in the order of `refs`. Without `rules` (for frozen members) every verdict is
 * `send`.
 */
export async function readMembers(
  ledger: AccountLedger,
  refs: readonly string[],
  rules?: SuppressionRules,
): Promise<Member[]> {
  const members: Member[] = []
  for (let at = 0; at < refs.length; at += readChunk) {
    const found = await readItems(ledger, refs.slice(at, at + readChunk))
    const verdicts = rules ? await rules.decide(ledger, found.map(toSuppressionInput)) : []
    members.push(...found.map((item, i) => toMember(item, verdicts[i] ?? { act: 'send' })))
  }
  return members
}

/** What the rules look at; an item without its payload is known by its record alone. */
export function toSuppressionInput({ record, item, payload }: FoundItem): SuppressionInput {
  const sighting = record.sightings[item.sighting]
  return {
    recordId: record.recordId,
    sink: item.sink,
    routes: item.routes,
    event: {
      account: record.account,
      feed: sighting?.feed ?? '',
      labels: sighting?.labels ?? {},
      event: { ...(payload?.event ?? bareEvent(record)), severity: item.severity },
    },
    closed: record.closed,
  }
}

function toMember({ ref, record, item, payload }: FoundItem, verdict: Verdict): Member {
  return {
    account: record.account,
    ref,
    uid: record.uid,
    destination: item.destination,
    repeatRisks: item.repeatRisks,
    itemCreatedAtMs: item.createdAtMs,
    verdict,
    severity: item.severity,
    type: record.type,
    feed: record.sightings[item.sighting]?.feed ?? '',
    identifiers: payload?.event.identifiers.map(({ name }) => name) ?? [],
    fetchedAtMs: payload?.fetchedAtMs ?? item.createdAtMs,
    createdAtMs: payload?.event.createdAtMs ?? null,
  }
}

function bareEvent({ uid, type, severity }: FoundItem['record']): ThreatEvent {
  return { ...blankEvent(type), uid, source: uid.split('/')[1] ?? '', severity }
}
