/** One message of one group, or of several where there are too many to come singly. */
import { severityRank } from '../events/severity.ts'
import { compareForDigest, createTally } from '../messages/summarise.ts'
import type { Summary, SummaryKind } from '../messages/summary.ts'
import { readMembers, type Member } from './read-members.ts'
import { closeSeal, messageIdOf, rankOf, sealedMembers, sealMembers } from './seal.ts'
import type { MessageAbout } from './sealed-message.ts'
import { membersOf, type Turn } from './timers.ts'
import type { TurnOptions } from './turn-options.ts'

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
