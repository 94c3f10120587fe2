/**
 * A circuit breaker for each sink, shared by all replicas. A sink that is down delays only its own
 * items; a sink whose address is gone gets nothing until the address changes or an operator resumes
 * it.
 */
import { defaultTimings, replicaId, type Timings } from '../lib/clock.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { holdLease, runScript } from '../redis/scripts.ts'
import type { SinkReason } from '../sinks/sink.ts'
import type { CircuitEffect } from './retry-policy.ts'

export interface Circuit {
  /**
   * Says how many of `count` sends may go: all of them, one as the probe, or none. With none,
   * `waitMs` says when to ask again.
   */
  admit(sink: string, count: number): Promise<AdmitResult>
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
  read(sink: string, nowMs: number): Promise<CircuitReading>
  /**
   * Pauses a sink for all replicas until it is resumed (`undefined`). Resuming also enables a
   * disabled sink, and lets an open circuit send its probe at once.
   */
  pause(sink: string, pause: SinkPause | undefined): Promise<void>
}

export interface AdmitResult {
  count: number
  waitMs: number
  /** The one send that may go is the probe: it tests whether the sink is back. */
  isProbe: boolean
}

export interface SentReport {
  /** Why it failed. */
  reason?: SinkReason | undefined
  /** What the sink said; at most 200 characters are stored. */
  answer?: string | undefined
  /** When the failed message is tried again; undefined: never. */
  nextTryInMs?: number | undefined
  /** The send was the probe: while the circuit is open, only a probe's outcome extends or closes it. */
  isProbe?: boolean
  /** The pause that the sink asked for; no replica sends before it is over. */
  pauseMs?: number | undefined
}

export interface SinkPause {
  reason: string
  sinceMs: number
}

/** What failed last, and for how long nothing has been accepted. */
export interface SinkTrouble {
  reason: SinkReason
  /** What the other side said: at most 200 characters, no secret. */
  answer: string
  /** When the first of these failures was, by Redis' clock. */
  sinceMs: number
  lastMs: number
  /** Failures in a row. */
  count: number
  /** undefined: nothing is tried again until something new is sent, or somebody acts. */
  nextTryMs: number | undefined
}

export interface CircuitReading {
  state: 'closed' | 'open' | 'half_open' | 'disabled'
  /** When an open circuit lets a probe through. */
  untilMs: number | undefined
  /** Since when nothing gets through; undefined: sends get through. */
  openedAtMs: number | undefined
  lastSuccessMs: number | undefined
  /** Why an operator paused the sink; undefined: it is not paused. */
  paused: SinkPause | undefined
  /** The answer that said that the sink's address is gone. */
  disabled: SinkPause | undefined
  /** Left out: the last send was accepted. */
  trouble?: SinkTrouble
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
  return {
    async admit(sink, count) {
      const args = [probeLeaseMs, hashAddress(sink), replicaId]
      const answer = Number(await runScript(redis, 'circuit-admit', names(sink), args))
      if (answer === 0) return { count, waitMs: 0, isProbe: false }
      if (answer === -1) return { count: 1, waitMs: 0, isProbe: true }
      return { count: 0, waitMs: answer, isProbe: false }
    },
    async report(sink, word, sent = {}) {
      const { answer = '', isProbe = false, pauseMs = 0, reason = '', nextTryInMs = '' } = sent
      const prober = isProbe ? replicaId : ''
      const failure = [reason, nextTryInMs]
      const text = answer.slice(0, 200)
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
      await runScript(redis, 'open-lock', [keys.shared('circuit', sink, 'probe')], [replicaId])
    },
    async read(sink, nowMs) {
      const stored = await redis.hgetall(keys.shared('circuit', sink))
      return toReading(stored, hashAddress(sink), nowMs)
    },
    async pause(sink, pause) {
      const name = keys.shared('circuit', sink)
      if (pause === undefined) await runScript(redis, 'circuit-resume', [name], [])
      else await redis.hset(name, 'paused', JSON.stringify(pause))
    },
  }
}

function toReading(
  stored: Record<string, string>,
  addressHash: string,
  nowMs: number,
): CircuitReading {
  const { until, opened_at: opened, last_success: last, paused, disabled, trouble } = stored
  const parseMs = (text: string | undefined): number | undefined =>
    text === undefined ? undefined : Number(text)
  const note = disabled === undefined ? undefined : (JSON.parse(disabled) as DisabledNote)
  const isDisabled = note !== undefined && (addressHash === '' || note.of === addressHash)
  const untilMs = parseMs(until)
  const state = isDisabled ? 'disabled' : circuitState(untilMs, nowMs)
  return {
    state,
    untilMs,
    openedAtMs: isDisabled ? note.sinceMs : parseMs(opened),
    lastSuccessMs: parseMs(last),
    paused: paused === undefined ? undefined : (JSON.parse(paused) as SinkPause),
    disabled: isDisabled ? { reason: note.reason, sinceMs: note.sinceMs } : undefined,
    ...(trouble !== undefined && { trouble: toTrouble(trouble, state, untilMs) }),
  }
}

/** While the circuit is open, it decides when the next message goes. */
function toTrouble(
  text: string,
  state: CircuitReading['state'],
  untilMs: number | undefined,
): SinkTrouble {
  const { nextTryMs, ...failed } = JSON.parse(text) as SinkTrouble
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
