/** One try at sending: what the sink says becomes an outcome for the ledger. */
import type { BegunAttempt, Outcome } from '../ledger/attempts.ts'
import { signalWithin } from '../runtime/clock.ts'
import { messageOf } from '../runtime/errors.ts'
import { isAnswerLost, SinkError, type Receipt, type Sink } from '../sinks/sink.ts'
import type { DelivererOptions, Work } from './deliverer.ts'
import { deliveryOf } from './delivery-of.ts'
import { effectOn, judge } from './retry-policy.ts'

export type Begun = Extract<BegunAttempt, { status: 'send' }>

export interface Attempted {
  outcome: Outcome
  /** How the sink took it; undefined where nothing could be sent. */
  taken: 'ok' | SinkError | undefined
  /** The sink will never take it, and it goes to its fallback: until then it is due again. */
  isGivenUp?: boolean
}

export async function attemptSend(
  options: DelivererOptions,
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
  options: DelivererOptions,
  work: Work,
  begun: Begun,
  { error, hasFallback }: { error: SinkError; hasFallback: boolean },
): Pick<Attempted, 'outcome' | 'isGivenUp'> {
  const outcome = outcomeOf(options, begun, error)
  const isGivenUp = outcome.outcome === 'dead' && hasFallback
  options.metrics.deliveryAttemptsTotal.inc({ sink: work.sink.name, outcome: error.reason })
  sayFailed(options, work, begun, { outcome, error, isGivenUp })
  if (!isGivenUp) return { outcome }
  const dueAgain = { ...outcome, outcome: 'retry' as const, atMs: options.clock.now() }
  return { outcome: { ...dueAgain, counts: true }, isGivenUp }
}

function outcomeOf({ clock }: DelivererOptions, begun: Begun, error: SinkError): Outcome {
  const { reason, retryAfterMs } = error
  const verdict = judge({
    reason,
    tries: begun.tries,
    ageMs: clock.now() - begun.createdAtMs,
    retryAfterMs,
    members: begun.about === undefined ? begun.members.length : 1, // a summary is never halved
    random: Math.random(),
  })
  const told = { reason, answer: error.message, answerLost: isAnswerLost(reason) }
  if (verdict.act !== 'retry') return { outcome: verdict.act, ...told }
  const atMs = Math.floor(clock.now() + verdict.afterMs)
  return { outcome: 'retry', atMs, counts: verdict.counts, ...told }
}

const consequences = {
  retry: 'delivery failed: it comes again',
  split: 'delivery failed: the batch is halved',
  dead: 'delivery failed for good: a dead letter',
} as const

/** Names the event as `explain` takes it; a batch is named by its events' number. */
function sayFailed(
  { logger }: DelivererOptions,
  { book, sink, ref }: Work,
  { attempt, members, total }: Begun,
  { outcome, error, isGivenUp }: { outcome: Outcome; error: SinkError; isGivenUp: boolean },
): void {
  if (!isFailure(outcome.outcome)) return
  const what = members.length === 1 ? { uid: members[0]?.uid } : { events: total }
  const again = outcome.atMs === undefined ? {} : { againAt: new Date(outcome.atMs).toISOString() }
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

/** Tells all replicas how the sink took it; where that fails, the outcome stands all the same. */
export async function tellReplicas(
  { circuit, pace, wake, logger }: DelivererOptions,
  sink: Sink,
  taken: Attempted['taken'],
): Promise<void> {
  try {
    if (taken === undefined) return await circuit.giveBack(sink.name)
    const error = taken === 'ok' ? undefined : taken
    if (error?.reason === 'rate_limited') await pace.pause(sink, error.retryAfterMs)
    const word = error ? effectOn(error.reason) : 'ok'
    const change = await circuit.report(sink.name, word, error?.message)
    if (change === 'opened') logger.warn({ sink: sink.name }, 'circuit opened: sends to it wait')
    if (change === 'disabled') {
      const said =
        'sink disabled: nothing is sent until its address is another one, or it is resumed'
      logger.error({ sink: sink.name, reason: error?.message }, said)
    }
    if (change === 'closed') {
      logger.info({ sink: sink.name }, 'circuit closed: sends go on')
      await wake?.all(sink.name)
    }
  } catch (cause) {
    logger.warn({ sink: sink.name, err: cause }, 'the circuit does not know how this send went')
  }
}

/** A sink throws nothing else; what it throws all the same may have been sent. */
function asSinkError(error: unknown): SinkError {
  if (error instanceof SinkError) return error
  return new SinkError('connection_lost', `the sink broke off: ${messageOf(error)}`, {
    cause: error,
  })
}
