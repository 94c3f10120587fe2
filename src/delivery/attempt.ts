/** One attempt at sending: what the sink says becomes an outcome for the ledger. */
import type { Book } from '../ledger/book.ts'
import { signalWithin, type Clock } from '../runtime/clock.ts'
import { messageOf } from '../runtime/errors.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { isAnswerLost, SinkError, type Delivery, type Receipt, type Sink } from '../sinks/sink.ts'
import type { Message, Outcome } from './claims.ts'
import type { Circuit } from './circuit.ts'
import { deliveryOf, type DeliveryOptions } from './delivery-of.ts'
import type { Diverter } from './relief/diverter.ts'
import type { Wake } from './relief/wake.ts'
import { effectOn, judge, pauseAfter } from './retry-policy.ts'

export interface AttemptOptions extends DeliveryOptions {
  /** After a sink accepted, before the outcome is written; must not throw. */
  onDelivered?: ((sink: Sink, delivery: Delivery) => Promise<void>) | undefined
  circuit: Circuit
  /** Takes what the retry table gives up to the sink's fallback; undefined: no sink has one. */
  diverter?: Pick<Diverter, 'has' | 'divert' | 'unseal'> | undefined
  /** Brings tries forward once a circuit has closed; undefined: each waits for its time. */
  wake?: Pick<Wake, 'all'> | undefined
  /** Names this process in the histories. */
  replica: string
  clock: Clock
  logger: Logger
  metrics: Metrics
}

interface Work {
  book: Book
  sink: Sink
  /** Aborts when the process stops or the claim is no longer its own. */
  signal: AbortSignal
}

/** What a sink will never take goes to its fallback at once; where that breaks off it is tried after as long. */
const givenUpMs = 10_000

/** A message whose attempt is open. */
export type Begun = Message & { attempt: number }

export interface Attempted {
  outcome: Outcome
  /** How the sink took it; undefined where nothing could be sent. */
  taken: 'ok' | SinkError | undefined
  /** The sink will never take it, and it goes to its fallback. */
  isGivenUp?: boolean
}

export async function attemptSend(
  options: AttemptOptions,
  work: Work,
  begun: Begun,
): Promise<Attempted> {
  const { metrics } = options
  const { sink, signal } = work
  const delivery = await deliveryOf(work, begun, options)
  if (typeof delivery === 'string') {
    return { outcome: { outcome: 'dead', reason: delivery }, taken: undefined }
  }
  if (begun.mayBeRepeat) metrics.deliveryRepeatRiskTotal.inc({ sink: sink.name })
  let receipt: Receipt
  try {
    receipt = await sink.send(delivery, { signal: signalWithin(sink.sendTimeoutMs, signal) })
  } catch (error) {
    const taken = asSinkError(error)
    const hasFallback = !delivery.isTest && options.diverter?.has(sink.name) === true
    return { ...failed(options, work, begun, { error: taken, hasFallback }), taken }
  }
  metrics.deliveryAttemptsTotal.inc({ sink: sink.name, outcome: 'delivered' })
  await options.onDelivered?.(sink, delivery)
  return { outcome: { outcome: 'delivered', answer: receipt.answer }, taken: 'ok' }
}

function failed(
  options: AttemptOptions,
  work: Work,
  begun: Begun,
  { error, hasFallback }: { error: SinkError; hasFallback: boolean },
): Pick<Attempted, 'outcome' | 'isGivenUp'> {
  const outcome = outcomeOf(options, begun, error)
  const isGivenUp = outcome.outcome === 'dead' && hasFallback
  options.metrics.deliveryAttemptsTotal.inc({ sink: work.sink.name, outcome: error.reason })
  sayFailed(options, work, begun, { outcome, error, isGivenUp })
  if (!isGivenUp) return { outcome }
  const dueAgain = { ...outcome, outcome: 'retry' as const, inMs: givenUpMs }
  return { outcome: { ...dueAgain, counts: true }, isGivenUp }
}

