import type { LaneLimit } from '../feeds/lane.ts'
import { createServiceClient, type ServiceClient } from '../service/client.ts'
import { createOrganizations } from '../service/pacing/organizations.ts'
import { createTierLimiter } from '../service/pacing/tier-limiter.ts'
import { createTurns } from '../service/pacing/turns.ts'
import type { Tier } from '../service/config.ts'
import { noteQuota } from '../service/quota.ts'
import type { Shared } from './shared.ts'

export interface Service {
  client(account: string): ServiceClient
  /** The limit that an account's requests of a tier count against. */
  limit(account: string, tier: Tier): LaneLimit
  /** Grows whenever an organization becomes known: limits are others from then on. */
  limitsVersion(): number
  close(): Promise<void>
}

/** One client for each account; all share the process' turns. */
export function buildService(shared: Shared): Service {
  const { config, redis, keys, clock, logger, metrics, timings } = shared
  const organizations = createOrganizations(config.accounts)
  const limiter = createTierLimiter({
    redis,
    keys,
    clock,
    limitOf: (lane) => organizations.limitOf(lane),
  })
  const turns = createTurns({ limiter, clock })
  const clients = new Map(
    config.accounts.map((account) => [
      account.name,
      createServiceClient({
        account,
        redis,
        keys,
        logger,
        turns,
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
        onTokenRefresh: (result) =>
          metrics.tokenRefreshesTotal.inc({ account: account.name, result }),
      }),
    ]),
  )
  function client(account: string): ServiceClient {
    const found = clients.get(account)
    if (!found) throw new Error(`no client for account ${account}`)
    return found
  }
  function limit(account: string, tier: Tier): LaneLimit {
    const lane = organizations.laneOf(account, tier)
    const { organization } = lane
    const id = `${organization}.${tier}`
    const [perSecond, share] = [organizations.limitOf(lane), organizations.shareOf(lane)]
    return { id, organization, tier, perSecond, share }
  }
  async function close(): Promise<void> {
    turns.close()
    await Promise.all([...clients.values()].map((one) => one.close()))
  }
  return { client, limit, limitsVersion: () => organizations.version(), close }
}
