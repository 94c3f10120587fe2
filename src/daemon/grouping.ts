import type { ExpectedPolling } from '../config/warnings.ts'
import type { Circuit } from '../delivery/circuit.ts'
import type { Drains } from '../delivery/drains.ts'
import type { Wake } from '../delivery/reroute.ts'
import { ownFeed } from '../event.ts'
import type { Gate, Judged, TurnOptions, Verdict } from '../grouping/flush-context.ts'
import { ensureDigests } from '../grouping/flush.ts'
import { createFlusher } from '../grouping/flusher.ts'
import type { CollectingSink } from '../grouping/placement.ts'
import { createSchedule } from '../lib/cron-schedule.ts'
import type { Metrics } from '../lib/metrics.ts'
import type { DigestFacts } from '../messages/summary.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { targetKeys } from '../routing/inhibition.ts'
import type { RoutableEvent, RouteNode, Router } from '../routing/router.ts'
import { findSilence, isSilenceProblem, parseSilence, type Silence } from '../routing/silences.ts'
import { mutedUntil } from '../routing/time-intervals.ts'
import type { Sink } from '../sinks/sink.ts'
import type { Book } from '../store/account-ledger.ts'
import { readHoldings } from '../store/accounts.ts'
import { countQuarantined, peekFeed } from '../store/feed-state.ts'
import type { Suppression } from '../store/records.ts'
import { areInhibited, readSilenceTexts, removeSilence } from '../store/silences.ts'
import { createServiceLink } from '../upstream/links.ts'
import { findBook, leftBooks, type Shared } from './context.ts'

export interface FlusherParts {
  sinks: ReadonlyMap<string, Sink>
  router: Router
  gate: Gate
  circuit: Circuit
  wake: Pick<Wake, 'ensureTried'>
  drains: Pick<Drains, 'tell'>
  /** How far a feed may fall behind. */
  expected: (feed: string) => Pick<ExpectedPolling, 'lagObjectiveMs'>
}

/** One pass of everything that waits for company; the form in which sinks collect. */
export interface Collecting {
  sinks: ReadonlyMap<string, CollectingSink>
  flushOnce(): Promise<unknown>
}

export function buildFlusher(shared: Shared, parts: FlusherParts): Collecting {
  const options = buildTurns(shared, parts)
  const flusher = createFlusher(options)
  return {
    sinks: options.sinks,
    async flushOnce() {
      if (shared.generation.isActive) await ensureDigests(options, shared.clock.now())
      await flusher.flushOnce()
    },
  }
}

/** What makes messages of collections works with. */
export function buildTurns(shared: Shared, parts: FlusherParts): TurnOptions {
  const { config, clock, logger, metrics, books, generation } = shared
  return {
    books,
    sinks: collectingSinks(shared, parts.sinks),
    gate: parts.gate,
    intervalMs: (route) =>
      (route === null ? parts.router.root : parts.router.node(route))?.groupIntervalMs ??
      defaultIntervalMs,
    async isBlocked(sink) {
      const { state, paused } = await parts.circuit.read(sink, clock.now())
      const isShut = state === 'open' || state === 'disabled' || paused !== undefined
      // one message tries whether the sink is back: what waits for company goes on waiting
      return isShut || (state === 'half_open' && (await parts.wake.ensureTried(sink)))
    },
    mayHold: () => generation.isActive,
    coverage: (fromMs) => coverageOf(shared, parts.expected, fromMs),
    serviceLink: createServiceLink(config.accounts),
    tell: (account, work) => parts.drains.tell(account, work),
    onSuppressed: (sink, severity, reason) => countSuppressed(metrics, sink, severity, reason),
    clock,
    logger,
  }
}

/** For a group whose route is gone (route of the file, group_interval). */
const defaultIntervalMs = 5 * 60_000

/** The sinks as they collect: people's wait for company. */
export function collectingSinks(
  { config }: Pick<Shared, 'config'>,
  sinks: ReadonlyMap<string, Pick<Sink, 'destinations'>>,
): Map<string, CollectingSink> {
  return new Map(
    config.sinks.map((sink) => {
      const digest = sink.type === 'webhook' ? undefined : sink.digest
      const collecting: CollectingSink = {
        name: sink.name,
        isForPeople: sink.type !== 'webhook',
        destinations: sinks.get(sink.name)?.destinations ?? [],
        digest: digest && {
          schedule: createSchedule(digest),
          timeZone: digest.timeZone,
          immediate: digest.immediate,
          sendsEmpty: digest.sendsEmpty,
          maxItems: digest.maxItems,
        },
      }
      return [sink.name, collecting]
    }),
  )
}

