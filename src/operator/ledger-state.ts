/** Reads the state of all that the open ledgers have, and what is wrong with it. Asks nobody but Redis. */
import type { Config } from '../config/config.ts'
import { expectPolling } from '../config/warnings.ts'
import { redisNow } from '../redis/scripts.ts'
import { desertedAfterMs, readSilenceMs } from '../store/account-ledger.ts'
import { readAccounts } from '../store/accounts.ts'
import { readAccountTrouble } from '../upstream/access/tokens.ts'
import { readQuota } from '../upstream/rate-limits.ts'
import { readCanary } from './alerts/canary.ts'
import { type FleetState, readFleet } from './fleet-state.ts'
import type { OpenLedgers } from './open-ledgers.ts'
import { findProblems, judgeDaemon } from './problems.ts'
import type { Problem } from './alerts/troubles.ts'
import { type AccountReport, reportAccounts } from './reports/account-report.ts'
import { type FeedReport, readKnownOrganizations, reportFeeds } from './reports/feed-report.ts'
import { readSinks, reportSinks, type SinkReport } from './reports/sink-report.ts'

/** Of all accounts, or of some. */
export interface LedgerState {
  nowMs: number
  fleet: FleetState
  accounts: AccountReport[]
  feeds: FeedReport[]
  sinks: SinkReport[]
  problems: Problem[]
}

/** `wanted`: of these accounts alone, and of sinks that ever had an item of them. */
export async function readLedgerState(
  store: OpenLedgers,
  config: Config,
  wanted?: readonly string[],
): Promise<LedgerState> {
  const isWanted = (name: string): boolean => wanted?.includes(name) ?? true
  const [silentMs, nowMs] = [await readSilenceMs(store.redis, store.keys), await redisNow(store)]
  const ledgers = store.ledgers.filter(({ account }) => isWanted(account))
  const fleet = await readFleetOf({ ...store, ledgers }, config, nowMs)
  const feeds = await readFeeds(store, config, { fleet, wanted })
  const entries = (await readAccounts(store)).filter(({ name }) => isWanted(name))
  const sinks = reportSinks(config, fleet, await readSinks(store, config, fleet)).filter(
    ({ isUsed }) => wanted === undefined || isUsed,
  )
  const canaries = await readCanary(store, config.canary?.sinks ?? [])
  const isRunning = silentMs < desertedAfterMs
  const view = { config, fleet, entries, feeds, sinks, canaries, isRunning }
  const problems = [...judgeDaemon(silentMs), ...findProblems(view)]
  const accounts = reportAccounts(entries, fleet, config)
  return { nowMs, fleet, accounts, feeds, sinks, problems }
}

/** What the open ledgers have of the accounts, feeds and sinks of a configuration. */
export function readFleetOf(
  store: OpenLedgers,
  config: Config,
  nowMs: number,
): Promise<FleetState> {
  const { redis, keys, ledgers } = store
  const configured = new Map(config.accounts.map((account) => [account.name, account]))
  const sources = {
    ledgers,
    accounts: [...configured.keys()],
    feeds: config.feeds,
    sinks: config.sinks.map(({ name }) => name),
    findTrouble: async (name: string) => {
      const account = configured.get(name)
      return account && readAccountTrouble(store, account)
    },
    searchesRemaining: async (name: string) => (await readQuota(redis, keys, name))?.remaining,
  }
  return readFleet(sources, nowMs)
}

/** `wanted`: of these accounts alone. */
export async function readFeeds(
  store: OpenLedgers,
  config: Config,
  { fleet, wanted }: { fleet: FleetState; wanted: readonly string[] | undefined },
): Promise<FeedReport[]> {
  const expected = expectPolling(config, await readKnownOrganizations(store, config.accounts))
  const own = config.feeds.filter(({ account }) => wanted?.includes(account) ?? true)
  return reportFeeds(own, fleet, (feed) => expected.get(feed)?.lagObjectiveMs ?? Infinity)
}
