import { ownUidPrefixes } from '../events/own-feed.ts'
import type { ThreatEvent } from '../events/threat-event.ts'
import { spanInWords } from '../runtime/span-in-words.ts'
import type { Noted } from './next-step.ts'
import { conditionId, wordsOf, type Trouble } from './troubles.ts'

/** Fields of an event of Tocsin's own; its describer in `messages/` reads them by these names. */
type Fields = Record<string, string | null>

/** An event that Tocsin tells of itself. */
export function ownEvent(
  given: Pick<ThreatEvent, 'uid' | 'type' | 'severity' | 'createdAtMs'>,
  fields: Fields,
): ThreatEvent {
  const said = Object.entries(fields).flatMap(([name, text]): [string, string[]][] =>
    text === null ? [] : [[name, [text]]],
  )
  return {
    ...given,
    kind: 'event',
    source: 'tocsin',
    originalSeverity: null,
    matchedAtMs: null,
    ignoredAtMs: null,
    remediatedAtMs: null,
    url: null,
    tags: [],
    notes: null,
    identifiers: [],
    highlights: Object.fromEntries(said),
  }
}

/** Replicas that say it at once make the same uid, so it is one event. */
export function beginNotice(trouble: Trouble, noted: Noted, cause: string | null): ThreatEvent {
  const { sinceMs, dueMs = sinceMs } = noted
  const { severity, now, toDo } = wordsOf(trouble)
  const name = trouble.name ?? ''
  const lastedMs = dueMs - sinceMs
  const forSoLong = lastedMs < 60_000 ? '' : ` for ${inMinutes(lastedMs)}`
  return ownEvent(
    { uid: beginUid(trouble, noted), type: 'notice', severity, createdAtMs: sinceMs },
    {
      headline: `${now(name)}${forSoLong}`,
      since: isoTime(sinceMs),
      cause,
      what_to_do: toDo(name),
    },
  )
}

export function endNotice(
  trouble: Trouble,
  { sinceMs, goneMs }: Noted,
  nowMs: number,
): ThreatEvent {
  const overMs = goneMs ?? nowMs
  const name = trouble.name ?? ''
  return ownEvent(
    { uid: uidOf(trouble, sinceMs, 'end'), type: 'notice', severity: 'info', createdAtMs: overMs },
    {
      headline: `over after ${inMinutes(overMs - sinceMs)}: ${wordsOf(trouble).was(name)}`,
      since: isoTime(sinceMs),
      over_at: isoTime(overMs),
    },
  )
}

/** Under which the ledger has the begin. */
export function beginUid(trouble: Trouble, { sinceMs }: Noted): string {
  return uidOf(trouble, sinceMs, 'begin')
}

function uidOf(trouble: Trouble, sinceMs: number, edge: 'begin' | 'end'): string {
  return `${ownUidPrefixes.notice}${conditionId(trouble)}-${sinceMs}-${edge}`
}

/** Seconds only where there is nothing more. */
function inMinutes(ms: number): string {
  return spanInWords(ms < 60_000 ? Math.max(0, ms) : ms - (ms % 60_000))
}

function isoTime(atMs: number): string {
  return new Date(atMs).toISOString()
}
