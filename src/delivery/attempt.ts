/** One try at sending: what the sink says becomes an outcome for the ledger and a word for the circuit. */
import type { BegunAttempt, Outcome } from '../ledger/attempts.ts'
import { signalWithin } from '../runtime/clock.ts'
import { messageOf } from '../runtime/errors.ts'
import { isAnswerLost, SinkError, type Sink } from '../sinks/sink.ts'
import type { Circuit } from './circuit.ts'
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
  try {
    const receipt = await sink.send(delivery, { signal: signalWithin(sink.sendTimeoutMs, signal) })
    metrics.deliveryAttemptsTotal.inc({ sink: sink.name, outcome: 'delivered' })
    await report(options, sink, 'ok')
    return { outcome: 'delivered', answer: receipt.answer }
  } catch (error) {
    return failed(options, work, begun, asSinkError(error))
  }
}

async function failed(
  options: DelivererOptions,
  { sink, ref }: Work,
  begun: Begun,
  error: SinkError,
): Promise<Outcome> {
  const { clock, logger, metrics, pace } = options
  const { reason, retryAfterMs } = error
  metrics.deliveryAttemptsTotal.inc({ sink: sink.name, outcome: reason })
  logger.warn({ sink: sink.name, ref, attempt: begun.attempt, err: error }, 'delivery failed')
  if (reason === 'rate_limited') await pace.pause(sink, retryAfterMs)
  await report(options, sink, effectOn(reason))
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

async function report(
  { circuit, logger }: DelivererOptions,
  sink: Sink,
  word: Parameters<Circuit['report']>[1],
): Promise<void> {
  const change = await circuit.report(sink.name, word)
  if (change === 'opened') logger.warn({ sink: sink.name }, 'circuit opened: sends to it wait')
  if (change === 'closed') logger.info({ sink: sink.name }, 'circuit closed: sends go on')
}

/** A sink throws nothing else; what it throws all the same may have been sent. */
function asSinkError(error: unknown): SinkError {
  if (error instanceof SinkError) return error
  return new SinkError('connection_lost', `the sink broke off: ${messageOf(error)}`, {
    cause: error,
  })
}
