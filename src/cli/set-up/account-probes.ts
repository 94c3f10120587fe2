/** Probes of the service and of the accounts there, whose requests are paced through Redis. */
import { lookup } from 'node:dns/promises'
import type { Config, Environment } from '../../config/config.ts'
import { errorMessage } from '../../lib/errors.ts'
import { createHttpTransport } from '../../sinks/http.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import type { AccountConfig } from '../../upstream/config.ts'
import { diagnoseKey } from '../../upstream/access/diagnose-key.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { readQuota } from '../../upstream/rate-limits.ts'
import type { OpenStore } from '../open/open-store.ts'
import { formatUtcTime } from '../terminal.ts'
import { about, type Finding, type Probe, splitRemedy } from '../../operator/probes/probe.ts'
import { proxyRemedy } from '../../operator/probes/sink-probes.ts'

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
const accountTimeoutMs = 30_000

/** Says also what the answer says beside the key: the tenant, and the time. */
export const keyProbe: Probe<AccountNeeds> = {
  name: 'key',
  timeoutMs: accountTimeoutMs,
  isBasis: true,
  subject: accountName,
  async find({ client }, subject, signal) {
    const { detail, remedy, warnings } = await diagnoseKey(client, signal)
    const warned = warnings.map((warning) =>
      about(warning.about, client.account.name).bad('warning', warning.problem, warning.remedy),
    )
    return [
      remedy === undefined ? subject.good(detail) : subject.bad('problem', detail, remedy),
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
