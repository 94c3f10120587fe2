/** Messages marked TEST, and what to do where one is refused. */
import { randomUUID } from 'node:crypto'
import type { Config } from '../../config/config.ts'
import type { ThreatEvent } from '../../event.ts'
import { systemClock, withTimeout } from '../../lib/clock.ts'
import { createGuidanceFinder, type Guidance } from '../../messages/guidance.ts'
import { sampleEvent } from '../../messages/sample.ts'
import { createRouter, listNodes } from '../../routing/router.ts'
import {
  type Delivery,
  type Destination,
  type Sink,
  SinkError,
  type SinkReason,
} from '../../sinks/sink.ts'
import { type SinkConfig, sinkTypeOf } from '../../sinks/sink-types.ts'
import { formatTemplateFailure } from '../../sinks/templates.ts'
import { silentLogger } from '../context.ts'

export interface TestResult {
  destination: string
  ok: boolean
  answer?: string
  reason?: string
  problem?: string
  advice?: string
  /** Templates that failed for the sample event: the message had the built-in look. */
  failedTemplates?: string[]
}

export interface TestedSink {
  sink: Sink
  /** What templates failed since it was asked last, and why. */
  takeFailedTemplates: () => string[]
}

export async function openTestedSink(sinkConfig: SinkConfig): Promise<TestedSink> {
  const failed: string[] = []
  const sink = await sinkTypeOf(sinkConfig).create(sinkConfig, {
    logger: silentLogger,
    clock: systemClock,
    onTemplateFailure: (failure) => failed.push(formatTemplateFailure(failure)),
  })
  return { sink, takeFailedTemplates: () => failed.splice(0) }
}

/** Sends one message marked TEST to each destination of a sink. */
export async function sendTests(
  { sink, takeFailedTemplates }: TestedSink,
  config: TestedConfig,
  stop: AbortSignal,
): Promise<TestResult[]> {
  const results: TestResult[] = []
  for (const destination of sink.destinations) {
    const result = await sendTest(sink, testDelivery(config, sink, destination), stop)
    const failedTemplates = takeFailedTemplates()
    results.push({ ...result, ...(failedTemplates.length > 0 && { failedTemplates }) })
  }
  return results
}

export type TestedConfig = Pick<Config, 'accounts' | 'feeds' | 'route' | 'messages'>

function testDelivery(config: TestedConfig, sink: Sink, destination: Destination): Delivery {
  const { accounts, feeds } = config
  const nowMs = systemClock.now()
  const sample = sampleEvent(nowMs)
  const id = randomUUID().replaceAll('-', '')
  const member = {
    id: `e${id}`,
    account: accounts[0]?.name ?? 'test',
    feed: feeds[0]?.name ?? 'test',
    labels: {},
    routes: ['sinks-test'],
    ...sample,
    fetchedAtMs: nowMs,
    guidance: findTestGuidance(config, sink.name, sample.event),
  }
  const { timeZone } = sink
  return {
    id,
    destination,
    members: [member],
    attempt: 1,
    mayBeRepeat: false,
    timeZone,
    isTest: true,
  }
}

/** What the routes to this sink say, so that a mention is tried before it matters. */
function findTestGuidance(
  { route, messages }: TestedConfig,
  sink: string,
  event: ThreatEvent,
): Guidance | undefined {
  const router = createRouter(route)
  const routes = listNodes(router.root)
    .filter(({ sinks }) => sinks.includes(sink))
    .map(({ name }) => name)
  const find = createGuidanceFinder(messages, (name) => router.node(name))
  return find({ feed: 'sinks-test', routes, event })
}

async function sendTest(sink: Sink, delivery: Delivery, stop: AbortSignal): Promise<TestResult> {
  const destination = delivery.destination.label
  try {
    const { answer } = await withTimeout(sink.sendTimeoutMs, [stop], (signal) =>
      sink.send(delivery, { signal }),
    )
    return { destination, ok: true, answer }
  } catch (error) {
    if (!(error instanceof SinkError)) throw error
    const { reason, message } = error
    return { destination, ok: false, reason, problem: message, advice: adviceFor(reason) }
  }
}

export function templateAdvice(sink: string): string {
  return `Mend the template; tocsin render <uid or file> --sink ${sink} shows a message with it.`
}

/** Advice for each reason for which a send fails. */
const adviceByReason: Record<SinkReason, string> = {
  rate_limited: 'The other side asks for fewer messages: lower the limit of this sink, or wait.',
  unavailable:
    'Check the host, the port and the network; the other side may also be down just now.',
  timeout: 'No answer came in time: look whether the message arrived, then check the other side.',
  connection_lost: 'The connection broke: look whether the message arrived, then try again.',
  rejected:
    'The other side refuses the request as it is: check the path of the address, or the sender.',
  invalid: 'The other side takes no such message: check that the address is meant for this sink.',
  unauthorized: 'Check the user, the password or the secret of this sink.',
  gone: 'The address is no more: make a new one on the other side and put it into the configuration.',
  recipient_refused: 'The mail server takes nothing for this recipient: correct the address in to.',
  recipient_deferred:
    'The mailbox of this recipient is full or the server defers it: it is tried again, alone.',
  redirected: 'The address has moved: put the final one into the configuration.',
  forbidden_address:
    'The address is private or loopback: if it is meant, set allow_private: true on this sink.',
  misconfigured:
    'Check what the answer names, the address, TLS, the certificate and the secret files of this sink.',
}

export function adviceFor(reason: SinkReason): string {
  return adviceByReason[reason]
}
