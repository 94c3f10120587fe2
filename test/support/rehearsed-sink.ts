/** A sink that does what a test says and remembers what it was given. */
import { SinkError, type Delivery, type Sink, type SinkReason } from '../../src/sinks/sink.ts'

export interface RehearsedSink extends Sink {
  readonly received: Delivery[]
  /** The next sends, in order: accepted, refused for a reason, or whatever a function does. */
  next(...answers: ('ok' | SinkReason | (() => Promise<void>))[]): void
}

/** Accepts everything unless told otherwise; its one destination has its name. */
export function aRehearsedSink(name: string, given: Partial<Sink> = {}): RehearsedSink {
  const received: Delivery[] = []
  const script: ('ok' | SinkReason | (() => Promise<void>))[] = []
  return {
    name,
    type: 'webhook',
    audience: (given.type ?? 'webhook') === 'webhook' ? 'machines' : 'people',
    destinations: [{ id: name, label: name }],
    concurrency: 1,
    sendTimeoutMs: 15_000,
    received,
    next: (...answers) => void script.push(...answers),
    async send(delivery) {
      received.push(delivery)
      const answer = script.shift() ?? 'ok'
      if (typeof answer === 'function') await answer()
      else if (answer !== 'ok') throw new SinkError(answer, `rehearsed: ${answer}`)
      return { answer: 'taken' }
    },
    reach: () => Promise.resolve({ answer: 'reached' }),
    close: () => Promise.resolve(),
    ...given,
  }
}
