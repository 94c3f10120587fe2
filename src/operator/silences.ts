/** Silences as operators read, make and end them. */
import type { Config } from '../config/config.ts'
import { readSilences } from '../delivery/silences.ts'
import { severities, severityRank } from '../event.ts'
import { formatUtcTime } from '../lib/time-zone.ts'
import { redisNow } from '../redis/scripts.ts'
import { createReach, meetsFeed } from '../routing/reach.ts'
import { createRouter } from '../routing/router.ts'
import { type Silence, silenceText } from '../routing/silences.ts'
import { sinkTypeOf } from '../sinks/sink-types.ts'
import { writeSilence } from '../store/silences.ts'
import { type Column, formatIsoTime, toJson } from './reports/columns.ts'
import type { OpenLedgers } from './open-ledgers.ts'

type Store = Pick<OpenLedgers, 'redis' | 'keys'>

/** The order of the list: active silences first. */
const phases = ['active', 'not_begun', 'over'] as const

/** Those of the file and those made since, active ones first, then by their end. */
export async function readAllSilences(
  store: Store,
  config: Config,
): Promise<{ silences: Silence[]; unreadable: string[]; nowMs: number }> {
  const stored = await readSilences(store.redis, store.keys)
  const nowMs = await redisNow(store)
  const all = [...config.silences, ...stored.silences]
  const silences = phases.flatMap((phase) =>
    all
      .filter((silence) => silencePhase(silence, nowMs) === phase)
      .toSorted((a, b) => a.endsAtMs - b.endsAtMs),
  )
  return { silences, unreadable: stored.unreadable, nowMs }
}

/** Ends a silence now; it stays listed as over for a week. Returns whether it was not over yet. */
export async function endSilence({ redis, keys }: Store, silence: Silence): Promise<boolean> {
  const nowMs = await redisNow({ redis })
  if (silence.endsAtMs <= nowMs) return false
  const endsAtMs = Math.max(nowMs, silence.startsAtMs + 1) // it may not end before it begins
  await storeSilence({ redis, keys }, { ...silence, endsAtMs })
  return true
}

export async function storeSilence({ redis, keys }: Store, silence: Silence): Promise<void> {
  await writeSilence(redis, keys, { id: silence.id, text: silenceText(silence) })
}

function silencePhase({ startsAtMs, endsAtMs }: Silence, nowMs: number): (typeof phases)[number] {
  if (nowMs < startsAtMs) return 'not_begun'
  return nowMs < endsAtMs ? 'active' : 'over'
}

export function silenceColumns(nowMs: number): readonly Column<Silence>[] {
  return [
    { key: 'id', title: 'ID', json: ({ id }) => id },
    { key: 'phase', title: 'PHASE', json: (silence) => silencePhase(silence, nowMs) },
    { key: 'starts', json: ({ startsAtMs }) => formatIsoTime(startsAtMs) },
    {
      key: 'until',
      title: 'UNTIL',
      json: ({ endsAtMs }) => formatIsoTime(endsAtMs),
      text: ({ endsAtMs }) => formatUtcTime(endsAtMs),
    },
    { key: 'severity', title: 'UP TO', json: ({ maxSeverity }) => maxSeverity },
    {
      key: 'machines',
      title: 'FOR',
      json: ({ machines }) => machines,
      text: ({ machines }) => (machines ? 'all' : 'people'),
    },
    { key: 'origin', title: 'BY', json: ({ origin }) => origin },
    { key: 'owner', title: 'OWNER', json: ({ owner }) => owner },
    {
      key: 'matchers',
      title: 'MATCHERS',
      json: ({ matchers }) => matchers.map(({ text }) => text),
      text: ({ matchers }) => matchers.map(({ text }) => text).join(' '),
    },
    { key: 'reason', title: 'REASON', json: ({ reason }) => reason },
  ]
}

export function silenceJson(silence: Silence, nowMs: number): Record<string, unknown> {
  return toJson(silenceColumns(nowMs), silence)
}

/** Machines get everything unless the silence names them, too. */
export function isSilencedSink({ machines }: Silence, sink: Config['sinks'][number]): boolean {
  return machines || sinkTypeOf(sink).audience === 'people'
}

/**
 * Sinks that events of the silence's feeds and severities may reach, by whether they get what it
 * matches.
 */
export interface SilenceReach {
  silent: string[]
  goes_on: string[]
}

export function sinksBySilence({ route, feeds, sinks }: Config, silence: Silence): SilenceReach {
  const { matchers, maxSeverity } = silence
  const reachOf = createReach(createRouter(route).root)
  const silenced = severities.slice(0, severityRank(maxSeverity))
  const met = silenced.flatMap((severity) =>
    feeds
      .filter((feed) => meetsFeed(feed, matchers, severity))
      .flatMap((feed) => [...reachOf(feed, severity)]),
  )
  const reached = new Set(met)
  const all = Object.groupBy(
    sinks.filter(({ name }) => reached.has(name)),
    (sink) => (isSilencedSink(silence, sink) ? 'silent' : 'goes_on'),
  )
  const namesOf = (some: Config['sinks'] = []): string[] => some.map(({ name }) => name)
  return { silent: namesOf(all.silent), goes_on: namesOf(all.goes_on) }
}
