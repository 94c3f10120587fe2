/**
 * The message of one group, or of several groups where there are too many to send each by itself.
 */
import {
  compareForDigest,
  compareSeverities,
  summarise,
  type SummaryKind,
} from '../messages/summary.ts'
import type { FlushContext } from './flush-context.ts'
import { deriveMessageId, type MessageAbout } from './freeze.ts'
import type { Member } from './members.ts'
import type { Flush } from './timers.ts'
import { endWindow, selectMembers } from './window.ts'

/** Events that a group's message shows; the rest is counted. */
const maxShownInGroup = 10

/** Flushes groups of one destination and one ledger. Resolves with the number of messages made. */
export async function flushGroups(options: FlushContext, flushes: Flush[]): Promise<number> {
  const [lead, ...others] = flushes
  if (!lead) return 0
  return endWindow(options, {
    flushes: [lead, ...others],
    ledgers: [lead.ledger],
    keepsHeld: false,
    compose(slices) {
      const members = selectMembers(slices)
      const about = members.length > 0 ? composeGroupMessage(flushes, members) : undefined
      return Promise.resolve({ about })
    },
    nextMs: (flush, hasMembers) => nextFlushMs(options, flush, hasMembers),
  })
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
  const sink = lead?.about.divertedFrom
  const summary = summarise(members, {
    kind: isStorm ? 'storm' : summaryKind(lead),
    labels: isStorm ? {} : (lead?.about.labels ?? {}),
    route: isStorm ? null : (lead?.about.route ?? null),
    ...(sink !== undefined && { divertedFrom: sink }),
  })
  const account = lead?.ledger.account ?? ''
  return {
    summary,
    shown: chooseShown(members, maxShownInGroup).map(({ ref }) => ({ account, ref })),
    accounts: [account],
    repeatRisks: Math.max(0, ...members.map(({ repeatRisks }) => repeatRisks)),
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
