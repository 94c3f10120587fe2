/**
 * The sandbox: a pretend service and mock receivers, for rehearsals and tests. It speaks the wire
 * format as described, with any habit or fault on request, and writes nothing to disk.
 */
import type { AddressInfo } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { errorMessage } from '../lib/errors.ts'
import type { Loop } from '../lib/loop.ts'
import { createOwnHostCheck } from '../lib/config/web-address.ts'
import { addService, type PretendService } from './api/service.ts'
import {
  createCredentials,
  type Credentials,
  type SandboxCredential,
} from './credentials/credentials.ts'
import { addLivePage, livePath } from './drawing/live-page.ts'
import { createHistory, type History, type SandboxEvent } from './history/history.ts'
import { createEventSupply, type EventSupply } from './history/supply.ts'
import { createMonitoring, type Monitoring } from './monitoring/monitoring.ts'
import { createRandom, type SandboxOptions, type SandboxSettings, withDefaults } from './options.ts'
import { startMailReceiver } from './receivers/mail-receiver.ts'
import { addPagerDutyReceiver, pagerDutyKey } from './receivers/pagerduty-receiver.ts'
import { createInbox, type Inbox, type Received, type SinkName } from './receivers/received.ts'
import { addSlackReceiver } from './receivers/slack-receiver.ts'
import { addTeamsReceiver } from './receivers/teams-receiver.ts'
import { addWebhookReceiver } from './receivers/webhook-receiver.ts'
import {
  readBytes,
  controlPrefix,
  createFaults,
  createRequestLog,
  createServer,
  type FaultControl,
  type FaultInput,
  type RequestLog,
  type SandboxRequest,
} from './server.ts'

/** What a configuration needs to know of a sandbox. */
export interface SandboxAddresses {
  /** Base URL of the pretend service; no trailing slash. */
  url: string
  /**
   * One Slack URL; every other path below `/slack/` works as well. So does every path below
   * `/hooks/` for the webhook.
   */
  slackUrl: string
  webhookUrl: string
  webhookSecret: string
  /** One workflow's URL; every other path below `/teams/` with a signature (`sig`) works as well. */
  teamsUrl: string
  /** Origin of the Events API. */
  pagerDutyUrl: string
  pagerDutyKey: string
  smtpUrl: string
  apiKeys: string[]
}

export interface Sandbox extends SandboxAddresses, FixtureControl, PretendService {
  /** A page that shows what the receivers got, live. */
  receivedUrl: string
  faults: FaultControl
  /** The assets and matching policies of the pretend service. */
  monitoring: Monitoring
  received: Readonly<Record<SinkName, readonly Received[]>>
  /** Returns a function that removes the listener. */
  onReceived(listener: (message: Received) => void): () => void
  /** HTTP requests to the pretend service and the receivers, in order of arrival. */
  requests: readonly SandboxRequest[]
  close(): Promise<void>
}

/** Those that speak HTTP. */
const receivers = [
  addSlackReceiver,
  addTeamsReceiver,
  addPagerDutyReceiver,
  addWebhookReceiver,
  (app: FastifyInstance, { inbox }: { inbox: Inbox }) => addLivePage(app, inbox),
] as const

export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const settings = withDefaults(options)
  const monitoring = createMonitoring(settings)
  const fixtures = createFixtures(settings, monitoring)
  const log = createRequestLog(settings.keep)
  const faults = createFaults(createRandom(settings.seed + 1))
  const inbox = createInbox({ maxMessages: settings.keep, isUid: fixtures.hasUid })
  const closing = new AbortController()
  const app = createServer({ faults, log, closing: closing.signal })
  const service = addService(app, { ...fixtures, settings, log, monitoring })
  for (const add of receivers) add(app, { settings, log, inbox })
  addControl(app, { ...fixtures, settings, log, inbox, service, faults })
  const smtp = await startMailReceiver({
    host: settings.host,
    port: settings.smtpPort,
    faults,
    inbox,
    closing: closing.signal,
  })
  await app.listen({ host: settings.host, port: settings.port }).catch(async (error: unknown) => {
    await smtp.close()
    throw error
  })
  fixtures.arrivals?.start()

  const host = settings.host.includes(':') ? `[${settings.host}]` : settings.host
  const url = `http://${host}:${(app.server.address() as AddressInfo).port}`
  return {
    ...fixtures.supply,
    ...service,
    monitoring,
    url,
    slackUrl: `${url}/slack/T0SANDBOX/B0SANDBOX/slack-hush-hush`,
    webhookUrl: `${url}/hooks/siem`,
    webhookSecret: settings.webhookSecret,
    teamsUrl: `${url}/teams/workflows/sandbox/triggers/manual/paths/invoke?api-version=1&sig=teams-hush-hush`,
    pagerDutyUrl: url,
    pagerDutyKey,
    smtpUrl: `smtp://${host}:${smtp.port}`,
    apiKeys: settings.organizations.flatMap(({ keys }) => keys.map(({ key }) => key)),
    receivedUrl: `${url}${livePath}`,
    faults,
    received: inbox.received,
    onReceived: inbox.onReceived,
    requests: log.entries,
    async close() {
      closing.abort()
      await fixtures.arrivals?.stop()
      await Promise.all([app.close(), smtp.close()])
    },
  }
}

