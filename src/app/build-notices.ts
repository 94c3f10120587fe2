import { readDigestState } from '../digest/digest-state.ts'
import { quotaReserveOf } from '../feeds/quota-reserve.ts'
import { createCanaryPing, type CanaryPing } from '../notices/canary-ping.ts'
import { createCanary } from '../notices/canary.ts'
import type { Snapshot } from '../notices/conditions.ts'
import { createNotices } from '../notices/notices.ts'
import { createTeller, type Tell } from '../notices/teller.ts'
import { createTold, type ToldOptions } from '../notices/told.ts'
import { orderWays } from '../notices/ways.ts'
import type { Book } from '../ledger/book.ts'
import { countPending } from '../ledger/accounts.ts'
import { readAccounting } from '../ledger/accounting.ts'
import { countDeadLetters } from '../ledger/dead-letters.ts'
import { peekFeed } from '../ledger/feed-state.ts'
import { countQuarantined, type QuarantineCount } from '../ledger/quarantine.ts'
import { hasRoom, inspectSafety } from '../redis/safety.ts'
import { readQuota } from '../service/quota.ts'
import { ServiceError } from '../service/service-error.ts'
import { sendPing } from '../sinks/webhook/ping.ts'
import type { DeliveryParts } from './build-delivery.ts'
import type { Service } from './build-service.ts'
import { findBook, leftBooks, type Shared } from './shared.ts'

export interface NoticeParts {
  /** Tells operators what is to be told, and sends the test event that is due. */
  lookOnce(): Promise<void>
}

/** undefined where the configuration asks for neither notices nor a canary. */
export function buildNotices(
  shared: Shared,
  service: Service,
  delivery: DeliveryParts,
): NoticeParts | undefined {
  const { config, generation } = shared
  if (config.notices === undefined && config.canary === undefined) return undefined
  const [book] = shared.books
  if (!book) throw new Error('no book is open')
  const ways = waysIn(book, delivery)
  const tell = buildTeller(shared, delivery, ways)
  const parts = { ...shared, book, tell, isActive: () => generation.isActive }
  const readSnapshot = (): Promise<Snapshot> => takeSnapshot(shared, service, delivery)
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

function buildTeller(shared: Shared, { queue }: DeliveryParts, ways: ToldOptions): Tell {
  return createTeller({
    ...ways,
    async queue(account, made) {
      for (const { k } of made) shared.metrics.itemsCreatedTotal.inc({ sink: k })
      await queue.addMade(account, made)
    },
    generation: () => shared.generation.number,
    clock: shared.clock,
  })
}

async function takeSnapshot(
  shared: Shared,
  service: Service,
  { circuit, collecting }: DeliveryParts,
): Promise<Snapshot> {
  const { config, redis, books, clock } = shared
  const nowMs = clock.now()
  const quarantines = await readQuarantines(shared, nowMs)
  return {
    feeds: await Promise.all(
      config.feeds.map((feed) => feedHealth(shared, feed, { nowMs, quarantines })),
    ),
    accounts: await Promise.all(
      config.accounts.map(async ({ name }) => ({
        name,
        isRefused: await isRefused(service, name),
      })),
    ),
    left: await Promise.all(
      leftBooks(shared).map(async (book) => {
        return { name: book.account, pending: await countPending(book) }
      }),
    ),
    sinks: await Promise.all(
      config.sinks.map(async ({ name }) => {
        const { state, paused, disabled } = await circuit.read(name, nowMs)
        const dead = await Promise.all(books.map((book) => countDeadLetters(book, name)))
        const deadLetters = dead.reduce((sum, count) => sum + count, 0)
        const collects = collecting.sinks.get(name)
        const digest = collects && (await readDigestState(shared, collects, nowMs))
        const due = digest && { digestDueMs: digest.nextDueMs }
        return { name, circuit: state, paused, disabled, deadLetters, ...due }
      }),
    ),
    redis: {
      problems: config.redis.allowUnsafe ? [] : (await inspectSafety(redis)).problems,
      isFull: !(await hasRoom(redis)),
    },
    unaccounted: await findUnaccounted(shared),
  }
}

/** An item that was set aside is trouble for so long. */
const freshMs = 86_400_000

/** By account, then by feed. */
type Quarantines = ReadonlyMap<string, Record<string, QuarantineCount>>

async function readQuarantines({ books }: Shared, nowMs: number): Promise<Quarantines> {
  const read = books.map(
    async (book) => [book.account, await countQuarantined(book, nowMs - freshMs)] as const,
  )
  return new Map(await Promise.all(read))
}

async function feedHealth(
  shared: Shared,
  feed: Shared['config']['feeds'][number],
  { nowMs, quarantines }: { nowMs: number; quarantines: Quarantines },
): Promise<Snapshot['feeds'][number]> {
  const { name, account, lagObjectiveMs } = feed
  const book = findBook(shared, account)
  const state = book && (await peekFeed(book, name, nowMs))
  const reserve = quotaReserveOf(feed, state?.walk)
  const quarantine = quarantines.get(account)?.[name]
  const left = reserve > 0 ? await readQuota(shared.redis, shared.keys, account) : undefined
  return {
    name,
    account,
    lagObjectiveMs,
    isPaused: state?.paused !== undefined,
    lastSuccessMs: state?.lastSuccessMs,
    lastCaughtUpMs: state?.lastCaughtUpMs,
    ...(state?.unreadable && { unreadable: state.unreadable }),
    ...(quarantine && quarantine.fresh > 0 && { quarantined: quarantine }),
    ...(state?.refused && { refused: state.refused }),
    ...(left && { quota: { remaining: left.remaining, reserve } }),
  }
}

/** A key that cannot be read is as good as a refused one. */
async function isRefused(service: Service, account: string): Promise<boolean> {
  try {
    return (await service.client(account).pause()) !== null
  } catch (error) {
    if (error instanceof ServiceError) return true
    throw error
  }
}

async function findUnaccounted({ books }: Shared): Promise<string[]> {
  const accountings = await Promise.all(books.map(readAccounting))
  return accountings.flatMap(({ feeds, sinks }) => [
    ...differing(feeds).map(([name, count]) => `feed ${name}: ${count}`),
    ...differing(sinks).map(([name, count]) => `sink ${name}: ${count}`),
  ])
}

function differing(accounts: Record<string, { unaccounted: number }>): [string, number][] {
  return Object.entries(accounts).flatMap(([name, { unaccounted }]): [string, number][] =>
    unaccounted === 0 ? [] : [[name, unaccounted]],
  )
}
