/**
 * Decides which group a new item joins when its page is committed. It is a digest, the summary of a
 * feed's first poll, a group of its route, or none. Machines get every item singly. Pure.
 */
import { createHash } from 'node:crypto'
import { severityRank, type Severity } from '../event.ts'
import type { Verdict } from '../routing/suppression.ts'
import type { Group, GroupFacts, MoveTarget, SuppressedItem } from '../store/pending-items.ts'
import type { Schedule } from '../lib/cron-schedule.ts'
import { defaultTimings, type Timings } from '../lib/clock.ts'

/** A sink as configured: where it sends, and what becomes of what it cannot send. */
export interface Outlet {
  name: string
  /** People get groups and summaries; machines never do. */
  isForPeople: boolean
  destinations: readonly { id: string; label: string }[]
  digest?: SinkDigest | undefined
  /** How long its batch collects, ms; undefined: it sends singly. */
  batchWaitMs: number | undefined
  /** The sink that gets its items when it takes none; undefined: they wait. */
  fallback: string | undefined
  /** How long its circuit, or a destination's, must have been open before that, ms. */
  fallbackAfterMs: number
  sendTimeoutMs: number
}

export interface SinkDigest {
  schedule: Schedule
  /** Of the days that it counts: its readers', else its schedule's. */
  timeZone: string
  /** Events of at least this severity are sent at once; null: none. */
  immediate: Severity | null
  sendsEmpty: boolean
  maxItems: number
}

export interface Grouping {
  route: string
  waitMs: number
  labels: Record<string, string>
}

export interface Placement {
  group?: Group
  listedIn?: string
}

export interface PlacementInput {
  destination: string
  severity: Severity
  feed: string
  /** Found by the feed's first poll or by a rescan: sent as a summary. */
  isBacklog: boolean
}

/** Pages of a rescan come about a second apart; a page later than this starts another summary. */
const backlogWaitMs = 15_000

/** Unknown severities rank above `critical`. */
const urgentRank = severityRank('critical')

export function placeItem(
  sink: Outlet,
  item: PlacementInput,
  grouping: Grouping,
  nowMs: number,
): Placement {
  if (!sink.isForPeople) return {}
  if (sink.digest) return placeInDigest(sink.digest, item, nowMs)
  if (item.isBacklog) return { group: backlogGroup(item, isUrgent(item)) }
  if (grouping.waitMs === 0) return {}
  return { group: routeGroup(item, grouping) }
}

function placeInDigest(digest: SinkDigest, item: PlacementInput, nowMs: number): Placement {
  const { immediate, schedule } = digest
  const id = digestGroupId(item.destination)
  const isImmediate = immediate !== null && severityRank(item.severity) >= severityRank(immediate)
  if (isImmediate)
    return { listedIn: id, ...(item.isBacklog && { group: backlogGroup(item, true) }) }
  const about = bareFacts(item.destination)
  const atMs = schedule.next(nowMs)
  return { group: { id, kind: 'digest', waitMs: 0, atMs, isUrgent: false, about } }
}

/**
 * The summary of what a first poll or a rescan finds. Urgent events get a summary of their own,
 * sent within seconds however long the reading goes on.
 */
function backlogGroup({ destination, feed }: PlacementInput, isAtOnce: boolean): Group {
  return {
    id: groupId('backlog', feed, destination, ...(isAtOnce ? ['urgent'] : [])),
    kind: 'backlog',
    waitMs: backlogWaitMs,
    isUrgent: isAtOnce,
    about: { ...bareFacts(destination), feed },
  }
}

function routeGroup({ destination, severity }: PlacementInput, grouping: Grouping): Group {
  const { route, labels, waitMs } = grouping
  const sorted = Object.keys(labels)
    .toSorted()
    .map((name) => [name, labels[name]])
  return {
    id: groupId('group', route, destination, JSON.stringify(sorted)),
    kind: 'group',
    waitMs,
    isUrgent: isUrgent({ severity }),
    about: { ...bareFacts(destination), route, labels },
  }
}

