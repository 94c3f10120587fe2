/** Any number of replicas of the whole daemon in this process, and what a rehearsal waits for. */
import { type LoadedConfig, parseConfig } from '../../src/config/load.ts'
import { type App, createApp } from '../../src/daemon/daemon.ts'
import type { FeedConfig } from '../../src/feeds/types/config.ts'
import { type Clock, defaultTimings, type Timings } from '../../src/lib/clock.ts'
import type { Logger } from '../../src/lib/logger.ts'
import { sumPending, readAccounting } from '../../src/store/accounts.ts'
import { silent } from './ledger.ts'

/**
 * About a tenth of production's. A job's lock stays as long as it is: no process dies here, and one that is
 * kept waiting by a busy machine would lose it.
 */
export const shortTimings: Timings = {
  ...defaultTimings,
  stalledCheckMs: 500,
  redisWatchMs: 500,
  generationMs: 250,
  healMs: 250,
  silencesMs: 500,
  groupsMs: 100,
  failoverMs: 500,
  accountsMs: 500,
  lanesMs: 2_000,
  laneHoldMs: 3_000,
  minPollIntervalMs: 200,
  housekeepingMs: 1_000,
  stateMs: 500,
  pollBackoffMs: 500,
  rescanLookMs: 500,
  notDueLookMs: 500,
  pausedLookMs: 250,
  fullLookMs: 250,
  supersededLookMs: 250,
  headStartMs: 250,
  requestTimeoutMs: 5_000,
  keyPauseMs: 1_000,
  detailWaitMs: 5_000,
  detailRetryMs: 250,
  circuitOpenMs: 2_000,
  circuitRecheckMs: 500,
  fallbackWaitMs: 1_000,
}

/** One replica with the configuration as an operator writes it; not started yet. `clock`: not Redis'. */
export function aReplica(yaml: string, logger: Logger = silent, clock?: Clock): App {
  return createApp({
    ...hurriedConfig(yaml),
    version: 'test',
    logger,
    ...(clock && { clock }),
    timings: shortTimings,
  })
}

/** Its feeds are polled and rescanned ten times as often as it says, and than any configuration may ask for. */
export function hurriedConfig(yaml: string): LoadedConfig {
  const loaded = parseConfig(yaml, { file: 'test.yaml', env: {} })
  const feeds = loaded.config.feeds.map((feed): FeedConfig => {
    const { longestMs, rescan } = feed
    const sooner = {
      longestMs: longestMs && longestMs / 10,
      rescan: rescan?.everyMs ? { ...rescan, everyMs: rescan.everyMs / 10 } : rescan,
    }
    return feed.everyMs === undefined
      ? { ...feed, ...sooner }
      : { ...feed, ...sooner, everyMs: feed.everyMs / 10 }
  })
  return { ...loaded, config: { ...loaded.config, feeds } }
}

export { until } from './until.ts'

/** Whether no account of the replica has an item on its way. */
export async function nothingPending(app: App): Promise<boolean> {
  for (const ledger of app.ledgers) {
    const { sinks } = await readAccounting(ledger)
    if (Object.values(sinks).some((sink) => sumPending(sink) > 0)) return false
  }
  return true
}
