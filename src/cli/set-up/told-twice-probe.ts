/** Whether the service itself tells people what a feed tells them. */
import type { z } from 'zod'
import type { FeedConfig } from '../../feed-types/config.ts'
import { systemClock } from '../../lib/clock.ts'
import { isOperationMissing } from '../../upstream/capabilities.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { assetOperations, wireTenantAlert } from '../../upstream/resources/assets.ts'
import type { SearchPage } from '../../upstream/resources/operation.ts'
import { type AccountNeeds, accountTimeoutMs } from './account-probes.ts'
import type { Probe } from '../../operator/probe.ts'

type TenantAlert = z.infer<typeof wireTenantAlert>

/** Alerts of the service on what feeds of the account read: people are told twice. */
export const toldTwiceProbe: Probe<AccountNeeds> = {
  name: 'told twice',
  timeoutMs: accountTimeoutMs,
  ifLate: 'warning', // by the rate limit: the network gave the key's answer just now
  subject: ({ client }) => client.account.name,
  async find({ config, client }, subject, signal) {
    const own = config.feeds.filter((feed) => feed.account === client.account.name)
    if (!own.some(({ type }) => type === 'events')) return []
    try {
      const alerts = await readAlerts(client, signal)
      return alerts.flatMap((alert) => {
        const told = own.filter((feed) => tells(alert, feed)).map((feed) => feed.name)
        if (told.length === 0) return []
        const detail = `the service tells what feed ${told.join(', ')} tells: ${alert.type ?? 'its'} alert ${alert.id}${alert.name ? ` "${alert.name}"` : ''}`
        return [subject.good(`${detail}: end one of them at the service, or leave both`)]
      })
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      if (isOperationMissing(error)) return []
      const detail = `whether the service tells the same could not be found out: ${error.message}`
      return [subject.bad('warning', detail, 'run doctor again')]
    }
  },
}

/** More alerts than any tenant has; a list without end is cut. */
const maxPages = 20

async function readAlerts(client: UpstreamClient, signal: AbortSignal): Promise<TenantAlert[]> {
  const alerts: TenantAlert[] = []
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

function tells({ feed_definition: target }: TenantAlert, feed: FeedConfig): boolean {
  if (feed.type !== 'events') return false
  if (target?.type === 'tenant') return true
  const own = target?.type === 'group' ? feed.identifierGroup : feed.identifier
  return own !== undefined && target?.id === own
}
