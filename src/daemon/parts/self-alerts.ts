/** Builds self-alerts, the canary and its ping. */
import { ownFeed } from '../../event.ts'
import { titleOf } from '../../messages/message.ts'
import { type CanaryPing, createCanary, createCanaryPing } from '../../operator/alerts/canary.ts'
import type { Snapshot } from '../../operator/alerts/conditions.ts'
import { createPublisher, orderTargets, type Publish } from '../../operator/alerts/publisher.ts'
import { createSelfAlerts } from '../../operator/alerts/self-alerts.ts'
import { findAllProblems } from '../../operator/problems.ts'
import { reportFeeds } from '../../operator/reports/feed-report.ts'
import { deafSinks, reportSinks } from '../../operator/reports/sink-report.ts'
import { sinkTypeOf } from '../../sinks/sink-types.ts'
import { sendPing } from '../../sinks/http.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import type { EngineContext } from '../context.ts'
import type { DeliveryParts } from './delivery.ts'
import type { State, StateWatch } from '../state.ts'
import type { Upstream } from './upstream.ts'

export interface SelfAlertParts {
  /** Publishes self-alerts and the canary that are due; `alive` is called between steps. */
  checkOnce(alive: () => void): Promise<void>
}

export interface SelfAlertSources {
  delivery: DeliveryParts
  state: StateWatch
  upstream: Pick<Upstream, 'expectedPolling'>
}

/** Returns undefined if neither self-alerts nor a canary is configured. */
export function buildSelfAlerts(
  context: EngineContext,
  { delivery, state, upstream }: SelfAlertSources,
): SelfAlertParts | undefined {
  const { config, generation } = context
  if (config.selfAlerts === undefined && config.canary === undefined) return undefined
  const [ledger] = context.ledgers
  if (!ledger) throw new Error('no account ledger is open')
  const publish = buildPublisher(context, delivery, ledger)
  const parts = { ...context, ledger, publish, isActive: () => generation.isActive }
  const lagObjectiveMs = (feed: string): number => upstream.expectedPolling(feed).lagObjectiveMs
  const readSnapshot = async (): Promise<Snapshot> =>
    toSnapshot(context, await state.current(), lagObjectiveMs)
  const selfAlerts =
    config.selfAlerts &&
    createSelfAlerts({
      ...parts,
      config: config.selfAlerts,
      targets: orderTargets(
        config.selfAlerts,
        config.sinks.map((sink) => ({ ...sink, audience: sinkTypeOf(sink).audience })),
      ),
      readSnapshot,
      lagObjectiveMs,
    })
  const canary = config.canary && createCanary({ ...parts, config: config.canary })
  const ping = buildPing(parts)
  return {
    async checkOnce(alive) {
      await selfAlerts?.watchOnce(alive)
      await canary?.canaryOnce()
      await ping?.pingOnce()
    },
  }
}

function buildPing(
  parts: EngineContext & { ledger: AccountLedger; isActive: () => boolean },
): CanaryPing | undefined {
  const { ping, everyMs = 0 } = parts.config.canary ?? {}
  if (ping === undefined) return undefined
  return createCanaryPing({
    ...parts,
    everyMs,
    ping: () => sendPing(ping),
  })
}

/** Self-alerts go into the leading account's ledger, whichever account the trouble is about. */
function buildPublisher(
  context: EngineContext,
  { drains, sinks, batchWaits }: DeliveryParts,
  ledger: AccountLedger,
): Publish {
  return createPublisher({
    ledger,
    destinationsFor: (sink) => (sinks.get(sink)?.destinations ?? []).map(({ id }) => id),
    batchWaitMs: (sink) => batchWaits[sink] || undefined,
    queue(account, changes) {
      for (const { k } of changes) context.metrics.itemsCreatedTotal.inc({ sink: k })
      drains.announceChanges(account, changes)
    },
    titleOf: (event) => titleOf({ feed: ownFeed, event }),
    generation: () => context.generation.number,
    clock: context.clock,
  })
}

/** As commands and the page judge, from what this process has read for the metrics. */
function toSnapshot(
  { config }: EngineContext,
  state: State,
  lagObjectiveMs: (feed: string) => number,
): Snapshot {
  const sinks = reportSinks(config, state, { ...state, recipients: new Map() })
  const feeds = reportFeeds(config.feeds, state, lagObjectiveMs)
  const view = { config, fleet: state, feeds, sinks, canaries: {}, isRunning: true }
  return {
    atMs: state.atMs,
    problems: findAllProblems(view),
    redis: { isFull: state.redis.isFull, loss: state.loss },
    deafSinks: deafSinks(sinks),
  }
}
