/** Probes of a sink: whether it is reached, and whether it takes a message marked TEST. */
import { randomUUID } from 'node:crypto'
import type { Config, Environment } from '../../config/config.ts'
import type { ThreatEvent } from '../../event.ts'
import { systemClock, withTimeout } from '../../lib/clock.ts'
import { withoutExcerpts } from '../../masking/excerpts.ts'
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
import { createSink } from '../../sinks/create-sink.ts'
import type { SinkConfig } from '../../sinks/sink-types.ts'
import { formatTemplateFailure } from '../../sinks/templates/templates.ts'
import { createLogger } from '../../lib/logger.ts'
import type { Outbound } from '../../lib/config/outbound-config.ts'
import { type Finding, type Probe, splitRemedy, type Subject, toClause } from './probe.ts'

export interface SinkNeeds {
  sink: SinkConfig
  config: Pick<Config, 'accounts' | 'feeds' | 'route' | 'messages'>
  env: Environment
}

const subjectOf = ({ sink: { name, type } }: SinkNeeds): string => `${name} (${type})`

/** `failures`: of templates, while it is used: the message has the built-in look then. */
export async function useSink<Result>(
  config: SinkConfig,
  use: (sink: Sink, failures: string[]) => Promise<Result>,
): Promise<Result> {
  const failures: string[] = []
  const sink = await createSink(config, {
    logger: createLogger({ level: 'silent' }), // what it would log is reported
    clock: systemClock,
    onTemplateFailure: (failure) => failures.push(formatTemplateFailure(failure)),
  })
  try {
    return await use(sink, failures)
  } finally {
    await sink.close()
  }
}

export const sinkReachProbe: Probe<SinkNeeds> = {
  name: 'sink',
  timeoutMs: 15_000,
  isBasis: true,
  subject: subjectOf,
  find: (needs, subject, signal) =>
    useSink(needs.sink, async (sink) => {
      try {
        const { answer } = await sink.reach(signal)
        return [subject.good(answer)]
      } catch (error) {
        if (!(error instanceof SinkError)) throw error
        const { reason, message } = error
        const unmet = reason === 'unavailable' ? proxyRemedy(needs.sink, needs.env) : undefined
        const [problem, remedy] = splitRemedy(message, unmet ?? toClause(adviceFor(reason)))
        return [subject.bad('problem', `${problem} (${reason})`, remedy)]
      }
    }),
}

/** Sends to each destination, so it is asked only if somebody wants that. */
export const sinkSendProbe: Probe<SinkNeeds> = {
  name: 'sink',
  timeoutMs: 15 * 60_000, // each send has a limit of its own; a mail server may take minutes
  subject: subjectOf,
  find: (needs, subject, signal) =>
    useSink(needs.sink, async (sink, failures) => {
      const found: Finding[] = []
      for (const destination of sink.destinations) {
        const delivery = testDelivery(needs.config, sink, destination)
        found.push(await sendTest(sink, delivery, { subject, signal }))
      }
      const remedy = `mend the template; tocsin render <uid or file> --sink ${sink.name} shows it`
      const failed = [...new Set(failures)]
      return [...found, ...failed.map((said) => subject.bad('problem', said, remedy))]
    }),
}

async function sendTest(
  sink: Sink,
  delivery: Delivery,
  { subject, signal }: { subject: Subject; signal: AbortSignal },
): Promise<Finding> {
  const { label } = delivery.destination
  try {
    const { answer } = await withTimeout(sink.sendTimeoutMs, [signal], (ending) =>
      sink.send(delivery, { signal: ending }),
    )
    return subject.good(`took a TEST message for ${label}: ${answer}`)
  } catch (error) {
    if (!(error instanceof SinkError)) throw error
    const problem = `no TEST message for ${label}: ${error.message}`
    return subject.bad('problem', problem, toClause(adviceFor(error.reason)))
  }
}

function testDelivery(config: SinkNeeds['config'], sink: Sink, destination: Destination): Delivery {
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
    members: [sink.hidesExcerpts === true ? withoutExcerpts(member) : member],
    attempt: 1,
    mayBeRepeat: false,
    timeZone,
    isTest: true,
  }
}

/** What the routes to this sink say, so that a mention is tried before it matters. */
function findTestGuidance(
  { route, messages }: SinkNeeds['config'],
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

/** The line to write where the environment names a proxy that what is not reached does not use. */
export function proxyRemedy({ proxy }: Outbound, env: Environment): string | undefined {
  const names = ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy']
  const name = names.find((one) => (env[one] ?? '') !== '')
  if (proxy !== undefined || name === undefined) return undefined
  return `this network has a proxy: write proxy: \${${name}}, unless it is reached without`
}
