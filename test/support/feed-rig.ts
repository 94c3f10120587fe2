/** A poller on a real ledger that reads the sandbox over HTTP, driven one turn at a time. */
import { createSecretBox } from '../../src/lib/sealed-secret.ts'
import { expect } from 'vitest'
import type { PolledFeed } from '../../src/feeds/types/polled-feed.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { scanRecords, type LedgerRecord } from '../../src/store/records.ts'
import { systemClock, type Clock } from '../../src/lib/clock.ts'
import type { Logger } from '../../src/lib/logger.ts'
import { createMetrics, type Metrics } from '../../src/lib/metrics/metrics.ts'
import { secretFromText } from '../../src/lib/config/secret.ts'
import type { SandboxOptions } from '../../src/sandbox/options.ts'
import type { SandboxRequest } from '../../src/sandbox/server.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { noteQuota, readQuota, type QuotaReading } from '../../src/upstream/rate-limits.ts'
import type { RedisForTests } from './ledger.ts'
import { pollerOf } from './poller.ts'
import { anAccount, startReplica, type Replica } from './replica.ts'
import type {
  PolledAccount,
  PollerOptions,
  PollOutcome,
  PollRequest,
} from '../../src/feeds/poll-run.ts'

export interface FeedRig {
  sandbox: Sandbox
  replica: Replica
  ledger: AccountLedger
  metrics: Metrics
  turn(
    feed: PolledFeed,
    kind?: 'feed' | 'rescan',
    asked?: Pick<PollRequest, 'onSlot' | 'onPage' | 'mayContinue'>,
  ): Promise<PollOutcome>
  /** Turns until the feed or its rescan was read to its end. */
  toEnd(feed: PolledFeed, kind?: 'feed' | 'rescan'): Promise<void>
  records(): Promise<Map<string, LedgerRecord>>
  /** Requests for pages since the last call. */
  asked(): SandboxRequest[]
  /** What the account has left of its searches, as the last answer said. */
  quota(): Promise<QuotaReading | undefined>
  setQuota(reading: QuotaReading): Promise<void>
  stop(): Promise<void>
}

export interface FeedRigOptions {
  tests: RedisForTests
  sandbox?: SandboxOptions
  plan?: PollerOptions['plan']
  sealSecret?: PolledAccount['sealSecret']
  logger?: Logger
  /** What stands before the sandbox, given its address; left out: nothing. */
  before?: (url: string) => string
  /** This machine's; its client has it too. */
  clock?: Clock | undefined
  /** Left out: the service is asked for nothing beyond its description. */
  capabilities?: PolledAccount['capabilities']
}

/** Every event goes to sink soc unless `plan` says otherwise. */
export async function startFeedRig(given: FeedRigOptions): Promise<FeedRig> {
  const sandbox = await startSandbox({ enforceLimits: false, ...given.sandbox })
  const keys = given.tests.keys()
  const replica = startReplica({
    redisUrl: given.tests.server.url,
    prefix: `${keys.queuePrefix}-service`,
    ...(given.clock && { clock: given.clock }),
    account: anAccount({
      baseUrl: given.before?.(sandbox.url) ?? sandbox.url,
      apiKey: secretFromText(sandbox.apiKeys[0]!),
      organizationId: 7,
      limits: { search: 1_000, basic: 1_000 },
    }),
    onQuota: (remaining) =>
      void noteQuota(given.tests.redis, keys, 'main', { remaining, atMs: Date.now() }),
  })
  const ledger = await given.tests.ledger({ keys })
  const metrics = createMetrics({ clock: systemClock })
  const clock = given.clock ?? systemClock
  const secrets = createSecretBox(() => 'fw_of_the_rig')
  const { plan, logger, sealSecret, capabilities } = given
  const poller = pollerOf(
    {
      client: replica.client,
      ledger,
      readQuota: () => readQuota(given.tests.redis, keys, 'main'),
      pairDigest: (parts) => secrets.digest(parts),
      ...(sealSecret && { sealSecret }),
      capabilities,
    },
    { clock, metrics, ...(plan && { plan }), ...(logger && { logger }) },
  )
  const signal = new AbortController().signal
  const turn: FeedRig['turn'] = (feed, kind = 'feed', asked = {}) =>
    poller.pollOnce(feed, { kind, signal, ...asked })
  let seen = 0

  return {
    sandbox,
    replica,
    ledger: ledger,
    metrics,
    turn,
    async toEnd(feed, kind = 'feed') {
      let outcome = await turn(feed, kind)
      // a rescan every millisecond is not due within the one in which the feed was read
      const isDueNow = (): boolean =>
        outcome.status === 'not_due' && (outcome.untilMs ?? Infinity) <= clock.now() + 1
      const goesOn = (): boolean => outcome.status === 'more' || isDueNow()
      for (let more = 0; goesOn() && more < 100; more += 1) {
        outcome = await turn(feed, kind)
      }
      expect(outcome).toEqual({ status: 'caught_up' })
    },
    async records() {
      return new Map((await recordsOf(ledger)).map((record) => [record.uid, record]))
    },
    asked() {
      const requests = sandbox.requests
        .slice(seen)
        .filter(({ path }) => path.includes('/firework/') || path.includes('/astp/'))
      seen = sandbox.requests.length
      return requests
    },
    quota: () => readQuota(given.tests.redis, keys, 'main'),
    setQuota: (reading) => noteQuota(given.tests.redis, keys, 'main', reading),
    async stop() {
      await replica.stop()
      await sandbox.close()
    },
  }
}

/** Every record of a ledger, in no order. */
export async function recordsOf(ledger: AccountLedger): Promise<LedgerRecord[]> {
  const records: LedgerRecord[] = []
  for await (const record of scanRecords(ledger)) records.push(record)
  return records
}

/** The value of a series as it is scraped, such as `feed_pages_total{feed="brand"}`; 0 where there is none. */
export async function scraped(metrics: Metrics, series: string): Promise<number> {
  const { body } = await metrics.render()
  const line = body.split('\n').find((text) => text.startsWith(`tocsin_${series} `))
  return Number(line?.split(' ').at(-1) ?? 0)
}
