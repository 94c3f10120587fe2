/** What the conformance suites of sinks over HTTP share: a driver of their server, and rows of answers. */
import type { Sink, SinkReason } from '../../src/sinks/sink.ts'
import type { HttpServer, ReceivedRequest, ScriptedAnswer } from './http-server.ts'
import type { AnswerRow, Received, SinkDriver } from './sink-conformance.ts'

export interface HttpDriver extends SinkDriver {
  answer(answer: ScriptedAnswer): void
}

interface OfType {
  sink: Sink
  secrets: readonly string[]
  /** Lets the server accept. */
  accept: () => void
  receivedOf: (request: ReceivedRequest) => Received
  expectInert: (message: Received) => void
}

export function httpDriver(
  server: HttpServer,
  { sink, secrets, accept, receivedOf, expectInert }: OfType,
): HttpDriver {
  return {
    sink,
    secrets,
    async accept() {
      accept()
      await server.listen()
    },
    answerLost: () => server.script('cut'),
    hang: () => server.script('hang'),
    refuse: () => server.refuse(),
    answer: (answer) => server.script(answer),
    received: () => server.requests.map(receivedOf),
    openConnections: () => server.openConnections(),
    expectInert,
    stop: () => server.stop(),
  }
}

/** A chat has the id of a delivery in its text. */
export function receivedChat({ body }: ReceivedRequest): Received {
  return {
    id: /delivery ([a-z0-9]+)/.exec(body)?.[1] ?? '',
    text: body,
    saysRepeat: body.includes('May be a repeat'),
    saysTest: body.includes('TEST'),
  }
}

export function answered(
  title: string,
  answer: ScriptedAnswer,
  reason: SinkReason,
  retryAfterMs?: number,
): AnswerRow<HttpDriver> {
  return {
    title,
    arrange: (driver) => driver.answer(answer),
    reason,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}
