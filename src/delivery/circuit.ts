/**
 * A circuit breaker for each sink, and for each recipient of a sink that has some, shared by all
 * replicas. What is down delays only its own items. A sink whose address is gone gets nothing until
 * the address changes or an operator resumes it. A circuit has the name of the sink, or the
 * destination's id. A single recipient has its own, too: replicas of another configuration may know
 * further ones.
 */
import { defaultTimings, replicaId, type Timings } from '../lib/clock.ts'
import { maxTroubleAnswer, type Trouble } from '../lib/trouble.ts'
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, releaseLease, runScript } from '../redis/scripts.ts'
import type { Destination, SinkReason } from '../sinks/sink.ts'
import type { CircuitEffect } from './send/retry-policy.ts'

export interface Circuit {
  /**
   * Says how many of `count` sends may go: all of them, one as the probe, or none. With none,
   * `waitMs` says when to ask again. Also says which of the destinations are in trouble.
   */
  admit(sink: string, count: number, destinations?: Destinations): Promise<AdmitResult>
  /**
   * Reports how a send went. Returns what the report changed, 'open' if the circuit was open
   * already, or undefined.
   */
  report(
    sink: string,
    word: 'ok' | CircuitEffect,
    sent?: SentReport,
  ): Promise<'opened' | 'open' | 'closed' | 'disabled' | undefined>
  /** Keeps the probe that this process has in hand; without renewal it ends after 30 s. */
  renewProbe(sink: string): Promise<void>
  /**
   * Gives up the probe that this process holds but did not send; the next send may become the
   * probe.
   */
  releaseProbe(sink: string): Promise<void>
  /** With `destinations`: a sink with recipients, of which each is in trouble, is read as such itself. */
  read(sink: string, nowMs: number, destinations?: Destinations): Promise<CircuitReading>
  /**
   * Pauses a sink for all replicas until it is resumed (`undefined`). Resuming also enables a
   * disabled sink, and lets an open circuit, or one of a destination, send its probe at once.
   */
  pause(sink: string, pause: SinkPause | undefined, destinations?: Destinations): Promise<void>
}

type Destinations = readonly Pick<Destination, 'id'>[]

export interface AdmitResult {
  count: number
  waitMs: number
  /** The one send that may go is the probe: it tests whether the sink is back. */
  isProbe: boolean
  /** Only a message that was never tried may be the probe; `waitMs` says when any may. */
  isForUntried?: boolean
  /** When the sink last accepted something, by Redis' clock. */
  lastSuccessMs?: number
  /** How many messages more were made by splits since then. */
  parts?: number
  /** How long the messages of each destination in trouble wait, ms; 0: one may go, as its probe. */
  waits?: Readonly<Record<string, number>>
  /** The destinations whose last message failed. */
  failing?: readonly string[]
}

export interface SentReport {
  /** Why it failed. */
  reason?: SinkReason | undefined
  /**
   * The message may be to blame, and failed for the first time, or again; undefined: any other
   * message would have failed, too.
   */
  blame?: 'first' | 'again' | undefined
  /** It goes on in parts, so many more. */
  newParts?: number | undefined
  /** What the sink said; at most 200 characters are stored. */
  answer?: string | undefined
  /** When the failed message is tried again; undefined: never. */
  nextTryInMs?: number | undefined
  /** The send was the probe: while the circuit is open, only a probe's outcome extends or closes it. */
  isProbe?: boolean
  /** It is that of a destination, which is forgotten a week after its last report. */
  isDestinations?: boolean
  /** The pause that the sink asked for; no replica sends before it is over. */
  pauseMs?: number | undefined
}

export interface SinkPause {
  reason: string
  sinceMs: number
}

export interface CircuitReading {
  state: 'closed' | 'open' | 'half_open' | 'disabled'
  /** When an open circuit lets a probe through. */
  untilMs: number | undefined
  /**
   * From when on a message that was never tried may be the probe. undefined: not before any other,
   * or more than one message has failed: then none of them is likely to be to blame.
   */
  untriedAtMs: number | undefined
  /** Since when nothing gets through; undefined: sends get through. */
  openedAtMs: number | undefined
  lastSuccessMs: number | undefined
  /** Why an operator paused the sink; undefined: it is not paused. */
  paused: SinkPause | undefined
  /** The answer that said that the sink's address is gone. */
  disabled: SinkPause | undefined
  /** Left out: the address has not failed, or the last send was accepted. */
  trouble?: Trouble
}

/**
 * Returns the fingerprint of a sink's address, so that a changed address is a new sink; '': not
 * known.
 */
export type HashAddress = (sink: string) => string

/** A probe that nobody renews, because its replica died, blocks the next one for this long. */
const probeLeaseMs = 30_000