/** The events and credentials of the pretend service, and how they arrive and change. */
interface Fixtures {
  history: History
  credentials: Credentials
  supply: FixtureControl
  hasUid: (uid: string) => boolean
  /** Lets events arrive by themselves, if the settings ask for it. */
  arrivals: Loop | undefined
}

/** What the owner of the sandbox can do with its fixtures. */
interface FixtureControl extends EventSupply, Pick<Credentials, 'addCredentials'> {
  /** All events, in order of arrival; `credentials` likewise. */
  events(): readonly SandboxEvent[]
  credentials(): readonly SandboxCredential[]
}

function createFixtures(settings: SandboxSettings, { assets }: Monitoring): Fixtures {
  const history = createHistory()
  const events = createEventSupply(settings, history, assets.subjects)
  const credentials = createCredentials(settings)

  return {
    history,
    credentials,
    hasUid: (uid) => (history.get(uid) ?? credentials.get(uid)) !== undefined,
    supply: {
      ...events.supply,
      addCredentials: credentials.addCredentials,
      events: history.all,
      credentials: credentials.all,
    },
    arrivals: events.arrivals,
  }
}

interface ControlParts extends Fixtures {
  settings: SandboxSettings
  log: RequestLog
  inbox: Inbox
  service: PretendService
  faults: FaultControl
}

function readState({ history, credentials, log, inbox, service, faults }: ControlParts): object {
  return {
    events: history.all().length,
    credentials: credentials.all().length,
    received: Object.fromEntries(
      Object.entries(inbox.received).map(([sink, messages]) => [sink, messages.length]),
    ),
    requests: log.entries.length,
    tokensIssued: service.tokens.issued(),
    violations: service.violations(),
    searchesRemaining: service.quota.remaining(),
    faults: faults.list(),
  }
}

/**
 * Adds the control routes. `POST /_sandbox/faults` with one fault or a list adds faults, `DELETE`
 * removes all. `GET /_sandbox/state` reports what the sandbox holds and received.
 */
function addControl(app: FastifyInstance, parts: ControlParts): void {
  const { faults } = parts
  app.addHook('onRequest', async (request, reply) => {
    const isControl = request.routeOptions.url?.startsWith(controlPrefix) === true
    if (!isControl || isLocalRequest(request)) return
    return reply.code(403).send({ message: 'control is not for web pages' })
  })
  app.get(`${controlPrefix}state`, () => readState(parts))
  app.delete(`${controlPrefix}faults`, () => {
    faults.clear()
    return { faults: [] }
  })
  app.post(`${controlPrefix}faults`, (request, reply) => {
    try {
      const given = JSON.parse(readBytes(request).toString('utf8')) as FaultInput | FaultInput[]
      for (const fault of [given].flat()) faults.add(fault)
      return { faults: faults.list() }
    } catch (error) {
      return reply.code(400).send({ message: errorMessage(error) })
    }
  })
}

const isOwnHost = createOwnHostCheck([])

/**
 * A foreign web page may send requests to this machine; its browser states the origin or the
 * foreign host name.
 */
function isLocalRequest({ headers, host, hostname }: FastifyRequest): boolean {
  const isOwnPage = headers.origin === undefined || headers.origin === `http://${host}`
  return isOwnPage && isOwnHost(hostname) && headers['sec-fetch-site'] !== 'cross-site'
}
