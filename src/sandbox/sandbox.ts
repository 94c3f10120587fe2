/**
 * The sandbox: a pretend service and the sinks that catch what is delivered, for rehearsal and tests.
 * It promises the wire as described, with every habit and fault on request; it holds nothing on disk.
 */
import type { AddressInfo } from 'node:net'
import type { Loop } from '../runtime/loop.ts'
import type { TokenControl } from './api/tokens.ts'
import { addService, type PretendService, type Violations } from './api/service.ts'
import { createInbox, type Inbox, type Received, type SinkName } from './catchers/received.ts'
import { addSlackCatcher } from './catchers/slack-catcher.ts'
import { startSmtpCatcher } from './catchers/smtp-catcher.ts'
import { addWebhookCatcher } from './catchers/webhook-catcher.ts'
import { addControl } from './control.ts'
import { createFaults, type FaultControl } from './faults.ts'
import { createArrivals } from './history/arrivals.ts'
import { createGenerator } from './history/generator.ts'
import { createHistory, type History } from './history/history.ts'
import type { EventChange, SandboxEvent } from './history/sandbox-event.ts'
import { withDefaults, type SandboxOptions, type SandboxSettings } from './options.ts'
import { createRandom } from './random.ts'
import { createRequestLog, type RequestLog, type SandboxRequest } from './request-log.ts'
import { createServer } from './server.ts'

export interface Sandbox extends Events {
  /** Base URL of the pretend service; no trailing slash. */
  url: string
  /** A Slack URL of its own; every other path below `/slack/` is one too. So for the webhook below `/hooks/`. */
  slackUrl: string
  webhookUrl: string
  webhookSecret: string
  smtpUrl: string
  apiKeys: string[]
  /** Which events stand, in order of arrival. */
  events(): readonly SandboxEvent[]
  faults: FaultControl
  tokens: TokenControl
  /** Every cursor handed out so far is refused with 400 from now on. */
  expireCursors(): void
  violations(): Violations
  received: Readonly<Record<SinkName, readonly Received[]>>
  /** Returns what ends the listening. */
  onReceived(listener: (message: Received) => void): () => void
  /** HTTP requests to the service and the sinks, in order of arrival. */
  requests: readonly SandboxRequest[]
  close(): Promise<void>
}

/** How events come to be. Without `groupIds` they go to the first group, and are created now. */
interface Events {
  addEvent(given?: Partial<SandboxEvent>): SandboxEvent
  addEvents(count: number, given?: Partial<SandboxEvent>): SandboxEvent[]
  /** Puts any JSON value where an item of a page belongs. */
  addRawItem(groupId: number, item: unknown, given?: { createdAtMs?: number }): void
  changeEvent(uid: string, change: EventChange): void
}

export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const settings = withDefaults(options)
  const history = createHistory()
  const log = createRequestLog(settings.keep)
  const faults = createFaults(createRandom(settings.seed + 1))
  const inbox = createInbox({
    keep: settings.keep,
    isUid: (text) => history.get(text) !== undefined,
  })
  const closing = new AbortController()
  const app = createServer({ faults, log, closing: closing.signal })
  const service = addService(app, { settings, history, log })
  const { events, arrivals } = createEvents(settings, history)
  addSlackCatcher(app, { settings, log, inbox })
  addWebhookCatcher(app, { settings, log, inbox })
  addControl(app, {
    faults,
    addEvents: (count) => void events.addEvents(count),
    state: () => stateOf({ history, log, inbox, service, faults }),
  })
  const smtp = await startSmtpCatcher({
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
  arrivals?.start()

  const host = settings.host.includes(':') ? `[${settings.host}]` : settings.host
  const url = `http://${host}:${(app.server.address() as AddressInfo).port}`
  return {
    ...events,
    url,
    slackUrl: `${url}/slack/T0SANDBOX/B0SANDBOX/slack-hush-hush`,
    webhookUrl: `${url}/hooks/siem`,
    webhookSecret: settings.webhookSecret,
    smtpUrl: `smtp://${host}:${smtp.port}`,
    apiKeys: settings.organizations.flatMap(({ keys }) => keys.map(({ key }) => key)),
    events: history.all,
    faults,
    tokens: service.tokens,
    expireCursors: service.expireCursors,
    violations: service.violations,
    received: inbox.received,
    onReceived: inbox.onReceived,
    requests: log.entries,
    async close() {
      closing.abort()
      await arrivals?.stop()
      await Promise.all([app.close(), smtp.close()])
    },
  }
}

function createEvents(
  settings: SandboxSettings,
  history: History,
): { events: Events; arrivals: Loop | undefined } {
  const { groups, now, backlog, eventsPerSecond, lateShare, logger } = settings
  const generator = createGenerator(settings.seed)
  let rawItems = 0

  function addEvents(count: number, given: Partial<SandboxEvent> = {}): SandboxEvent[] {
    const group = groups.find(({ id }) => id === given.groupIds?.[0]) ?? groups[0]
    if (!group) throw new Error('the sandbox has no identifier group to add an event to')
    const made = Array.from({ length: count }, () => generator.make(group, now(), given))
    history.add(made)
    return made
  }

  function eventOfAge(ageMs: number): SandboxEvent {
    const nowMs = now()
    return generator.make(generator.groupOf(groups), nowMs, { createdAtMs: nowMs - ageMs })
  }

  const standing = Array.from({ length: backlog }, () => generator.ageUpTo(86_400_000))
  history.add(standing.map(eventOfAge))
  const arrive = (ageMs: number): void => history.add([eventOfAge(ageMs)])
  const random = createRandom(settings.seed + 3)
  return {
    arrivals:
      eventsPerSecond > 0
        ? createArrivals({ perSecond: eventsPerSecond, lateShare, random, logger, arrive })
        : undefined,
    events: {
      addEvents,
      addEvent: (given) => addEvents(1, given)[0] as SandboxEvent,
      addRawItem: (groupId, item, given = {}) =>
        void addEvents(1, { ...given, groupIds: [groupId], uid: `raw/${++rawItems}`, raw: item }),
      changeEvent: history.change,
    },
  }
}

function stateOf(parts: {
  history: History
  log: RequestLog
  inbox: Inbox
  service: PretendService
  faults: FaultControl
}): Record<string, unknown> {
  const { history, log, inbox, service, faults } = parts
  const { slack, webhook, email } = inbox.received
  return {
    events: history.all().length,
    received: { slack: slack.length, webhook: webhook.length, email: email.length },
    requests: log.entries.length,
    tokensIssued: service.tokens.issued(),
    violations: service.violations(),
    faults: faults.list(),
  }
}