export function createCircuit(
  redis: Redis,
  keys: Keys,
  hashAddress: HashAddress = () => '',
  { circuitOpenMs }: Pick<Timings, 'circuitOpenMs'> = defaultTimings,
): Circuit {
  const names = (sink: string): string[] => [
    keys.shared('circuit', sink),
    keys.shared('circuit', sink, 'probe'),
  ]
  const readOne = async (name: string, nowMs: number): Promise<CircuitReading> =>
    toReading(await redis.hgetall(keys.shared('circuit', name)), hashAddress(name), nowMs)
  return {
    async admit(sink, count, destinations = []) {
      const circuits = [sink, ...destinations.map(({ id }) => id)].flatMap(names)
      const args = [probeLeaseMs, hashAddress(sink), replicaId]
      const answer = (await runScript(redis, 'circuit-admit', circuits, args)) as number[]
      return toAdmitResult(answer, count, destinations)
    },
    async report(sink, word, sent = {}) {
      const { answer = '', isProbe = false, pauseMs = 0, reason = '', nextTryInMs = '' } = sent
      const prober = isProbe ? replicaId : ''
      const failure = [
        reason,
        nextTryInMs,
        sent.blame ?? '',
        sent.isDestinations ? 1 : '',
        sent.newParts ?? 0,
      ]
      const text = answer.slice(0, maxTroubleAnswer)
      const args = [word, hashAddress(sink), text, circuitOpenMs, prober, pauseMs, ...failure]
      const changed = String(await runScript(redis, 'circuit-report', names(sink), args))
      if (changed.startsWith('opened')) return 'opened'
      return changed === 'closed' || changed === 'disabled' || changed === 'open'
        ? changed
        : undefined
    },
    async renewProbe(sink) {
      const lease = { holder: replicaId, ms: probeLeaseMs }
      await holdLease(redis, keys.shared('circuit', sink, 'probe'), lease)
    },
    async releaseProbe(sink) {
      await releaseLease(redis, keys.shared('circuit', sink, 'probe'), replicaId)
    },
    async read(sink, nowMs, destinations = []) {
      const own = await readOne(sink, nowMs)
      const others = destinations.filter(({ id }) => id !== sink)
      if (own.state !== 'closed' || others.length === 0) return own
      const each = await Promise.all(others.map(({ id }) => readOne(id, nowMs)))
      const isWell = each.some(({ state, trouble }) => state === 'closed' && trouble === undefined)
      return isWell ? own : joinReadings(own, each)
    },
    async pause(sink, pause, destinations = []) {
      const name = keys.shared('circuit', sink)
      const others = destinations.map(({ id }) => keys.shared('circuit', id))
      if (pause === undefined) await runScript(redis, 'circuit-resume', [name, ...others], [])
      else await redis.hset(name, 'paused', JSON.stringify(pause))
    },
  }
}

function toAdmitResult(
  [answer = 0, anyInMs = 0, lastSuccessMs = 0, parts = 0, ...found]: readonly number[],
  count: number,
  destinations: Destinations,
): AdmitResult {
  const each = destinations.map(({ id }, i) => ({ id, waitMs: found[i] ?? 0 }))
  const waiting = each.filter(({ waitMs }) => waitMs >= 0)
  return {
    count: answer === 0 ? count : Number(answer < 0),
    waitMs: answer > 0 ? answer : anyInMs,
    isProbe: answer < 0,
    isForUntried: answer === -2,
    lastSuccessMs,
    parts,
    waits: Object.fromEntries(waiting.map(({ id, waitMs }) => [id, waitMs])),
    failing: each.flatMap(({ id, waitMs }) => (waitMs === -2 ? [] : [id])),
  }
}

/**
 * The last message to each destination failed: the sink is as well as the best of them. Where nothing
 * gets through to any, it gets a message through with the next probe.
 */
function joinReadings(own: CircuitReading, each: readonly CircuitReading[]): CircuitReading {
  const [next = own] = each.toSorted((a, b) => (a.untilMs ?? 0) - (b.untilMs ?? 0))
  const openedAtMs = next.openedAtMs && Math.max(...each.map((reading) => reading.openedAtMs ?? 0))
  return { ...next, openedAtMs, lastSuccessMs: own.lastSuccessMs, paused: own.paused }
}

function toReading(
  stored: Record<string, string>,
  addressHash: string,
  nowMs: number,
): CircuitReading {
  const { until, opened_at: opened, last_success: last, paused, disabled, trouble } = stored
  const { untried_at: untriedAt, messages = '0', trouble_of: troubleOf = '' } = stored
  const parseMs = (text: string | undefined): number | undefined =>
    text === undefined ? undefined : Number(text)
  const note = disabled === undefined ? undefined : (JSON.parse(disabled) as DisabledNote)
  const isDisabled = note !== undefined && (addressHash === '' || note.of === addressHash)
  const isOther = troubleOf !== '' && addressHash !== '' && troubleOf !== addressHash
  const untilMs = parseMs(until)
  const state = isDisabled ? 'disabled' : circuitState(untilMs, nowMs)
  return {
    state,
    untilMs,
    untriedAtMs: Number(messages) > 1 ? undefined : parseMs(untriedAt),
    openedAtMs: isDisabled ? note.sinceMs : parseMs(opened),
    lastSuccessMs: parseMs(last),
    paused: paused === undefined ? undefined : (JSON.parse(paused) as SinkPause),
    disabled: isDisabled ? { reason: note.reason, sinceMs: note.sinceMs } : undefined,
    ...(trouble !== undefined && !isOther && { trouble: toTrouble(trouble, state, untilMs) }),
  }
}

/** While the circuit is open, it decides when the next message goes. */
function toTrouble(
  text: string,
  state: CircuitReading['state'],
  untilMs: number | undefined,
): Trouble {
  const { nextTryMs, ...failed } = JSON.parse(text) as Trouble
  if (state === 'disabled') return { ...failed, nextTryMs: undefined }
  return { ...failed, nextTryMs: state === 'closed' ? nextTryMs : untilMs }
}

/** As stored: `of` is the fingerprint of the address that is gone. */
interface DisabledNote extends SinkPause {
  of: string
}

/** The longest pause, 15 min, and the largest tolerated difference to Redis' clock, 5 min. */
const farthestMs = 20 * 60_000

/** A time further ahead was written before the clock was set back: a probe may go. */
function circuitState(untilMs: number | undefined, nowMs: number): 'closed' | 'open' | 'half_open' {
  if (untilMs === undefined) return 'closed'
  return nowMs < untilMs && untilMs <= nowMs + farthestMs ? 'open' : 'half_open'
}
