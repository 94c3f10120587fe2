/** Builds self-alerts, the canary and its ping. */
import { describeFallback } from '../../delivery/relief/fallback.ts'
import { ownFeed } from '../../event.ts'
import { reservedSearches } from '../../feeds/types/polled-feed.ts'
import { titleOf } from '../../messages/message.ts'
import type { AccountState } from '../../page/http/fleet-state.ts'
import { type CanaryPing, createCanary, createCanaryPing } from '../../operator/alerts/canary.ts'
import type { Snapshot } from '../../operator/alerts/conditions.ts'
import { createPublisher, orderTargets, type Publish } from '../../operator/alerts/publisher.ts'
import { createSelfAlerts } from '../../operator/alerts/self-alerts.ts'
import { sinkTypeOf } from '../../sinks/sink-types.ts'
import { sendPing } from '../../sinks/http.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { sumPending } from '../../store/accounts.ts'
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
  const readSnapshot = async (): Promise<Snapshot> =>
    toSnapshot(context, await state.current(), upstream.expectedPolling)
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
    onPing: (outcome) => parts.metrics.canaryPingsTotal.inc({ outcome }),
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

function toSnapshot(
  { config, ledgers }: EngineContext,
  state: State,
  expectedPolling: Upstream['expectedPolling'],
): Snapshot {
  const configured = state.accounts.filter(({ isConfigured }) => isConfigured)
  const byName = new Map(configured.map((account) => [account.name, account]))
  const open = new Set(ledgers.map(({ account }) => account))
  return {
    atMs: state.atMs,
    feeds: config.feeds.map((feed) => feedHealth(feed, byName.get(feed.account), expectedPolling)),
    accounts: configured.map(({ name, trouble }) => ({ name, trouble })),
    left: state.accounts
      .filter(({ name, isConfigured }) => !isConfigured && open.has(name))
      .map(({ name, pending }) => ({ name, pending })),
    sinks: config.sinks.flatMap((sink) => sinkHealth(sink, state)),
    redis: { isFull: state.redis.isFull, ...(state.loss && { loss: state.loss }) },
    unaccounted: state.accounts.flatMap(({ accounting: { feeds, sinks } }) => [
      ...listUnaccounted(feeds).map(([name, count]) => `feed ${name}: ${count}`),
      ...listUnaccounted(sinks).map(([name, count]) => `sink ${name}: ${count}`),
    ]),
  }
}

function sinkHealth(
  sink: EngineContext['config']['sinks'][number],
  state: State,
): Snapshot['sinks'] {
  const { name } = sink
  const circuit = state.circuits.get(name)
  const { deadLetters = 0, pending = {} } = state.sinks.get(name) ?? {}
  if (!circuit) return []
  const { state: word, paused, disabled, trouble } = circuit
  const relief = describeFallback(sink, state.circuits, state.atMs)
  const waiting = { pending: sumPending({ pending }), relief }
  return [{ name, circuit: word, paused, disabled, trouble, deadLetters, ...waiting }]
}

function feedHealth(
  feed: EngineContext['config']['feeds'][number],
  account: AccountState | undefined,
  expectedPolling: Upstream['expectedPolling'],
): Snapshot['feeds'][number] {
  const { name } = feed
  const { lagObjectiveMs } = expectedPolling(name)
  const state = account?.feeds.get(name)
  const reserve = reservedSearches(feed)
  const quarantine = account?.quarantine[name]
  const remaining = reserve > 0 ? account?.searchesRemaining : undefined
  return {
    name,
    account: feed.account,
    lagObjectiveMs,
    isPaused: state?.paused !== undefined,
    lastSuccessMs: state?.lastSuccessMs,
    lastCaughtUpMs: state?.lastCaughtUpMs,
    trouble: state?.trouble,
    ...(state?.unreadable && { unreadable: state.unreadable }),
    ...(quarantine && quarantine.fresh > 0 && { quarantined: quarantine }),
    ...(remaining !== undefined && { quota: { remaining, reserve } }),
  }
}

function listUnaccounted(accounts: Record<string, { unaccounted: number }>): [string, number][] {
  return Object.entries(accounts).flatMap(([name, { unaccounted }]): [string, number][] =>
    unaccounted === 0 ? [] : [[name, unaccounted]],
  )
}