function isUrgent({ severity }: Pick<PlacementInput, 'severity'>): boolean {
  return severityRank(severity) >= urgentRank
}

/** Where items for people wait for the end of a mute, to be sent as one summary. */
export function mutedGroup(destination: string, rule: string, untilMs: number): Group {
  return {
    id: groupId('held', destination, rule),
    kind: 'held',
    waitMs: 0,
    atMs: untilMs,
    isUrgent: false,
    about: bareFacts(destination),
  }
}

/** What becomes of an item that the rules suppress or hold: it ends, or waits in the group of its mute. */
export function suppressedBy(
  { ref, destination }: { ref: string; destination: string },
  verdict: Exclude<Verdict, { act: 'send' }>,
): SuppressedItem {
  if (verdict.act === 'suppress') return { ref, ...verdict }
  const untilMs = Math.floor(verdict.untilMs)
  return { ref, ...verdict, untilMs, group: mutedGroup(destination, verdict.rule, untilMs) }
}

/** Every destination of the sink that moved items go to, each with the group that they join there. */
export function listMoveTargets(
  { name: sink, destinations, batchWaitMs }: Outlet,
  groupFor: (destination: string) => Group | undefined,
): MoveTarget[] {
  return destinations.map(({ id: destination }) => {
    return { sink, destination, batchWaitMs, group: groupFor(destination) }
  })
}

/** Longer than moving some hundred items takes, so that they share one message. */
const movedWaitMs = 15_000

/**
 * Where an item waits that is moved to another sink; undefined for machines, which get each item
 * singly.
 */
export function movedGroup(
  sink: Outlet,
  { from, ...item }: Pick<PlacementInput, 'destination' | 'severity'> & { from: string },
  nowMs: number,
): Group | undefined {
  if (!sink.isForPeople) return undefined
  if (sink.digest) {
    const { group } = placeInDigest(sink.digest, { ...item, feed: '', isBacklog: false }, nowMs)
    if (group) return group
  }
  return labelledGroup(item.destination, { 'moved from': from })
}

/**
 * Where an item waits for the fallback of its sink. People get one message that names the
 * unreachable sink, without waiting for a digest; undefined for machines, which get each item
 * singly.
 */
export function fallbackGroup(
  sink: Outlet,
  {
    from,
    destination,
    severity,
  }: Pick<PlacementInput, 'destination' | 'severity'> & { from: string },
  { fallbackWaitMs }: Pick<Timings, 'fallbackWaitMs'> = defaultTimings,
): Group | undefined {
  if (!sink.isForPeople) return undefined
  return {
    id: groupId('fallback', destination, from),
    kind: 'group',
    waitMs: fallbackWaitMs,
    isUrgent: isUrgent({ severity }),
    about: { ...bareFacts(destination), divertedFrom: from },
  }
}

/**
 * Where items for people wait while nothing can be sent to their sink, to be sent as one message.
 * The group is urgent: it waits for no interval once the sink is back.
 */
export function blockedGroup(destination: string): Group {
  const group = labelledGroup(destination, { 'kept while': 'nothing could be sent here' })
  return { ...group, isUrgent: true }
}

/** By destination; empty for machines, which get each item singly. */
export function blockedGroups(outlet: Outlet | undefined): Record<string, Group> {
  if (!outlet?.isForPeople) return {}
  return Object.fromEntries(outlet.destinations.map(({ id }) => [id, blockedGroup(id)]))
}

function labelledGroup(destination: string, labels: Record<string, string>): Group {
  return {
    id: groupId('together', destination, JSON.stringify(labels)),
    kind: 'group',
    waitMs: movedWaitMs,
    isUrgent: false,
    about: { ...bareFacts(destination), labels },
  }
}

export function digestGroupId(destination: string): string {
  return groupId('digest', destination)
}

function bareFacts(destination: string): GroupFacts {
  return { destination, route: null, labels: {}, feed: null }
}

function groupId(...parts: string[]): string {
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 24)
}
