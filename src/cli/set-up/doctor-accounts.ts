/** What `doctor` says of Redis and of the accounts, whose requests are paced through it. */
import { lookup } from 'node:dns/promises'
import type { Config, Environment } from '../../config/config.ts'
import { systemClock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/errors.ts'
import { readSchema, StoreError } from '../../redis/health.ts'
import { createKeys } from '../../redis/keys.ts'
import { createHttpTransport } from '../../sinks/http.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import type { AccountConfig } from '../../upstream/config.ts'
import { type Diagnosis, diagnoseKey } from '../../upstream/diagnose-key.ts'
import { readQuota } from '../../upstream/rate-limits.ts'
import { type OpenStore, withRedis } from '../open/open-store.ts'
import { withUpstream } from '../open/open-upstream.ts'
import { formatUtcTime } from '../terminal.ts'
import { checkLive } from '../config/check-live.ts'
import {
  about,
  type DoctorFinding,
  makeCheck,
  proxyRemedy,
  splitRemedy,
  type Subject,
  toClause,
} from './doctor-finding.ts'
import { checkLedger } from './doctor-ledger.ts'
import { checkRedis, layoutFindings, unreachableFinding } from './doctor-redis.ts'
import { checkServices, toldTwiceFindings } from './doctor-service.ts'

const redisTimeoutMs = 10_000
const reachTimeoutMs = 10_000
/** A token and its test, or one kind of question with the key, each request in a slot of its own. */
const accountTimeoutMs = 30_000

interface AccountChecks {
  stop: AbortSignal
  env: Environment
}

export async function checkRedisAndAccounts(
  config: Config,
  checks: AccountChecks,
): Promise<DoctorFinding[]> {
  const { stop } = checks
  const reaching = Promise.all(config.accounts.map((account) => checkReach(account, checks)))
  const { redis, services, accounts } = await checkServed(config, stop)
  const reached = await reaching
  return [
    ...redis,
    ...services,
    ...config.accounts.flatMap((_, at) => [...(reached[at] ?? []), ...(accounts[at] ?? [])]),
  ]
}

interface Served {
  redis: DoctorFinding[]
  services: DoctorFinding[]
  /** Of each account, in the order of the configuration. */
  accounts: DoctorFinding[][]
}

async function checkServed(config: Config, stop: AbortSignal): Promise<Served> {
  try {
    return await withRedis(config.redis, async (redis) => {
      const keys = createKeys(config.redis.prefix)
      const limits = { timeoutMs: redisTimeoutMs, stop }
      const found = await makeCheck(about('redis', config.redis.prefix), limits, () =>
        checkRedis(redis, config),
      )
      const layout = await makeCheck(about('redis layout', config.redis.prefix), limits, async () =>
        layoutFindings(await readSchema(redis, keys), config),
      )
      if (layout.length > 0) return { ...unasked(config), redis: [...found, ...layout] }
      // first: a key that works again ends its account's pause
      const ledger = await checkLedger(redis, config, stop)
      const store = { redis, keys, ledgers: [] }
      const served = await checkAccounts(config, store, stop)
      return { ...served, redis: [...found, ...ledger] }
    })
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { ...unasked(config), redis: [unreachableFinding(error, config)] }
  }
}

/** The problem is that of Redis, and counted there. */
function unasked({ accounts }: Config): Omit<Served, 'redis'> {
  const detail = 'not checked: its requests are paced through Redis'
  const say = (name: string) => [about('key', name).bad('warning', detail, 'mend Redis first')]
  return { services: [], accounts: accounts.map(({ name }) => say(name)) }
}

/** Without a request: the name, unless a proxy resolves it, the connection and its TLS. */
async function checkReach(
  account: AccountConfig,
  { stop, env }: AccountChecks,
): Promise<DoctorFinding[]> {
  const { name, baseUrl, proxy } = account
  const url = new URL(baseUrl)
  const subject = about('reach', `${name} (${url.hostname})`)
  const transport = createHttpTransport({
    allowPrivate: true,
    outbound: account,
    maxConnections: 1,
    receiver: 'the service',
  })
  try {
    return await makeCheck(subject, { timeoutMs: reachTimeoutMs, stop }, async (signal) => {
      const usual = 'check host and port in base_url, the DNS of this machine and its firewall'
      try {
        if (proxy === undefined) await lookup(url.hostname.replaceAll(/^\[|\]$/g, ''))
        const { answer } = await transport.reach(url, signal)
        return [subject.good(answer)]
      } catch (error) {
        const otherwise = proxyRemedy(account, env) ?? usual
        return [subject.bad('problem', ...splitRemedy(errorMessage(error), otherwise))]
      }
    })
  } finally {
    await transport.close()
  }
}

/** One after the other where they share a limit, so not all at once. */
const accountsAtOnce = 10

async function checkAccounts(
  config: Config,
  store: OpenStore,
  stop: AbortSignal,
): Promise<Omit<Served, 'redis'>> {
  return withUpstream(config, store, async (upstream) => {
    const services = checkServices(config, (name) => upstream.client(name), stop)
    const found: DoctorFinding[][] = []
    for (let at = 0; at < config.accounts.length; at += accountsAtOnce) {
      const batch = config.accounts.slice(at, at + accountsAtOnce)
      const checks = batch.map(({ name }) =>
        checkAccount({ config, store, client: upstream.client(name) }, stop),
      )
      found.push(...(await Promise.all(checks)))
    }
    return { services: await services, accounts: found }
  })
}

interface AccountParts {
  config: Config
  store: OpenStore
  client: UpstreamClient
}

export async function checkAccount(
  parts: AccountParts,
  stop: AbortSignal,
): Promise<DoctorFinding[]> {
  const { client } = parts
  const subject = about('key', client.account.name)
  const limits = { timeoutMs: accountTimeoutMs, stop }
  let isUsable = false
  const found = await makeCheck(subject, limits, async (signal) => {
    const diagnosis = await diagnoseKey(client, signal)
    const { ok, facts, remedy = '' } = diagnosis
    const detail = facts.join(' ').replace(/\.$/, '')
    if (!ok)
      return [subject.bad('problem', detail, toClause(remedy)), ...besides(client, diagnosis)]
    isUsable = true
    return [
      subject.good(detail),
      ...besides(client, diagnosis),
      rateFinding(client),
      await quotaFinding(parts),
    ]
  })
  if (!isUsable) return found
  // late by the rate limit rather than the network, which gave the key's answer just now
  const [late, feeds] = [{ ...limits, ifLate: 'warning' } as const, parts.config.feeds]
  const say = (check: string): Subject => about(check, client.account.name)
  const words = await makeCheck(say('filters'), late, (signal) => filterFindings(parts, signal))
  const twice = await makeCheck(say('told twice'), late, (signal) =>
    toldTwiceFindings(client, feeds, signal),
  )
  return [...found, ...words, ...twice]
}

/** What the answer says beside the key: the tenant, and the time. */
function besides(client: UpstreamClient, { warnings }: Diagnosis): DoctorFinding[] {
  const { name } = client.account
  const found = warnings.map((warning) =>
    about(warning.about, name).bad('warning', warning.problem, warning.remedy),
  )
  return warnings.some((warning) => warning.about === 'clock')
    ? found
    : [...found, clockFinding(client)]
}

function clockFinding(client: UpstreamClient): DoctorFinding {
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

function rateFinding(client: UpstreamClient): DoctorFinding {
  const { name, limits } = client.account
  const subject = about('rate', name)
  const { waitedSeconds } = client.budget('basic')
  const detail = `search ${limits.search}/s, basic ${limits.basic}/s; waited ${waitedSeconds.toFixed(1)} s for a turn`
  return waitedSeconds > longWaitSeconds
    ? subject.bad(
        'warning',
        detail,
        'something else uses up the limit: lower limits.share, or wait',
      )
    : subject.good(detail)
}

async function quotaFinding({ store, client }: AccountParts): Promise<DoctorFinding> {
  const { name } = client.account
  const subject = about('quota', name)
  const quota = await readQuota(store.redis, store.keys, name)
  if (quota === undefined) return subject.good('no answer has stated the searches left yet')
  const detail = `${quota.remaining} searches left at ${formatUtcTime(quota.atMs)}`
  const remedy = 'wait for the next month, or ask the service for more'
  return quota.remaining > 0 ? subject.good(detail) : subject.bad('problem', detail, remedy)
}

async function filterFindings(
  { config, client }: AccountParts,
  signal: AbortSignal,
): Promise<DoctorFinding[]> {
  const subject = about('filters', client.account.name)
  const { mistakes, remarks, failures } = await checkLive(
    { ...config, accounts: [client.account] },
    {
      client: () => client,
      callOptions: () => ({
        slot: { kind: 'command', name: 'doctor', dueSinceMs: systemClock.now() },
        signal,
      }),
    },
  )
  const bad = (status: 'warning' | 'problem') => (message: string) =>
    subject.bad(status, ...splitRemedy(message, 'ask again with "tocsin check --live"'))
  return [...[...mistakes, ...failures].map(bad('problem')), ...remarks.map(bad('warning'))]
}
