/**
 * What every sink that posts over HTTP does alike: one request for a message, and its answer as a
 * receipt or an error. What an answer means is its receiver's protocol.
 */
import type { LookupFunction } from 'node:net'
import type { Outbound } from '../lib/config/outbound-config.ts'
import type { Audience, SinkParts } from './config.ts'
import { describeSink, type DescribedSink } from './destinations.ts'
import {
  createHttpTransport,
  type Denial,
  errorFromAnswer,
  findDenial,
  type HttpAnswer,
  type HttpMessage,
  isSuccess,
} from './http.ts'
import type { Receipt, SendOptions, Sink, SinkReason } from './sink.ts'

/** How the receiver of a sink is addressed, and what its answers mean. */
export interface HttpProtocol {
  audience: Audience
  /** What errors call the other side. Default: `the receiver`. */
  receiver?: string
  concurrency: number
  /** Whether a 2xx counts only once its body is read. */
  readsAnswer: boolean
  /** Reads the address at each use, since its file may hold another by now. Throws SinkError. */
  readUrl: () => URL
  /** undefined: the answer is acceptance. Default: any 2xx that names no error. */
  judge?: (answer: HttpAnswer) => Denial | undefined
  describeAcceptance: (answer: HttpAnswer) => string
  /** What the operator can do, by reason. */
  advice: Partial<Record<SinkReason, string>>
}

type HttpSinkConfig = DescribedSink & Outbound & { allowPrivate: boolean }

interface HttpSinkParts extends Pick<SinkParts, 'logger' | 'clock'> {
  /** Finds the addresses of a host. Default: the system's resolver. */
  resolve?: LookupFunction
}

/** A sink but for what its messages look like. */
export interface HttpSink extends Omit<Sink, 'send'> {
  /** Throws SinkError. */
  post: (message: HttpMessage, options: SendOptions) => Promise<Receipt>
}

const sendTimeoutMs = 15_000

export function createHttpSink(
  config: HttpSinkConfig,
  protocol: HttpProtocol,
  { logger, clock, resolve }: HttpSinkParts,
): HttpSink {
  const { audience, receiver, concurrency, readsAnswer, readUrl, advice } = protocol
  const { judge = judgeByStatus, describeAcceptance } = protocol
  const transport = createHttpTransport({
    allowPrivate: config.allowPrivate,
    outbound: config,
    resolve,
    maxConnections: concurrency,
    receiver,
    readsAnswer,
  })
  return {
    ...describeSink(config, audience),
    concurrency,
    sendTimeoutMs,
    async post(message, options) {
      const answer = await transport.post(readUrl(), message, options)
      logger.debug({ sink: config.name, status: answer.status }, `${config.type} answered`)
      const denial = judge(answer)
      if (denial === undefined) return { answer: describeAcceptance(answer) }
      throw errorFromAnswer(answer, { nowMs: clock.now(), ...denial, receiver, advice })
    },
    reach: async (signal) => transport.reach(readUrl(), signal),
    close: () => transport.close(),
  }
}

function judgeByStatus({ status, body }: HttpAnswer): Denial | undefined {
  return isSuccess(status) ? findDenial(body) : {}
}
