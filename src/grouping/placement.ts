/**
 * Where a new item waits for company, fixed when its page is committed: in a digest, in the summary of
 * a feed's first poll, in a group, or nowhere. Machines get every item by itself. Pure but for the clock.
 */
import { createHash } from 'node:crypto'
import { severityRank, type Severity } from '../event.ts'
import type { Gathering, GatheringAbout } from '../store/pending-items.ts'
import type { Schedule } from '../lib/cron-schedule.ts'
import { defaultTimings, type Timings } from '../lib/clock.ts'

/** A sink as it collects. */
export interface CollectingSink {
  name: string
  /** People get groups and summaries; machines never. */
  isForPeople: boolean
  destinations: readonly { id: string }[]
  digest?: SinkDigest | undefined
}

export interface SinkDigest {
  schedule: Schedule
  timeZone: string
  /** From this severity on events go at once; null: none does. */
  immediate: Severity | null
  sendsEmpty: boolean
  maxItems: number
}

export interface Grouping {
  route: string
  waitMs: number
  labels: Record<string, string>
}

export interface Placed {
  gathering?: Gathering
  toldIn?: string
}

export interface ToPlace {
  destination: string
  severity: Severity
  feed: string
  /** What the feed's first poll or a re-reading found, to be told as a summary. */
  isBacklog: boolean
}

/** Pages of a re-reading come about a second apart; one that waits longer begins another summary. */
const backlogWaitMs = 15_000

/** Unknown severities are above `critical`. */
const urgentRank = severityRank('critical')

export function placeItem(
  sink: CollectingSink,
  item: ToPlace,
  grouping: Grouping,
  nowMs: number,
): Placed {
  if (!sink.isForPeople) return {}
  if (sink.digest) return inDigest(sink.digest, item, nowMs)
  if (item.isBacklog) return { gathering: backlogOf(item, isUrgent(item)) }
  if (grouping.waitMs === 0) return {}
  return { gathering: groupOf(item, grouping) }
}

function inDigest(digest: SinkDigest, item: ToPlace, nowMs: number): Placed {
  const { immediate, schedule } = digest
  const id = digestIdOf(item.destination)
  const isImmediate = immediate !== null && severityRank(item.severity) >= severityRank(immediate)
  if (isImmediate)
    return { toldIn: id, ...(item.isBacklog && { gathering: backlogOf(item, true) }) }
  const about = aboutOf(item.destination)
  const atMs = schedule.next(nowMs)
  return { gathering: { id, kind: 'digest', waitMs: 0, atMs, isUrgent: false, about } }
}

/**
 * The summary of what a first poll or a re-reading finds. What is urgent has a summary of its own, which is
 * told within seconds, however long the reading goes on.
 */
function backlogOf({ destination, feed }: ToPlace, isAtOnce: boolean): Gathering {
  return {
    id: idOf('backlog', feed, destination, ...(isAtOnce ? ['urgent'] : [])),
    kind: 'backlog',
    waitMs: backlogWaitMs,
    isUrgent: isAtOnce,
    about: { ...aboutOf(destination), feed },
  }
}

function groupOf({ destination, severity }: ToPlace, grouping: Grouping): Gathering {
  const { route, labels, waitMs } = grouping
  const sorted = Object.keys(labels)
    .toSorted()
    .map((name) => [name, labels[name]])
  return {
    id: idOf('group', route, destination, JSON.stringify(sorted)),
    kind: 'group',
    waitMs,
    isUrgent: isUrgent({ severity }),
    about: { ...aboutOf(destination), route, labels },
  }
}

function isUrgent({ severity }: Pick<ToPlace, 'severity'>): boolean {
  return severityRank(severity) >= urgentRank
}

/** Where people's items wait for the end of a mute, to come as one summary. */
export function heldPlace(destination: string, rule: string, untilMs: number): Gathering {
  return {
    id: idOf('held', destination, rule),
    kind: 'held',
    waitMs: 0,
    atMs: untilMs,
    isUrgent: false,
    about: aboutOf(destination),
  }
}

/** Longer than a move of some hundred items takes: then they come in one message. */
const movedWaitMs = 15_000

/** Where an item waits that is moved to another sink: machines get each, people one message. */
export function movedPlace(
  sink: CollectingSink,
  { from, ...item }: Pick<ToPlace, 'destination' | 'severity'> & { from: string },
  nowMs: number,
): Gathering | undefined {
  if (!sink.isForPeople) return undefined
  if (sink.digest) {
    const { gathering } = inDigest(sink.digest, { ...item, feed: '', isBacklog: false }, nowMs)
    if (gathering) return gathering
  }
  return togetherAs(item.destination, { 'moved from': from })
}

/**
 * Where an item waits for the fallback of its sink: machines get each, people one message that says what
 * could not be delivered to which sink. It does not wait for a digest.
 */
export function fallbackPlace(
  sink: CollectingSink,
  { from, destination, severity }: Pick<ToPlace, 'destination' | 'severity'> & { from: string },
  { fallbackWaitMs }: Pick<Timings, 'fallbackWaitMs'> = defaultTimings,
): Gathering | undefined {
  if (!sink.isForPeople) return undefined
  return {
    id: idOf('fallback', destination, from),
    kind: 'group',
    waitMs: fallbackWaitMs,
    isUrgent: isUrgent({ severity }),
    about: { ...aboutOf(destination), divertedFrom: from },
  }
}

/**
 * Where people's items wait while nothing can be sent to their sink, to come as one message. What goes
 * singly waits for no interval: once the sink is back, it is told as soon as it can be.
 */
export function keptPlace(destination: string): Gathering {
  const place = togetherAs(destination, { 'kept while': 'nothing could be sent here' })
  return { ...place, isUrgent: true }
}

/** Where people's items wait that were held while their sink was gone, to come as one message. */
export function returnedPlace(destination: string): Gathering {
  return togetherAs(destination, { 'held until': 'the sink was back' })
}

function togetherAs(destination: string, labels: Record<string, string>): Gathering {
  return {
    id: idOf('together', destination, JSON.stringify(labels)),
    kind: 'group',
    waitMs: movedWaitMs,
    isUrgent: false,
    about: { ...aboutOf(destination), labels },
  }
}

export function digestIdOf(destination: string): string {
  return idOf('digest', destination)
}

function aboutOf(destination: string): GatheringAbout {
  return { destination, route: null, labels: {}, feed: null }
}

function idOf(...parts: string[]): string {
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 24)
}
