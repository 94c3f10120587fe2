/**
 * One pass of one delivery: ask the circuit, wait for the sink's rate, open the attempt, send, write
 * the outcome. The ledger decides what is true; a job that calls this twice does no harm.
 */
import { randomUUID } from 'node:crypto'
import type { Gate } from '../digest/gate.ts'
import { settleMembers } from '../digest/sealed-message.ts'
import {
  beginAttempt,
  settleAttempt,
  type Outcome,
  type SettlingBatch,
} from '../ledger/attempts.ts'
import type { Book } from '../ledger/book.ts'
import type { Suppression } from '../ledger/records.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import type { Delivery, Sink } from '../sinks/sink.ts'
import { attemptSend, tellReplicas, type Begun } from './attempt.ts'
import type { Circuit } from './circuit.ts'
import type { DeliveryOptions } from './delivery-of.ts'
import { keptBack } from './kept-back.ts'
import type { Diverter } from './relief/diverter.ts'
import type { Wake } from './relief/wake.ts'
import type { SendPace } from './send-pace.ts'

/** `halves`: the sealed halves of a refused batch, to be queued. */
export type DeliverOutcome =
  | { next: 'done'; halves: string[] }
  | { next: 'later'; atMs: number; isCircuitOpen: boolean }

export interface Work {
  book: Book
  sink: Sink
  ref: string
  /** Aborts when the process stops or the job is no longer this worker's. */
  signal: AbortSignal
  /** Whether the job is still this worker's; asked right before the send. */
  isStillMine: () => Promise<boolean>
}

export interface DelivererOptions extends DeliveryOptions {
  /** Judges what goes singly right before it goes; undefined: nothing is kept back. */
  gate?: Gate | undefined
  onSuppressed?: ((sink: string, severity: string, reason: Suppression) => void) | undefined
  /** After a sink accepted, before the outcome is written; must not throw. */
  onDelivered?: ((sink: Sink, delivery: Delivery) => Promise<void>) | undefined
  circuit: Circuit
  pace: SendPace
  /** Takes what the retry table gives up to the sink's fallback; undefined: no sink has one. */
  diverter?: Pick<Diverter, 'has' | 'divert' | 'unseal'> | undefined
  /** Brings tries forward once a circuit has closed; undefined: each waits for its time. */
  wake?: Pick<Wake, 'all'> | undefined
  /** Names this process in the story. */
  replica: string
  clock: Clock
  logger: Logger
  metrics: Metrics
}

export interface Deliverer {
  deliverOnce(work: Work): Promise<DeliverOutcome>
}

/** After this the reconciler looks whether the job of a running attempt still exists. */
const attemptLeaseMs = 30_000

const done: DeliverOutcome = { next: 'done', halves: [] }

export function createDeliverer(options: DelivererOptions): Deliverer {
  const { circuit, pace, replica, clock, metrics } = options
  return {
    async deliverOnce(work) {
      const waitMs = await circuit.admit(work.sink.name, work.sink.sendTimeoutMs)
      if (waitMs > 0) return { next: 'later', atMs: clock.now() + waitMs, isCircuitOpen: true }
      await pace.wait(work.sink, work.signal)
      if (work.signal.aborted || !(await work.isStillMine())) {
        await circuit.giveBack(work.sink.name)
        return { next: 'later', atMs: clock.now(), isCircuitOpen: false }
      }
      const kept = await keptBack(options, work)
      if (kept) {
        await circuit.giveBack(work.sink.name)
        return kept
      }
      const token = randomUUID()
      const begun = await beginAttempt(work.book, work.ref, token, attemptLeaseMs)
      if (begun.status !== 'send') {
        await circuit.giveBack(work.sink.name)
        if (begun.status === 'settling') await settleRest(options, work, begun.batch)
        if (begun.status === 'unsealing') await options.diverter?.unseal(work.book, work.ref)
        return done
      }
      const { outcome, taken, isGivenUp } = await attemptSend(options, work, begun)
      const attempt = { ref: work.ref, token, replica }
      const settled = await settleAttempt(work.book, attempt, outcome) // first: until then a crash repeats it
      await tellReplicas(options, work.sink, taken)
      if (settled.status !== 'settled') return done
      if (isGivenUp) {
        await options.diverter?.divert(work.book, work.ref)
        return done
      }
      if (settled.batch) await settleRest(options, work, settled.batch)
      countSettled({ metrics, clock }, work.sink.name, begun, outcome)
      return nextOf(outcome, settled.halves, clock)
    },
  }
}

function nextOf(outcome: Outcome, halves: string[] | undefined, clock: Clock): DeliverOutcome {
  const { atMs = clock.now() } = outcome
  if (outcome.outcome === 'retry') return { next: 'later', atMs, isCircuitOpen: false }
  return { next: 'done', halves: halves ?? [] }
}

function settleRest(
  { book: bookOf }: DelivererOptions,
  { book, ref }: Work,
  batch: SettlingBatch,
): Promise<void> {
  return settleMembers(book, ref, batch, bookOf)
}

function countSettled(
  { metrics, clock }: Pick<DelivererOptions, 'metrics' | 'clock'>,
  sink: string,
  { members, total }: Begun,
  { outcome }: Outcome,
): void {
  if (outcome === 'retry') return
  metrics.deliveriesTotal.inc({ sink, outcome })
  if (outcome === 'split') return
  metrics.itemsSettledTotal.inc({ sink, outcome }, total)
  if (outcome === 'dead') return
  for (const { severity, payload } of members) {
    const waitedMs = clock.now() - (payload?.fetchedAtMs ?? clock.now())
    metrics.eventFetchToDeliverySeconds.observe({ sink, severity }, Math.max(0, waitedMs) / 1000)
  }
}