/** Every feed's last time at its end, and what of it could not be read: what a digest cannot know. */
async function coverageOf(
  shared: Shared,
  expected: FlusherParts['expected'],
  fromMs: number,
): Promise<DigestFacts['feeds']> {
  const nowMs = shared.clock.now()
  const feeds: DigestFacts['feeds'] = []
  const quarantines = new Map(
    await Promise.all(
      shared.books.map(async (book) => [book, await countQuarantined(book, fromMs)] as const),
    ),
  )
  for (const { name, account } of shared.config.feeds) {
    const book = findBook(shared, account)
    const state = book && (await peekFeed(book, name, nowMs))
    const quarantined = book && quarantines.get(book)?.[name]
    const lastCaughtUpMs = state?.lastCaughtUpMs ?? null
    const isBehind =
      lastCaughtUpMs === null || nowMs - lastCaughtUpMs > expected(name).lagObjectiveMs
    feeds.push({
      feed: name,
      lastCaughtUpMs,
      isBehind,
      ...(quarantined && { quarantined: { fresh: quarantined.fresh, open: quarantined.open } }),
      ...(state?.unreadable && { isUnreadable: true }),
    })
  }
  return [...feeds, ...(await leftCoverage(shared, nowMs))]
}

/** Feeds of accounts that left, while something of theirs is still to be told: nothing more is read there. */
async function leftCoverage(shared: Shared, nowMs: number): Promise<DigestFacts['feeds']> {
  const feeds: DigestFacts['feeds'] = []
  for (const book of leftBooks(shared)) {
    const holdings = await readHoldings(book)
    for (const name of holdings.pendingTotal > 0 ? holdings.feeds : []) {
      const state = await peekFeed(book, name, nowMs)
      const lastCaughtUpMs = state?.lastCaughtUpMs ?? null
      feeds.push({ feed: name, lastCaughtUpMs, isBehind: false, hasLeft: true })
    }
  }
  return feeds
}

/** An item that was settled without a message. */
export function countSuppressed(
  metrics: Metrics,
  sink: string,
  severity: string,
  reason: Suppression,
): void {
  metrics.suppressedTotal.inc({ sink, severity, reason })
  metrics.itemsSettledTotal.inc({ sink, outcome: 'suppressed' })
}

interface GateParts extends Pick<Shared, 'config' | 'clock'> {
  router: Router
  silences: () => readonly Silence[]
}

interface Candidate {
  judged: Judged
  input: RoutableEvent
  /** The rule that inhibits it, if one does. */
  inhibitedBy: string | undefined
}

/** One rule's word on a candidate; undefined: none. */
type Stage = (parts: GateParts, candidate: Candidate, nowMs: number) => Verdict | undefined

/** In this order; the first that says something decides. */
const stages: Stage[] = [closed, silenced, inhibited, muted]

export function buildGate(
  shared: Pick<Shared, 'config' | 'clock'>,
  router: Router,
  silences: () => readonly Silence[],
): Gate {
  const parts: GateParts = { config: shared.config, clock: shared.clock, router, silences }
  return {
    judge: (book, items) => judge(parts, book, items),
    isIdleFor: (sink) => isMachine(parts, sink) && !hasRules(parts),
  }
}

async function judge(parts: GateParts, book: Book, items: readonly Judged[]): Promise<Verdict[]> {
  const nowMs = parts.clock.now()
  const candidates = await candidatesOf(parts, book, items, nowMs)
  return candidates.map((candidate) => {
    // what Tocsin says of itself is nobody's to silence
    for (const stage of candidate.judged.feed === ownFeed ? [] : stages) {
      const verdict = stage(parts, candidate, nowMs)
      if (verdict) return verdict
    }
    return { act: 'send' }
  })
}

/** Machines are told of what people closed, so nothing but a rule keeps anything from them. */
function hasRules({ config, router, silences }: GateParts): boolean {
  return silences().length > 0 || config.inhibitRules.length > 0 || hasMutes(router.root)
}

