/** What `doctor` says of the service itself: whether it is well, and what it tells people, too. */
import type { Config } from '../../config/config.ts'
import type { FeedConfig } from '../../feed-types/feed-config.ts'
import { systemClock } from '../../lib/clock.ts'
import { isOperationMissing } from '../../upstream/capabilities.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { UpstreamError } from '../../upstream/error.ts'
import {
  assetOperations,
  type WireTenantAlert,
  wireTenantAlert,
} from '../../upstream/resources/assets.ts'
import type { SearchPage } from '../../upstream/resources/operation.ts'
import { about, type CheckLimits, type DoctorFinding, makeCheck } from './doctor-finding.ts'

/** Twice ten seconds: for a slot of the rate limit, then for the answer. */
const healthTimeoutMs = 20_000

const again = 'run doctor again'

/** Asks each service once, whatever the number of accounts. */
export async function checkServices(
  { accounts }: Config,
  client: (account: string) => UpstreamClient,
  stop: CheckLimits['stop'],
): Promise<DoctorFinding[]> {
  const byService = new Map(accounts.map(({ baseUrl, name }) => [new URL(baseUrl).host, name]))
  const found = [...byService].map(([host, name]) => checkService(host, client(name), stop))
  return (await Promise.all(found)).flat()
}

function checkService(
  host: string,
  client: UpstreamClient,
  stop: AbortSignal,
): Promise<DoctorFinding[]> {
  const subject = about('service', host)
  return makeCheck(subject, { timeoutMs: healthTimeoutMs, stop }, async (signal) => {
    try {
      await client.checkHealth(signal)
      return [subject.good('says that it is well')]
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      const { status, message } = error
      if (status !== undefined && status >= 500) {
        const remedy = 'nothing to mend here: wait, or ask the service'
        return [subject.bad('problem', `their side: its health check says that ${message}`, remedy)]
      }
      if (error.reason === 'timeout')
        return [subject.bad('warning', `not known: ${message}`, again)]
      // whether it is reached is said by the other checks
      return status === undefined ? [] : [subject.good(`answers, but not how it is (${status})`)]
    }
  })
}

/** More alerts than any tenant has; a list without end is cut. */
const maxPages = 20

/** Alerts of the service on what feeds of the account read: people are told twice. */
export async function toldTwiceFindings(
  client: UpstreamClient,
  feeds: readonly FeedConfig[],
  signal: AbortSignal,
): Promise<DoctorFinding[]> {
  const { name } = client.account
  const own = feeds.filter((feed) => feed.account === name)
  if (!own.some(isWatched)) return []
  const subject = about('told twice', name)
  try {
    const alerts = await readAlerts(client, signal)
    return alerts.flatMap((alert) => {
      const told = own.filter((feed) => tells(alert, feed)).map((feed) => feed.name)
      if (told.length === 0) return []
      const detail = `the service tells what feed ${told.join(', ')} tells: ${alert.type ?? 'its'} alert "${alert.name ?? alert.id}"`
      return [subject.bad('note', detail, 'end one of them at the service, or leave both')]
    })
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    if (isOperationMissing(error)) return []
    const detail = `whether the service tells the same could not be found out: ${error.message}`
    return [subject.bad('warning', detail, again)]
  }
}

async function readAlerts(client: UpstreamClient, signal: AbortSignal): Promise<WireTenantAlert[]> {
  const alerts: WireTenantAlert[] = []
  let from: string | null = null
  for (let pages = 0; pages < maxPages; pages += 1) {
    const slot = { kind: 'command', name: 'doctor', dueSinceMs: systemClock.now() } as const
    const request = { from, size: 10 }
    const found: SearchPage = await client.call(assetOperations.alerts, request, { slot, signal })
    const { items, next = null } = found.page
    alerts.push(...items.flatMap((item) => wireTenantAlert.safeParse(item).data ?? []))
    if (!next || next === from) break
    from = next
  }
  return alerts
}

function isWatched(feed: FeedConfig): boolean {
  return ['events', 'tenant_events', 'identifier_events'].includes(feed.type)
}

function tells({ feed_definition: target }: WireTenantAlert, feed: FeedConfig): boolean {
  if (target?.type === 'tenant') return isWatched(feed)
  if (feed.type === 'events') return target?.type === 'group' && target.id === feed.identifierGroup
  return (
    feed.type === 'identifier_events' &&
    target?.type === 'identifier' &&
    target.id === feed.identifier
  )
}
