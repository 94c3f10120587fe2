/**
 * Which books are open: those of the configuration's accounts, and those of every account that left it, so
 * that what they took in goes its way. Says which accounts left and what waits in them, and which new
 * account looks like one that left under another name.
 */
import { randomUUID } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { type Book, claimLead, openBooks as openLedgers } from '../store/account-ledger.ts'
import {
  type AccountEntry,
  type AccountFacts,
  countPending,
  feedsIn,
  likeness,
  noteConfigured,
  noteFacts,
  openLeftBooks,
  readAccounting,
  readAccounts,
  readHoldings,
  removeLedger,
} from '../store/accounts.ts'
import { lookOnce, lookPauseMs } from '../store/record-index.ts'
import { ServiceError } from '../upstream/error.ts'
import { createCredentials } from '../upstream/tokens.ts'
import { leftBooks, type Shared } from './context.ts'

export interface AccountWatch {
  /** Opens what is registered by now, closes what is discarded, says what was settled. Throws what Redis throws. */
  watchOnce(signal: AbortSignal, alive: () => void): Promise<void>
}

/** Waits for a Redis that is away. Before anything is polled it says what left, and what looks renamed. */
export async function openBooks(shared: Shared): Promise<void> {
  const { config, redis, keys, books, newAccounts, timings } = shared
  const { detailWaitMs } = timings
  await endRemovals(shared)
  const options = { redis, keys, config: config.ledger, detailWaitMs }
  books.push(...(await openLedgers(options, namesIn(config))))
  await claimLead(shared, books) // among those of the configuration
  newAccounts.push(...(await findNew(shared)))
  await note(shared)
  await openLeft(shared)
}

/** A full Redis refuses it; what waits is delivered all the same, and the watch notes it later. */
async function note(shared: Shared): Promise<void> {
  const { config, logger } = shared
  try {
    await noteFacts(shared, accountFacts(config))
    await noteConfigured(shared, namesIn(config))
  } catch (error) {
    logger.warn({ err: error }, 'what the configuration says of its accounts was not noted')
  }
}

/** What is left of a ledger whose removal was broken off says nothing that is true: its account starts anew. */
async function endRemovals(shared: Shared): Promise<void> {
  for (const { name, discarding } of await readAccounts(shared)) {
    if (!discarding?.isRemoving || !namesIn(shared.config).includes(name)) continue
    await removeLedger(shared, name, (ms) => shared.clock.sleep(ms))
    const said =
      'the account was being discarded: the rest of its ledger is removed, and it starts anew'
    shared.logger.warn({ account: name, by: discarding.by }, said)
  }
}

function namesIn({ accounts }: Config): string[] {
  return accounts.map(({ name }) => name)
}

/** The accounts of the configuration that no daemon had before, and that have read nothing yet. */
export async function findNew({
  config,
  redis,
  keys,
  books,
}: Pick<Shared, 'config' | 'redis' | 'keys' | 'books'>): Promise<string[]> {
  const entries = await readAccounts({ redis, keys })
  const had = entries.filter(({ configuredMs }) => configuredMs !== undefined)
  const known = new Set(had.map(({ name }) => name))
  const configured = new Set(namesIn(config))
  const fresh = books.filter(({ account }) => configured.has(account) && !known.has(account))
  const names: string[] = []
  for (let at = 0; at < fresh.length; at += askedAtOnce) {
    const some = fresh.slice(at, at + askedAtOnce)
    const counted = await Promise.all(some.map(readAccounting))
    names.push(
      ...some
        .filter((_book, i) => feedsIn(counted[i]?.feeds ?? {}).length === 0)
        .map(({ account }) => account),
    )
  }
  return names
}

const askedAtOnce = 50

/** By account; what tells that another name means the same one. */
function accountFacts({ accounts, feeds }: Config): Map<string, AccountFacts> {
  const byAccount = Map.groupBy(feeds, ({ account }) => account)
  return new Map(
    accounts.map((account) => {
      const own = (byAccount.get(account.name) ?? []).map(({ name }) => name)
      return [account.name, { baseUrl: account.baseUrl, ...keyFact(account), feeds: own }]
    }),
  )
}

function keyFact(account: Config['accounts'][number]): Pick<AccountFacts, 'key'> {
  try {
    return { key: createCredentials(account)().fingerprint }
  } catch (error) {
    if (error instanceof ServiceError) return {} // the key's file cannot be read just now
    throw error
  }
}

