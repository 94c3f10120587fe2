/**
 * A circuit for each sink, shared by all replicas: a sink that is down delays only itself, and one that
 * is gone is left alone until an operator acts.
 */
import { defaultTimings, replicaId, type Timings } from '../lib/clock.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { runScript } from '../redis/scripts.ts'
import type { CircuitEffect } from './retry-policy.ts'

export interface Circuit {
  /**
   * How many of `count` sends may go: all, the one that tries whether the sink is back, or none, and then how long
   * to wait before asking again, ms.
   */
  admit(sink: string, count: number, sendTimeoutMs?: number): Promise<AdmitResult>
  /** Says what this report changed, if anything, or that it was open before. */
  report(
    sink: string,
    word: 'ok' | CircuitEffect,
    sent?: SentReport,
  ): Promise<'opened' | 'open' | 'closed' | 'disabled' | undefined>
  /** The probe of a half-open circuit, which this process had, was not sent after all: the next may be it. */
  releaseProbe(sink: string): Promise<void>
  read(sink: string, nowMs: number): Promise<CircuitReading>
  /**
   * Nothing is sent to a paused sink until it is resumed (undefined), by any replica. One that is
   * disabled is tried again then, too.
   */
  pause(sink: string, pause: SinkPause | undefined): Promise<void>
}

export interface AdmitResult {
  count: number
  waitMs: number
  /** The one that goes tries whether the sink is back. */
  isProbe: boolean
}

export interface SentReport {
  /** Kept where it says that the sink is gone. */
  answer?: string | undefined
  /** It was the probe: what was sent before the circuit opened says nothing of now. */
  isProbe?: boolean
  /** The sink asked for it: no replica sends before it is over. */
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
  /** Since when nothing gets through; undefined: it does. */
  openedAtMs: number | undefined
  lastSuccessMs: number | undefined
  /** Why an operator paused it; undefined: nobody did. */
  paused: SinkPause | undefined
  /** What it answered that means that its address is no more. */
  disabled: SinkPause | undefined
}

/** What stands for a sink's address, so that another address is another sink; '': not known. */
export type HashAddress = (sink: string) => string

/** A probe that never reports back (its replica died) blocks the next one so much longer than a send. */
const probeGraceMs = 15_000

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
    async admit(sink, count, sendTimeoutMs = 15_000) {
      const args = [sendTimeoutMs + probeGraceMs, hashAddress(sink), replicaId]
      const answer = Number(await runScript(redis, 'circuit-admit', names(sink), args))
      const isProbe = answer < 0
      if (answer > 0) return { count: 0, waitMs: answer, isProbe }
      return { count: isProbe ? 1 : count, waitMs: 0, isProbe }
    },
    async report(sink, word, { answer = '', isProbe = false, pauseMs = 0 } = {}) {
      if (word === 'none' && !isProbe && pauseMs === 0) return undefined
      const prober = isProbe ? replicaId : ''
      const args = [word, hashAddress(sink), answer.slice(0, 200), circuitOpenMs, prober, pauseMs]
      const changed = String(await runScript(redis, 'circuit-report', names(sink), args))
      if (changed.startsWith('opened')) return 'opened'
      return changed === 'closed' || changed === 'disabled' || changed === 'open'
        ? changed
        : undefined
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
      if (pause === undefined) await redis.hdel(name, 'paused', 'disabled')
      else await redis.hset(name, 'paused', JSON.stringify(pause))
    },
  }
}

function toReading(
  stored: Record<string, string>,
  addressHash: string,
  nowMs: number,
): CircuitReading {
  const { until, opened_at: opened, last_success: last, paused, disabled } = stored
  const parseMs = (text: string | undefined): number | undefined =>
    text === undefined ? undefined : Number(text)
  const note = disabled === undefined ? undefined : (JSON.parse(disabled) as DisabledNote)
  const isDisabled = note !== undefined && (addressHash === '' || note.of === addressHash)
  const untilMs = parseMs(until)
  return {
    state: isDisabled ? 'disabled' : circuitState(untilMs, nowMs),
    untilMs,
    openedAtMs: isDisabled ? note.sinceMs : parseMs(opened),
    lastSuccessMs: parseMs(last),
    paused: paused === undefined ? undefined : (JSON.parse(paused) as SinkPause),
    disabled: isDisabled ? { reason: note.reason, sinceMs: note.sinceMs } : undefined,
  }
}

/** As stored: `of` is the fingerprint of the address that is no more. */
interface DisabledNote extends SinkPause {
  of: string
}

function circuitState(untilMs: number | undefined, nowMs: number): 'closed' | 'open' | 'half_open' {
  if (untilMs === undefined) return 'closed'
  return nowMs < untilMs ? 'open' : 'half_open'
}
