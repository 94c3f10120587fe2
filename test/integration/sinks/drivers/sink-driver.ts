/** The contract of the drivers by which `conformance.test.ts` runs each type of sinks, and what those over HTTP share. */
import type { SinkParts } from '../../../../src/sinks/config.ts'
import type { Sink, SinkReason } from '../../../../src/sinks/sink.ts'
import type { MessageTemplates } from '../../../../src/sinks/templates/template-config.ts'
import type { HttpServer, ReceivedRequest, ScriptedAnswer } from '../../../support/http-server.ts'

/** A type of sinks. `Answer`: how its receiver is told what to answer. */
export interface SinkDriver<Answer = unknown> {
  /** Starts a real receiver, and a sink that sends to it. */
  start(environment: SinkEnvironment): Promise<Receiver<Answer>>
  /** What the receiver may answer, and the word for it. */
  answers: readonly AnswerRow<Answer>[]
}

export interface SinkEnvironment extends SinkParts {
  /** Of a sink for people. */
  templates?: MessageTemplates | undefined
}

export interface AnswerRow<Answer> {
  title: string
  answer: Answer
  reason: SinkReason
  /** What the receiver asked for; left out: the error carries none. */
  retryAfterMs?: number
}

/** It does what a test says. A fresh one accepts. */
export interface Receiver<Answer> {
  readonly sink: Sink
  /** Every secret in the sink's configuration, each a string that could not stand anywhere by chance. */
  readonly secrets: readonly string[]
  accept(): Promise<void>
  answer(answer: Answer): void
  /** Takes a message whole and cuts the connection instead of answering. */
  answerLost(): void
  /** Takes a message whole and never answers. */
  hang(): void
  /** Nobody listens on the port any more; `accept` listens again. */
  refuse(): Promise<void>
  /** Every message taken whole, answered or not, oldest first. */
  received(): readonly Received[]
  /** Connections that the receiver holds open. */
  openConnections(): number
  /** Fails where one of `hostileTexts` is more than inert text in this sink's dialect. */
  expectInert(message: Received): void
  stop(): Promise<void>
}

/** A message as it arrived at the receiver. */
export interface Received {
  /** What a receiver tells repeats by: `webhook-id`, `Message-ID`, the id in the text. */
  id: string
  /** The message as a receiver stores it, raw: the body, the whole mail. */
  text: string
  /** What its encoding holds; left out: the text itself. */
  decoded?: string
  /** Whether the message itself says that it may be a repeat. */
  saysRepeat: boolean
  /** Whether the message itself says that it is a test. */
  saysTest: boolean
}

interface OverHttp extends Pick<Receiver<ScriptedAnswer>, 'sink' | 'secrets' | 'expectInert'> {
  /** Lets the server accept. */
  accept: () => void
  receivedOf: (request: ReceivedRequest) => Received
}

export function httpReceiver(
  server: HttpServer,
  { accept, receivedOf, ...ofType }: OverHttp,
): Receiver<ScriptedAnswer> {
  return {
    ...ofType,
    async accept() {
      accept()
      await server.listen()
    },
    answer: (answer) => server.script(answer),
    answerLost: () => server.script('cut'),
    hang: () => server.script('hang'),
    refuse: () => server.refuse(),
    received: () => server.requests.map(receivedOf),
    openConnections: () => server.openConnections(),
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

export function answered<Answer>(
  title: string,
  answer: Answer,
  reason: SinkReason,
  retryAfterMs?: number,
): AnswerRow<Answer> {
  return { title, answer, reason, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}
