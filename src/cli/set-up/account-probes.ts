/** Probes of the service and of the accounts there, whose requests are paced through Redis. */
import { lookup } from 'node:dns/promises'
import type { Config, Environment } from '../../config/config.ts'
import type { FeedConfig } from '../../feed-types/feed-config.ts'
import { systemClock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/errors.ts'
import type { Outbound } from '../../lib/outbound-config.ts'
import { createHttpTransport } from '../../sinks/http.ts'
import { isOperationMissing } from '../../upstream/capabilities.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import type { AccountConfig } from '../../upstream/config.ts'
import { diagnoseKey } from '../../upstream/diagnose-key.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { readQuota } from '../../upstream/rate-limits.ts'
import {
  assetOperations,
  type WireTenantAlert,
  wireTenantAlert,
} from '../../upstream/resources/assets.ts'
import type { SearchPage } from '../../upstream/resources/operation.ts'
import type { OpenStore } from '../open/open-store.ts'
import { formatUtcTime } from '../terminal.ts'
import { about, type Finding, type Probe, splitRemedy, toClause } from './probe.ts'

const again = 'run doctor again'

export interface ReachNeeds {
  account: AccountConfig
  env: Environment
}

/** Without a request: the name, unless a proxy resolves it, the connection and its TLS. */
export const reachProbe: Probe<ReachNeeds> = {
  name: 'reach',
  timeoutMs: 10_000,
  subject: ({ account }) => `${account.name} (${new URL(account.baseUrl).hostname})`,
  async find({ account, env }, subject, signal) {
    const url = new URL(account.baseUrl)
    const transport = createHttpTransport({
      allowPrivate: true,
      outbound: account,
      maxConnections: 1,
      receiver: 'the service',
    })
    try {
      if (account.proxy === undefined) await lookup(url.hostname.replaceAll(/^\[|\]$/g, ''))
      const { answer } = await transport.reach(url, signal)
      return [subject.good(answer)]
    } catch (error) {
      const usual = 'check host and port in base_url, the DNS of this machine and its firewall'
      const otherwise = proxyRemedy(account, env) ?? usual
      return [subject.bad('problem', ...splitRemedy(errorMessage(error), otherwise))]
    } finally {
      await transport.close()
    }
  },
}

/** The line to write where the environment names a proxy that what is not reached does not use. */
export function proxyRemedy({ proxy }: Outbound, env: Environment): string | undefined {
  const names = ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy']
  const name = names.find((one) => (env[one] ?? '') !== '')
  if (proxy !== undefined || name === undefined) return undefined
  return `this network has a proxy: write proxy: \${${name}}, unless it is reached without`
}

/** Needs no key that works; one account of each service will do. */
export const serviceProbe: Probe<{ client: UpstreamClient }> = {
  name: 'service',
  timeoutMs: 20_000, // twice ten seconds: for a slot of the rate limit, then for the answer
  subject: ({ client }) => new URL(client.account.baseUrl).host,
  async find({ client }, subject, signal) {
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
      // whether it is reached is said by the other probes
      return status === undefined ? [] : [subject.good(`answers, but not how it is (${status})`)]
    }
  },
}

export interface AccountNeeds {
  config: Config
  store: OpenStore
  client: UpstreamClient
}

const accountName = ({ client }: AccountNeeds): string => client.account.name

/** A token and its test, or one kind of question with the key, each request in a slot of its own. */
export const accountTimeoutMs = 30_000

/** Says also what the answer says beside the key: the tenant, and the time. */
export const keyProbe: Probe<AccountNeeds> = {
  name: 'key',
  timeoutMs: accountTimeoutMs,
  isBasis: true,
  subject: accountName,
  async find({ client }, subject, signal) {
    const { ok, facts, remedy = '', warnings } = await diagnoseKey(client, signal)
    // whose key it is stands before; scopes and limits are for token test
    const said = facts.slice(0, 2).join(' ').replace(/\.$/, '')
    const detail = said.replace(/^The key of account ".*?" /, '')
    const warned = warnings.map((warning) =>
      about(warning.about, client.account.name).bad('warning', warning.problem, warning.remedy),
    )
    return [
      ok ? subject.good(detail) : subject.bad('problem', detail, toClause(remedy)),
      ...warned,
      ...(warnings.some((warning) => warning.about === 'clock') ? [] : [clockFinding(client)]),
    ]
  },
}

function clockFinding(client: UpstreamClient): Finding {
  const subject = about('clock', client.account.name)
  const skewMs = client.clockSkewMs()
  if (skewMs === undefined) {
    return subject.bad('warning', 'not checked: no answer stated the time', 'mend the key first')
  }
  const seconds = Math.round(Math.abs(skewMs) / 1000)
  return subject.good(`within ${Math.max(1, seconds)} s of the service's`)
}

/** A slot of the rate limit that comes later than this says that others use it up. */
const longWaitSeconds = 5

export const rateProbe: Probe<AccountNeeds> = {
  name: 'rate',
  timeoutMs: accountTimeoutMs,
  subject: accountName,
  async find({ client }, subject) {
    const { search, basic } = client.account.limits
    const { waitedSeconds } = client.budget('basic')
    const detail = `search ${search}/s, basic ${basic}/s; waited ${waitedSeconds.toFixed(1)} s for a turn`
    const remedy = 'something else uses up the limit: lower limits.share, or wait'
    const isLate = waitedSeconds > longWaitSeconds
    return [isLate ? subject.bad('warning', detail, remedy) : subject.good(detail)]
  },
}

export const quotaProbe: Probe<AccountNeeds> = {
  name: 'quota',
  timeoutMs: accountTimeoutMs,
  subject: accountName,
  async find({ store: { redis, keys }, client }, subject) {
    const quota = await readQuota(redis, keys, client.account.name)
    if (quota === undefined) return [subject.good('no answer has stated the searches left yet')]
    const detail = `${quota.remaining} searches left at ${formatUtcTime(quota.atMs)}`
    const remedy = 'wait for the next month, or ask the service for more'
    return [quota.remaining > 0 ? subject.good(detail) : subject.bad('problem', detail, remedy)]
  },
}

/** Alerts of the service on what feeds of the account read: people are told twice. */
export const toldTwiceProbe: Probe<AccountNeeds> = {
  name: 'told twice',
  timeoutMs: accountTimeoutMs,
  ifLate: 'warning', // by the rate limit: the network gave the key's answer just now
  subject: accountName,
  async find({ config, client }, subject, signal) {
    const own = config.feeds.filter((feed) => feed.account === client.account.name)
    if (!own.some(isWatched)) return []
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
  },
}

/** More alerts than any tenant has; a list without end is cut. */
const maxPages = 20

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