function hasMutes({ muteTimeIntervals, routes }: RouteNode): boolean {
  return muteTimeIntervals.length > 0 || routes.some(hasMutes)
}

function isMachine({ config }: GateParts, name: string): boolean {
  return config.sinks.some((sink) => sink.name === name && sink.type === 'webhook')
}

/** What people closed at the service is not told to people; machines are told, with its times. */
function closed(parts: GateParts, { judged }: Candidate): Verdict | undefined {
  const { ignoredAtMs, remediatedAtMs } = judged.event
  const shown = ignoredAtMs === null ? undefined : 'ignored'
  const reason = judged.closed ?? (remediatedAtMs === null ? shown : 'remediated')
  if (reason === undefined || isMachine(parts, judged.sink)) return undefined
  return { act: 'suppress', reason, rule: 'at the service' }
}

function silenced(
  { silences }: GateParts,
  { input }: Candidate,
  nowMs: number,
): Verdict | undefined {
  const silence = findSilence(silences(), input, nowMs)
  return silence && { act: 'suppress', reason: 'silence', rule: silence.id }
}

function inhibited(_parts: GateParts, { inhibitedBy: rule }: Candidate): Verdict | undefined {
  return rule === undefined ? undefined : { act: 'suppress', reason: 'inhibition', rule }
}

function muted(
  { config, router }: GateParts,
  { judged: { routes } }: Candidate,
  nowMs: number,
): Verdict | undefined {
  const node = routes[0] === undefined ? undefined : router.node(routes[0])
  if (!node || node.muteTimeIntervals.length === 0) return undefined
  const untilMs = mutedUntil(config.timeIntervals, [...node.muteTimeIntervals], nowMs)
  if (untilMs === undefined) return undefined
  const rule = `${node.name}: ${node.muteTimeIntervals.join(', ')}`
  if (node.onMute === 'drop') return { act: 'suppress', reason: 'mute', rule }
  return { act: 'hold', rule, untilMs }
}

async function candidatesOf(
  { config: { inhibitRules } }: GateParts,
  book: Book,
  items: readonly Judged[],
  nowMs: number,
): Promise<Candidate[]> {
  const inputs = items.map((judged) => {
    const { event, feed, labels } = judged
    return { judged, input: { event, account: book.account, feed, labels } }
  })
  const asked = inputs.flatMap(({ judged, input }, place) =>
    targetKeys(inhibitRules, input).map((target) => {
      return { ...target, place, recordId: judged.recordId }
    }),
  )
  const answers = await areInhibited(book, asked, nowMs)
  return inputs.map(({ judged, input }, at) => ({
    judged,
    input,
    inhibitedBy: asked.find(({ place }, i) => place === at && answers[i])?.rule,
  }))
}

export interface LiveSilences {
  /** Those of the file and those made by command, as of the last look. */
  current(): readonly Silence[]
  /** Looks again; what cannot be read silences nothing, and is said once. */
  refreshOnce(): Promise<void>
}

/** How long one that is over is still listed. */
const rememberedMs = 7 * 86_400_000

export function createLiveSilences({
  config,
  redis,
  keys,
  clock,
  logger,
}: Pick<Shared, 'config' | 'redis' | 'keys' | 'clock' | 'logger'>): LiveSilences {
  let made: Silence[] = []
  const unreadable = new Set<string>()

  function complain(id: string): void {
    if (!unreadable.has(id))
      logger.warn({ silence: id }, 'silence cannot be read: it silences nothing')
    unreadable.add(id)
  }

  return {
    current: () => [...config.silences, ...made],
    async refreshOnce() {
      const found = await readSilences(redis, keys)
      found.unreadable.forEach(complain)
      made = found.silences
      for (const { id, endsAtMs } of made) {
        if (endsAtMs < clock.now() - rememberedMs) await removeSilence(redis, keys, id)
      }
    },
  }
}

/** Those made by command, and the ids of what cannot be read as one. */
export async function readSilences(
  redis: Redis,
  keys: Keys,
): Promise<{ silences: Silence[]; unreadable: string[] }> {
  const silences: Silence[] = []
  const unreadable: string[] = []
  for (const [id, text] of await readSilenceTexts(redis, keys)) {
    const silence = parseSilence(jsonOf(text))
    if (isSilenceProblem(silence)) unreadable.push(id)
    else silences.push(silence)
  }
  return { silences, unreadable }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
