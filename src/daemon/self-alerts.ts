import { quotaReserveOf } from '../feed-types/feed-type.ts'
import type { AccountState } from '../ops/fleet-state.ts'
import { type CanaryPing, createCanary, createCanaryPing } from '../self-alerts/canary.ts'
import type { Snapshot } from '../self-alerts/conditions.ts'
import { createTeller, orderWays, type Tell } from '../self-alerts/publisher.ts'
import { createNotices, createTold, type ToldOptions } from '../self-alerts/self-alerts.ts'
import { sendPing } from '../sinks/webhook/webhook-sink.ts'
import type { Book } from '../store/account-ledger.ts'
import type { Shared } from './context.ts'
import type { DeliveryParts } from './delivery.ts'
import type { State, StateWatch } from './state.ts'
import type { Service } from './upstream.ts'

export interface NoticeParts {
  /** Tells operators what is to be told, and sends the test event that is due. */
  lookOnce(): Promise<void>
}

export interface NoticeSources extends Pick<Service, 'expected'> {
  delivery: DeliveryParts
  state: StateWatch
}

/** undefined where the configuration asks for neither notices nor a canary. */
export function buildNotices(
  shared: Shared,
  { delivery, state, expected }: NoticeSources,
): NoticeParts | undefined {
  const { config, generation } = shared
  if (config.notices === undefined && config.canary === undefined) return undefined
  const [book] = shared.books
  if (!book) throw new Error('no book is open')
  const ways = waysIn(book, delivery)
  const tell = buildTeller(shared, delivery, ways)
  const parts = { ...shared, book, tell, isActive: () => generation.isActive }
  const readSnapshot = async (): Promise<Snapshot> =>
    snapshotOf(shared, await state.current(), expected)
  const notices =
    config.notices &&
    createNotices({
      ...parts,
      config: config.notices,
      ways: orderWays(config.notices, config.sinks),
      told: createTold(ways),
      readSnapshot,
    })
  const canary = config.canary && createCanary({ ...parts, config: config.canary })
  const ping = buildPing(parts)
  return {
    async lookOnce() {
      await notices?.watchOnce()
      await canary?.canaryOnce()
      await ping?.pingOnce()
    },
  }
}

function buildPing(
  parts: Shared & { book: Book; isActive: () => boolean },
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

/** Into the book that leads, whichever account the trouble is about. */
function waysIn(book: Book, { sinks, modes }: DeliveryParts): ToldOptions {
  return {
    book,
    destinationsOf: (sink) => (sinks.get(sink)?.destinations ?? []).map(({ id }) => id),
    batchWaitMs: (sink) => modes[sink] || undefined,
  }
}

function buildTeller(shared: Shared, { drains }: DeliveryParts, ways: ToldOptions): Tell {
  return createTeller({
    ...ways,
    async queue(account, made) {
      for (const { k } of made) shared.metrics.itemsCreatedTotal.inc({ sink: k })
      await drains.tellMade(account, made)
    },
    generation: () => shared.generation.number,
    clock: shared.clock,
  })
}

function snapshotOf(
  { config, books }: Shared,
  state: State,
  expected: Service['expected'],
): Snapshot {
  const configured = state.accounts.filter(({ isConfigured }) => isConfigured)
  const byName = new Map(configured.map((account) => [account.name, account]))
  const open = new Set(books.map(({ account }) => account))
  return {
    feeds: config.feeds.map((feed) => feedHealth(feed, byName.get(feed.account), expected)),
    accounts: configured.map(({ name, isRefused }) => ({ name, isRefused })),
    left: state.accounts
      .filter(({ name, isConfigured }) => !isConfigured && open.has(name))
      .map(({ name, pending }) => ({ name, pending })),
    sinks: config.sinks.flatMap(({ name }) => sinkHealth(name, state)),
    redis: {
      problems: config.redis.allowUnsafe ? [] : state.redis.problems,
      isFull: state.redis.isFull,
    },
    unaccounted: state.accounts.flatMap(({ accounting: { feeds, sinks } }) => [
      ...differing(feeds).map(([name, count]) => `feed ${name}: ${count}`),
      ...differing(sinks).map(([name, count]) => `sink ${name}: ${count}`),
    ]),
  }
}

function sinkHealth(name: string, state: State): Snapshot['sinks'] {
  const circuit = state.circuits.get(name)
  const deadLetters = state.sinks.get(name)?.deadLetters ?? 0
  const digest = state.digests.get(name)
  const due = digest && { digestDueMs: digest.nextDueMs }
  if (!circuit) return []
  const { state: word, paused, disabled } = circuit
  return [{ name, circuit: word, paused, disabled, deadLetters, ...due }]
}

function feedHealth(
  feed: Shared['config']['feeds'][number],
  account: AccountState | undefined,
  expected: Service['expected'],
): Snapshot['feeds'][number] {
  const { name } = feed
  const { lagObjectiveMs } = expected(name)
  const state = account?.feeds.get(name)
  const reserve = quotaReserveOf(feed, state?.walk)
  const quarantine = account?.quarantine[name]
  const remaining = reserve > 0 ? account?.searchesRemaining : undefined
  return {
    name,
    account: feed.account,
    lagObjectiveMs,
    isPaused: state?.paused !== undefined,
    lastSuccessMs: state?.lastSuccessMs,
    lastCaughtUpMs: state?.lastCaughtUpMs,
    ...(state?.unreadable && { unreadable: state.unreadable }),
    ...(quarantine && quarantine.fresh > 0 && { quarantined: quarantine }),
    ...(state?.refused && { refused: state.refused }),
    ...(remaining !== undefined && { quota: { remaining, reserve } }),
  }
}

function differing(accounts: Record<string, { unaccounted: number }>): [string, number][] {
  return Object.entries(accounts).flatMap(([name, { unaccounted }]): [string, number][] =>
    unaccounted === 0 ? [] : [[name, unaccounted]],
  )
}