export interface Rename {
  account: string
  left: string
  why: string
}

/** New accounts that look like `left`, one that the configuration does not have any more. */
export async function findRenames(
  { config, redis, keys }: Pick<Shared, 'config' | 'redis' | 'keys'>,
  newAccounts: readonly string[],
  left: Book,
): Promise<Rename[]> {
  const { feeds } = await readHoldings(left)
  if (newAccounts.length === 0 || feeds.length === 0) return []
  const entries = await readAccounts({ redis, keys })
  const facts = entries.find(({ name }) => name === left.account)?.facts
  return [...accountFacts(config)].flatMap(([account, fresh]): Rename[] => {
    const why = newAccounts.includes(account) ? likeness(fresh, { facts, feeds }) : undefined
    return why === undefined ? [] : [{ account, left: left.account, why }]
  })
}

/** What is said of one, and what to do. */
export function renameInWords({ account, left, why }: Rename): { said: string; remedy: string } {
  return {
    said: `account ${account} is new and ${left} has left, and ${why}: a renamed account starts anew and sends again what ${left} has sent`,
    remedy: `keep the name ${left}; if they are two accounts, go on`,
  }
}

/** So many steps of the look, then the rest of the watch: it says that this daemon has its accounts. */
const stepsAtOnce = 200

export function buildAccountWatch(shared: Shared): AccountWatch {
  const { redis, keys, books, clock, config, generation } = shared
  const holder = randomUUID()
  let isLooked = false
  const waiting = new Set<string>()

  /** What an older version left: accounts that it did not register, records without an index. */
  async function look(signal: AbortSignal, alive: () => void): Promise<void> {
    if (isLooked || !generation.isActive) return
    let steps = 0
    isLooked = await lookOnce(shared, {
      holder,
      async mayGoOn() {
        alive()
        steps += 1
        await clock.sleep(lookPauseMs, signal)
        return !signal.aborted && steps < stepsAtOnce
      },
    })
  }

  function closeDiscarded(entries: readonly AccountEntry[]): void {
    for (const { account } of leftBooks(shared)) {
      const entry = entries.find(({ name }) => name === account)
      if (entry !== undefined && !entry.discarding) continue
      const place = books.findIndex((book) => book.account === account)
      books.splice(place, 1)
      waiting.delete(account)
      shared.logger.info({ account }, 'the account is discarded: its ledger is closed')
    }
  }

  async function saySettled(): Promise<void> {
    for (const book of leftBooks(shared)) {
      const { account } = book
      if ((await countPending(book)) > 0) waiting.add(account)
      else if (waiting.delete(account)) {
        shared.logger.info({ account }, 'all that the account that left took in is settled')
      }
    }
  }

  return {
    async watchOnce(signal, alive) {
      await noteConfigured(shared, namesIn(config))
      await look(signal, alive)
      const entries = await readAccounts({ redis, keys })
      closeDiscarded(entries)
      await openLeft(shared, entries)
      await saySettled()
    },
  }
}

/** Adds the books of accounts that left and are not open yet. */
async function openLeft(shared: Shared, entries?: readonly AccountEntry[]): Promise<void> {
  const { config, redis, keys, books, timings } = shared
  const open = books.map(({ account }) => account)
  const { detailWaitMs } = timings
  const options = { redis, keys, config: config.ledger, detailWaitMs }
  const left = await openLeftBooks(options, open, entries)
  for (const book of left) {
    books.push(book)
    await sayLeft(shared, book)
  }
}

async function sayLeft(shared: Shared, book: Book): Promise<void> {
  const { logger } = shared
  const { account } = book
  const { pendingTotal, pending, deadLetters, quarantined } = await readHoldings(book)
  if (pendingTotal > 0) {
    const fields = { account, pending: pendingTotal, states: pending, deadLetters, quarantined }
    logger.warn(fields, 'account is not configured any more; what it took in is still delivered')
  } else if (deadLetters + quarantined > 0) {
    logger.info({ account, deadLetters, quarantined }, 'account is not configured any more')
  }
  await warnOfRename(shared, book)
}

async function warnOfRename(shared: Shared, left: Book): Promise<void> {
  for (const rename of await findRenames(shared, shared.newAccounts, left)) {
    const { said, remedy } = renameInWords(rename)
    shared.logger.warn({ account: rename.account, left: rename.left, remedy }, said)
  }
}
