import type { LookupFunction } from 'node:net'
import { onTestFinished } from 'vitest'
import { systemClock, type Clock } from '../../../../src/lib/clock.ts'
import { createLogger } from '../../../../src/lib/logger.ts'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import { SinkError, type Delivery, type Sink } from '../../../../src/sinks/sink.ts'
import type { WebhookConfig } from '../../../../src/sinks/webhook/config.ts'
import { createWebhookSink } from '../../../../src/sinks/webhook/webhook-sink.ts'
import { aDelivery } from '../../../support/deliveries.ts'
import { startHttpServer, type HttpServer } from '../../../support/http-server.ts'
import { startTcpServer, type TcpBehaviour, type TcpServer } from '../../../support/tcp-server.ts'

interface Extras {
  clock?: Clock
  resolve?: LookupFunction
}

/** A sink that may reach loopback, closed with the test; say only what the test is about. */
export function aWebhookSink(
  url: string,
  config: Partial<WebhookConfig> = {},
  { clock = systemClock, resolve }: Extras = {},
): Sink {
  const sink = createWebhookSink(
    {
      name: 'siem',
      type: 'webhook',
      url: secretFromText(url),
      allowPrivate: true,
      batch: undefined,
      limitPerSecond: undefined,
      reveal: false,
      ...config,
    },
    { logger: createLogger({ level: 'silent' }), clock, ...(resolve && { resolve }) },
  )
  onTestFinished(() => sink.close())
  return sink
}

export async function anHttpServer(): Promise<HttpServer> {
  const server = await startHttpServer()
  onTestFinished(() => server.stop())
  return server
}

export async function aTcpServer(behaviour: TcpBehaviour = {}): Promise<TcpServer> {
  const server = await startTcpServer(behaviour)
  onTestFinished(() => server.stop())
  return server
}

export function send(
  sink: Sink,
  delivery: Partial<Delivery> = {},
  signal: AbortSignal = AbortSignal.timeout(45_000),
): Promise<unknown> {
  return sink.send(aDelivery(sink, delivery), { signal })
}

/** The SinkError that a send must end with. */
export async function failureOf(sending: Promise<unknown>): Promise<SinkError> {
  const error: unknown = await sending.then(
    () => new Error('the sink accepted'),
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof SinkError)) throw error
  return error
}
