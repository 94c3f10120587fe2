import { randomUUID } from 'node:crypto'
import { buildSink } from '../app/build-sinks.ts'
import type { Config } from '../config/config.ts'
import { sampleEvents } from '../messages/samples.ts'
import { signalWithin, systemClock } from '../runtime/clock.ts'
import { SinkError, type Delivery, type Destination, type Sink } from '../sinks/sink.ts'
import { findNamed } from './command-error.ts'
import { loadConfigFile } from './config-file.ts'
import { print, quiet, type CommonOptions, type Context } from './context.ts'
import { adviceFor } from './sink-advice.ts'
import { harmless } from './words.ts'

interface TestResult {
  destination: string
  ok: boolean
  answer?: string
  reason?: string
  problem?: string
  advice?: string
}

/** Sends one message marked TEST to each destination; needs no Redis. */
export async function testSink(
  context: Context,
  name: string,
  options: CommonOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const sinkConfig = findNamed(config.sinks, name, 'sink')
  const sink = await buildSink(sinkConfig, { logger: quiet, clock: systemClock })
  try {
    const results: TestResult[] = []
    for (const destination of sink.destinations) {
      results.push(await tryOne(sink, testDelivery(config, destination), context.stop))
    }
    print(context, options, {
      json: { sink: name, type: sink.type, results },
      lines: () => results.flatMap((result) => resultLines(context, name, result)),
    })
    if (results.some(({ ok }) => !ok)) context.exitCode = 1
  } finally {
    await sink.close()
  }
}

function testDelivery({ accounts, feeds }: Config, destination: Destination): Delivery {
  const nowMs = systemClock.now()
  const [sample] = sampleEvents(nowMs)
  if (sample === undefined) throw new Error('there is no sample event to send')
  const id = randomUUID().replaceAll('-', '')
  const member = {
    id: `e${id}`,
    account: accounts[0]?.name ?? 'test',
    feed: feeds[0]?.name ?? 'test',
    labels: {},
    routes: ['sinks-test'],
    ...sample,
    fetchedAtMs: nowMs,
  }
  return { id, destination, members: [member], attempt: 1, mayBeRepeat: false, isTest: true }
}

async function tryOne(sink: Sink, delivery: Delivery, stop: AbortSignal): Promise<TestResult> {
  const destination = delivery.destination.label
  try {
    const signal = signalWithin(sink.sendTimeoutMs, stop)
    const { answer } = await sink.send(delivery, { signal })
    return { destination, ok: true, answer }
  } catch (error) {
    if (!(error instanceof SinkError)) throw error
    const { reason, message } = error
    return { destination, ok: false, reason, problem: message, advice: adviceFor(reason) }
  }
}

function resultLines({ terminal }: Context, sink: string, result: TestResult): string[] {
  const name = result.destination === sink ? sink : `${sink}, ${result.destination}`
  if (result.ok) {
    const answer = harmless(result.answer ?? '')
    return [`${terminal.paint('green', 'accepted')} ${name}: the other side said: ${answer}`]
  }
  const problem = harmless(result.problem ?? '')
  return [
    `${terminal.paint('red', 'failed')} ${name}: ${problem} (${result.reason})`,
    `  ${result.advice}`,
  ]
}
