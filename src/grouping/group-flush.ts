/** One message of one group, or of several where there are too many to come singly. */
import { severityRank, type ThreatEvent } from '../event.ts'
import {
  compareForDigest,
  createTally,
  type Summary,
  type SummaryKind,
  type SummaryPart,
} from '../messages/summary.ts'
import type { Book } from '../store/account-ledger.ts'
import { type FoundItem, readItems } from '../store/records.ts'
import type { Gate, Judged, TurnOptions, Verdict } from './flush-context.ts'
import {
  closeSeal,
  type MessageAbout,
  messageIdOf,
  rankOf,
  sealedMembers,
  sealMembers,
} from './freeze.ts'
import { membersOf, type Turn } from './timers.ts'

/** Events that a group's message shows; the rest is counted. */
const shownInGroup = 10

/** Turns that were disturbed are begun again so often; then their timer does it. */
const maxTries = 3

/** All turns are of one destination and one book. Resolves with the number of messages made. */
export async function groupTurn(options: TurnOptions, turns: Turn[]): Promise<number> {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const made = await tryTurn(options, turns)
    if (made !== 'again') return made
  }
  return 0
}

async function tryTurn(options: TurnOptions, turns: Turn[]): Promise<number | 'again'> {
  const [lead] = turns
  if (!lead) return 0
  const { book } = lead
  const messageId = messageIdOf(lead)
  const sealed = await readMembers(book, await sealedMembers(book, messageId))
  const fresh: Member[] = []
  for (const turn of turns) {
    fresh.push(...(await readMembers(book, await membersOf(turn), options.gate)))
  }
  const sorted = fresh.map((member, order) => ({ ...member, order: sealed.length + order }))
  const sealing = { leadId: lead.id, messageId, fence: lead.fence, isStorm: turns.length > 1 }
  if (!(await sealMembers(book, sealing, sorted))) return 0
  tellSuppressed(options, lead.sink, fresh)
  const members = [...sealed, ...fresh.filter(({ verdict }) => verdict.act === 'send')]
  const about = members.length > 0 ? aboutOf(turns, members) : undefined
  const closed = await closeSeal(book, {
    messageId,
    members: members.length,
    turns: turns.map((turn) => ({ turn, nextMs: nextOf(options, turn, members.length > 0) })),
    message: about && { sink: lead.sink, destination: lead.about.destination, about },
  })
  if (closed.status === 'again') return 'again'
  if (!about || closed.ref === '') return 0
  await options.tell(book.account, [{ sink: lead.sink, rank: rankOf(about) }])
  return 1
}

export function tellSuppressed(
  { onSuppressed }: TurnOptions,
  sink: string,
  members: readonly Member[],
): void {
  for (const { verdict, severity } of members) {
    if (verdict.act === 'suppress') onSuppressed(sink, severity, verdict.reason)
  }
}

/** What the pages of so long after a summary find comes together too. */
const backlogIntervalMs = 30_000

/** What said something listens for an interval; a digest's and a mute's end with their message. */
function nextOf(options: TurnOptions, turn: Turn, hasMessage: boolean): number | undefined {
  if (!hasMessage) return undefined
  if (turn.kind === 'group') return options.clock.now() + options.intervalMs(turn.about.route)
  return turn.kind === 'backlog' ? options.clock.now() + backlogIntervalMs : undefined
}

function aboutOf(turns: Turn[], members: Member[]): MessageAbout {
  const [lead] = turns
  const tally = createTally()
  for (const member of members) tally.add(member)
  const isStorm = turns.length > 1 || (lead !== undefined && lead.stormId === messageIdOf(lead))
  const summary = tally.finish({
    kind: isStorm ? 'storm' : kindOf(lead),
    labels: isStorm ? {} : (lead?.about.labels ?? {}),
    route: isStorm ? null : (lead?.about.route ?? null),
    ...undeliveredIn(lead, members),
  })
  const account = lead?.book.account ?? ''
  return {
    summary,
    shown: mostTelling(members, shownInGroup).map(({ ref }) => ({ account, ref })),
    accounts: [account],
    repeatRisks: Math.max(0, ...members.map(({ repeatRisks }) => repeatRisks)),
  }
}

/** Of a fallback: what could not be delivered where, and since when. */
function undeliveredIn(lead: Turn | undefined, members: Member[]): Pick<Summary, 'undelivered'> {
  const sink = lead?.about.divertedFrom
  if (sink === undefined) return {}
  return { undelivered: { sink, sinceMs: Math.min(...members.map(({ madeAtMs }) => madeAtMs)) } }
}

function kindOf(turn: Turn | undefined): SummaryKind {
  return turn?.kind ?? 'group'
}

/** The worst first, of the same severity the newest. */
function mostTelling(members: Member[], count: number): Member[] {
  return members
    .toSorted(
      (a, b) =>
        severityRank(b.severity) - severityRank(a.severity) ||
        b.fetchedAtMs - a.fetchedAtMs ||
        compareForDigest(a, b),
    )
    .slice(0, count)
}

/** The members of a collection, judged and counted: what a turn makes its message of. */

/** A member without its payload: a message may stand for a hundred thousand. */
export interface Member extends SummaryPart {
  account: string
  ref: string
  uid: string
  destination: string
  repeatRisks: number
  /** When the item was made, ms; `createdAtMs` is the event's. */
  madeAtMs: number
  verdict: Verdict
}

const readChunk = 300

/** Members in the order of `refs`; with no gate (they are sealed already) all go. */
export async function readMembers(
  book: Book,
  refs: readonly string[],
  gate?: Gate,
): Promise<Member[]> {
  const members: Member[] = []
  for (let at = 0; at < refs.length; at += readChunk) {
    const found = await readItems(book, refs.slice(at, at + readChunk))
    const verdicts = gate ? await gate.judge(book, found.map(judgedOf)) : []
    members.push(...found.map((item, i) => memberOf(item, verdicts[i] ?? { act: 'send' })))
  }
  return members
}

/** What the rules look at; an item without its payload is known by its record alone. */
export function judgedOf({ record, item, payload }: FoundItem): Judged {
  const sighting = record.sightings[item.sighting]
  return {
    recordId: record.recordId,
    sink: item.sink,
    routes: item.routes,
    feed: sighting?.feed ?? '',
    labels: sighting?.labels ?? {},
    event: { ...(payload?.event ?? bareEvent(record)), severity: item.severity },
    closed: record.closed,
  }
}

function memberOf({ ref, record, item, payload }: FoundItem, verdict: Verdict): Member {
  return {
    account: record.account,
    ref,
    uid: record.uid,
    destination: item.destination,
    repeatRisks: item.repeatRisks,
    madeAtMs: item.createdAtMs,
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
  return {
    uid,
    kind: 'event',
    type,
    source: uid.split('/')[1] ?? '',
    severity,
    originalSeverity: null,
    createdAtMs: null,
    matchedAtMs: null,
    ignoredAtMs: null,
    remediatedAtMs: null,
    url: null,
    tags: [],
    notes: null,
    identifiers: [],
    highlights: {},
  }
}
