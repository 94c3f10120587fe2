/** Builds the clients of all accounts, with the organizations and limits that they share. */
import { type ExpectedPolling, expectPolling } from '../../config/warnings.ts'
import type { LaneLimit } from '../../feeds/lanes/lane.ts'
import type { Logger } from '../../lib/logger.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { createConnections, createTransport } from '../../upstream/transport.ts'
import { createUpstreamClient } from '../../upstream/create-client.ts'
import type { Tier } from '../../upstream/config.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { createOrganizations, type Organizations } from '../../upstream/access/organizations.ts'
import { createTierLimiter, createApiSlots, noteQuota } from '../../upstream/rate-limits.ts'
import type { EngineContext } from '../context.ts'

export interface Upstream {
  client(account: string): UpstreamClient
  /** The limit that an account's requests of a tier count against. */
  limit(account: string, tier: Tier): LaneLimit
  /**
   * How often a feed is expected to be read and how far it may fall behind, with the organizations
   * known now.
   */
  expectedPolling: (feed: string) => ExpectedPolling
  /** Grows whenever an organization becomes known, because that changes the limits. */
  limitsVersion(): number
  /**
   * Reads the organizations that earlier runs found. Until its own is known, an account shares one
   * lane with all others of its server that are not known either. Throws what Redis throws.
   */
  recallOrganizations(): Promise<void>
  /** Asks for organizations that are not known yet, some accounts at a time. Never rejects. */
  findOrganizations(signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

/** Builds one client per account; all share the process's API slots. */
export function buildUpstream(context: EngineContext): Upstream {
  const { config, redis, keys, clock, logger, metrics, timings } = context
  const organizations = createOrganizations(config.accounts)
  const limiter = createTierLimiter({
    redis,
    keys,
    clock,
    limitFor: (lane) => organizations.limitFor(lane),
  })
  const slots = createApiSlots({ limiter, clock })
  const { requestTimeoutMs: headersMs } = timings
  const connections = createConnections({ headersMs, totalMs: headersMs })
  const clients = new Map(
    config.accounts.map((account) => [
      account.name,
      createUpstreamClient({
        account,
        redis,
        keys,
        logger,
        slots,
        transport: createTransport({ account, clock, connections }),
        organizations,
        clock,
        timings,
        onRequest({ tier, code, waitedMs }) {
          metrics.apiRequestsTotal.inc({ account: account.name, tier, code })
          metrics.apiBudgetWaitSecondsTotal.inc({ account: account.name, tier }, waitedMs / 1000)
        },
        onQuota: (remaining) =>
          void noteQuota(redis, keys, account.name, { remaining, atMs: clock.now() }).catch(
            (error: unknown) => logger.debug({ err: error }, 'the quota was not noted'),
          ),
      }),
    ]),
  )
  function client(account: string): UpstreamClient {
    const found = clients.get(account)
    if (!found) throw new Error(`no client for account ${account}`)
    return found
  }
  async function close(): Promise<void> {
    slots.close()
    for (const client of clients.values()) client.close()
    await connections.close()
  }
  return {
    client,
    limit: (account, tier) => toLaneLimit(organizations, account, tier),
    expectedPolling: createExpectedPolling(config, organizations),
    limitsVersion: () => organizations.version(),
    recallOrganizations: () => recallOrganizations([...clients.values()]),
    findOrganizations: (signal) => findOrganizations([...clients.values()], logger, signal),
    close,
  }
}

function toLaneLimit(organizations: Organizations, account: string, tier: Tier): LaneLimit {
  const lane = organizations.laneFor(account, tier)
  const { organization } = lane
  const id = `${organization}.${tier}`
  const [perSecond, share] = [organizations.limitFor(lane), organizations.shareFor(lane)]
  return { id, organization, tier, perSecond, share }
}

/** Computed again only when an organization became known. */
function createExpectedPolling(
  config: EngineContext['config'],
  organizations: Organizations,
): Upstream['expectedPolling'] {
  let known: { version: number; feeds: ReturnType<typeof expectPolling> } | undefined
  return (feed) => {
    const version = organizations.version()
    if (known?.version !== version) known = { version, feeds: expectPolling(config, organizations) }
    const polling = known.feeds.get(feed)
    if (!polling) throw new Error(`no feed ${feed}`)
    return polling
  }
}

/** Accounts whose organizations are read from Redis at once. */
const recalledAtOnce = 50

async function recallOrganizations(clients: readonly UpstreamClient[]): Promise<void> {
  for (let at = 0; at < clients.length; at += recalledAtOnce) {
    const batch = clients.slice(at, at + recalledAtOnce)
    await Promise.all(batch.map((client) => client.recallOrganization().catch(ignoreUpstreamError)))
  }
}

/** Ignores a key that cannot be read: it must not delay other accounts, and its feeds report it. */
function ignoreUpstreamError(error: unknown): void {
  if (!(error instanceof UpstreamError)) throw error
}

/** Accounts that ask upstream at once: a token waits for its slot ten seconds at most. */
const accountsAskedAtOnce = 10

async function findOrganizations(
  clients: readonly UpstreamClient[],
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  const unknown = clients.filter((client) => client.organization() === undefined)
  async function askNext(): Promise<void> {
    const next = signal.aborted ? undefined : unknown.shift()
    if (!next) return undefined
    await next.findOrganization(signal).catch((error: unknown) => {
      logger.debug({ err: error }, 'the organization is not known yet; the first poll asks again')
    })
    return askNext()
  }
  await Promise.all(Array.from({ length: accountsAskedAtOnce }, askNext))
}
