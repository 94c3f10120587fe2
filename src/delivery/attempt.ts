/** One try at sending: what the sink says becomes an outcome for the ledger and a word for the circuit. */
import type { BegunAttempt, Outcome } from '../ledger/attempts.ts'
import { signalWithin } from '../runtime/clock.ts'
import { messageOf } from '../runtime/errors.ts'
import { isAnswerLost, SinkError, type Receipt, type Sink } from '../sinks/sink.ts'
import type { DelivererOptions, Work } from './deliverer.ts'
import { deliveryOf } from './delivery-of.ts'
import { effectOn, judge } from './retry-policy.ts'

export type Begun = Extract<BegunAttempt, { status: 'send' }>

export async function attemptSend(
  options: DelivererOptions,
  work: Work,
  begun: Begun,
): Promise<Outcome> {
  const { metrics } = options
  const { sink, signal } = work
  const delivery = deliveryOf(work, begun)
  if (typeof delivery === 'string') return { outcome: 'dead', reason: delivery }
  if (begun.mayBeRepeat) metrics.deliveryRepeatRiskTotal.inc({ sink: sink.name })
  let receipt: Receipt
  try {
    receipt = await sink.send(delivery, { signal: signalWithin(sink.sendTimeoutMs, signal) })
  } catch (error) {
    return failed(options, work, begun, asSinkError(error))
  }
  metrics.deliveryAttemptsTotal.inc({ sink: sink.name, outcome: 'delivered' })
  await report(options, sink)
  return { outcome: 'delivered', answer: receipt.answer }
}

async function failed(
  options: DelivererOptions,
  { sink, ref }: Work,
  begun: Begun,
  error: SinkError,
): Promise<Outcome> {
  const { clock, logger, metrics } = options
  const { reason, retryAfterMs } = error
  metrics.deliveryAttemptsTotal.inc({ sink: sink.name, outcome: reason })
  logger.warn({ sink: sink.name, ref, attempt: begun.attempt, err: error }, 'delivery failed')
  await report(options, sink, error)
  const verdict = judge({
    reason,
    tries: begun.tries,
    ageMs: clock.now() - begun.createdAtMs,
    retryAfterMs,
    members: begun.members.length,
    random: Math.random(),
  })
  const told = { reason, answer: error.message, answerLost: isAnswerLost(reason) }
  if (verdict.act !== 'retry') return { outcome: verdict.act, ...told }
  const atMs = Math.floor(clock.now() + verdict.afterMs)
  return { outcome: 'retry', atMs, counts: verdict.counts, ...told }
}

/** Tells all replicas how it went; where that fails, the outcome stands all the same. */
async function report(
  { circuit, pace, logger }: DelivererOptions,
  sink: Sink,
  error?: SinkError,
): Promise<void> {
  try {
    if (error?.reason === 'rate_limited') await pace.pause(sink, error.retryAfterMs)
    const change = await circuit.report(sink.name, error ? effectOn(error.reason) : 'ok')
    if (change === 'opened') logger.warn({ sink: sink.name }, 'circuit opened: sends to it wait')
    if (change === 'closed') logger.info({ sink: sink.name }, 'circuit closed: sends go on')
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
