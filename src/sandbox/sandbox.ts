/**
 * The sandbox: a pretend service and the sinks that catch what is delivered, for rehearsal and tests.
 * It promises the wire as described, with every habit and fault on request; without a data folder it
 * holds nothing on disk.
 */
import type { AddressInfo } from 'node:net'
import { addService, type PretendService } from './api/service.ts'
import { createInbox, type Inbox, type Received, type SinkName } from './catchers/received.ts'
import { addSlackCatcher } from './catchers/slack-catcher.ts'
import { startSmtpCatcher } from './catchers/smtp-catcher.ts'
import { addWebhookCatcher } from './catchers/webhook-catcher.ts'
import { addControl } from './control.ts'
import { createFaults, type FaultControl } from './faults.ts'
import { createMonitoring, type Monitoring } from './monitoring/monitoring.ts'
import { withDefaults, type SandboxOptions, type SandboxSettings } from './options.ts'
import { createRandom } from './random.ts'
import { createRequestLog, type RequestLog, type SandboxRequest } from './request-log.ts'
import { createServer } from './server.ts'
import { openDataFolder, type DataFolder } from './state/data-folder.ts'
import { createStock, type Stock, type StockSupply } from './stock.ts'

export interface Sandbox extends StockSupply, OfferedService {
  /** Base URL of the pretend service; no trailing slash. */
  url: string
  /** A Slack URL of its own; every other path below `/slack/` is one too. So for the webhook below `/hooks/`. */
  slackUrl: string
  webhookUrl: string
  webhookSecret: string
  smtpUrl: string
  apiKeys: string[]
  faults: FaultControl
  /** Its assets and matching policies. */
  monitoring: Monitoring
  received: Readonly<Record<SinkName, readonly Received[]>>
  /** Returns what ends the listening. */
  onReceived(listener: (message: Received) => void): () => void
  /** HTTP requests to the service and the sinks, in order of arrival. */
  requests: readonly SandboxRequest[]
  close(): Promise<void>
}

type OfferedService = Omit<PretendService, 'kept'>

export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const settings = withDefaults(options)
  const folder = settings.dataFolder === null ? null : await openDataFolder(settings.dataFolder)
  try {
    return await startParts(settings, folder)
  } catch (error) {
    await folder?.close()
    throw error
  }
}

async function startParts(settings: SandboxSettings, folder: DataFolder | null): Promise<Sandbox> {
  const monitoring = createMonitoring(settings)
  const stock = createStock(settings, monitoring, folder?.history)
  const log = createRequestLog(settings.keep)
  const faults = createFaults(createRandom(settings.seed + 1))
  const inbox = createInbox({
    keep: settings.keep,
    isUid: stock.hasUid,
  })
  const closing = new AbortController()
  const app = createServer({ faults, log, closing: closing.signal })
  const save = (): void => folder?.save()
  const { kept, ...service } = addService(app, { ...stock, settings, log, monitoring, save })
  folder?.keep(kept, settings.logger)
  addSlackCatcher(app, { settings, log, inbox })
  addWebhookCatcher(app, { settings, log, inbox })
  addControl(app, {
    faults,
    addEvents: (count, ageMs) =>
      void stock.supply.addEvents(count, { createdAtMs: settings.now() - ageMs }),
    addCredentials: (count) => void stock.supply.addCredentials(count),
    state: () => stateOf({ stock, log, inbox, service, faults }),
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
  for (const arrivals of stock.arrivals) arrivals.start()

  const host = settings.host.includes(':') ? `[${settings.host}]` : settings.host
  const url = `http://${host}:${(app.server.address() as AddressInfo).port}`
  return {
    ...stock.supply,
    ...service,
    monitoring,
    url,
    slackUrl: `${url}/slack/T0SANDBOX/B0SANDBOX/slack-hush-hush`,
    webhookUrl: `${url}/hooks/siem`,
    webhookSecret: settings.webhookSecret,
    smtpUrl: `smtp://${host}:${smtp.port}`,
    apiKeys: settings.organizations.flatMap(({ keys }) => keys.map(({ key }) => key)),
    faults,
    received: inbox.received,
    onReceived: inbox.onReceived,
    requests: log.entries,
    async close() {
      closing.abort()
      await Promise.all(stock.arrivals.map((arrivals) => arrivals.stop()))
      await Promise.all([app.close(), smtp.close()])
      await folder?.close()
    },
  }
}

function stateOf(parts: {
  stock: Stock
  log: RequestLog
  inbox: Inbox
  service: OfferedService
  faults: FaultControl
}): Record<string, unknown> {
  const { stock, log, inbox, service, faults } = parts
  const { slack, webhook, email } = inbox.received
  return {
    events: stock.history.all().length,
    credentials: stock.credentialHistory.all().length,
    received: { slack: slack.length, webhook: webhook.length, email: email.length },
    requests: log.entries.length,
    tokensIssued: service.tokens.issued(),
    violations: service.violations(),
    searchesRemaining: service.quota.remaining(),
    faults: faults.list(),
  }
}