function outcomeOf({ clock }: AttemptOptions, begun: Begun, error: SinkError): Outcome {
  const { reason, retryAfterMs } = error
  const verdict = judge({
    reason,
    tries: begun.tries,
    ageMs: clock.now() - begun.createdAtMs,
    retryAfterMs,
    members: begun.kind === 'summary' ? 1 : begun.members.length, // a summary is never halved
    random: Math.random(),
  })
  const told = { reason, answer: error.message, answerLost: isAnswerLost(reason) }
  if (verdict.act !== 'retry') return { outcome: verdict.act, ...told }
  return { outcome: 'retry', inMs: verdict.afterMs, counts: verdict.counts, ...told }
}

const consequences = {
  retry: 'delivery failed: it comes again',
  split: 'delivery failed: the batch is halved',
  dead: 'delivery failed for good: a dead letter',
} as const

/** Names the event as `explain` takes it; a batch is named by its events' number. */
function sayFailed(
  { logger }: AttemptOptions,
  { book, sink }: Work,
  { ref, attempt, members, total }: Begun,
  { outcome, error, isGivenUp }: { outcome: Outcome; error: SinkError; isGivenUp: boolean },
): void {
  if (!isFailure(outcome.outcome)) return
  const what = members.length === 1 ? { uid: members[0]?.uid } : { events: total }
  const again = outcome.inMs === undefined ? {} : { againInSeconds: outcome.inMs / 1000 }
  const where = { sink: sink.name, account: book.account, ...what, ref }
  const consequence = isGivenUp
    ? 'delivery failed for good: to the fallback'
    : consequences[outcome.outcome]
  logger.repeated.warn({ ...where, attempt, ...again, err: error }, consequence, {
    cause: `${sink.name} ${error.reason}`,
    list: 'events',
    name: members.length === 1 ? (members[0]?.uid ?? ref) : ref,
  })
}

function isFailure(word: Outcome['outcome']): word is keyof typeof consequences {
  return Object.hasOwn(consequences, word)
}

/** Tells all replicas how the sink took it, whatever becomes of that; resolves with what the sink is by now. */
export async function tellReplicas(
  { circuit, logger }: AttemptOptions,
  sink: Sink,
  { taken, isProbe }: { taken: Attempted['taken']; isProbe: boolean },
): Promise<'shut' | 'back' | undefined> {
  try {
    if (taken === undefined && isProbe) await circuit.giveBack(sink.name)
    if (taken === undefined) return undefined
    const error = taken === 'ok' ? undefined : taken
    const word = error ? effectOn(error.reason) : 'ok'
    const pauseMs = error && pauseAfter(error, sink.limitPerSecond)
    const change = await circuit.report(sink.name, word, {
      answer: error?.message,
      isProbe,
      pauseMs,
    })
    if (change === 'opened') logger.warn({ sink: sink.name }, 'circuit opened: sends to it wait')
    if (change === 'disabled') {
      const said =
        'sink disabled: nothing is sent until its address is another one, or it is resumed'
      logger.error({ sink: sink.name, reason: error?.message }, said)
    }
    if (change === 'closed') logger.info({ sink: sink.name }, 'circuit closed: sends go on')
    if (pauseMs !== undefined) return 'shut'
    if (change === undefined) return undefined
    return change === 'closed' ? 'back' : 'shut'
  } catch (cause) {
    logger.warn({ sink: sink.name, err: cause }, 'the circuit does not know how this send went')
    return undefined
  }
}

export function countSettled(
  { metrics, clock }: AttemptOptions,
  { name: sink }: Sink,
  { message: { members, total }, outcome: { outcome } }: { message: Message; outcome: Outcome },
): void {
  if (outcome === 'retry' || outcome === 'unsent') return
  metrics.deliveriesTotal.inc({ sink, outcome })
  if (outcome === 'split') return
  metrics.itemsSettledTotal.inc({ sink, outcome }, total)
  if (outcome === 'dead') return
  for (const { severity, payload } of members) {
    const waitedMs = clock.now() - (payload?.fetchedAtMs ?? clock.now())
    const seconds = Math.max(0, waitedMs) / 1000
    metrics.eventFetchToDeliverySeconds.observe({ sink, severity }, seconds)
  }
}

/** A sink throws nothing else; what it throws all the same may have been sent. */
function asSinkError(error: unknown): SinkError {
  if (error instanceof SinkError) return error
  return new SinkError('connection_lost', `the sink broke off: ${messageOf(error)}`, {
    cause: error,
  })
}
