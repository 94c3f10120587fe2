/**
 * Keeps the ledgers open of the configuration's accounts and of every account that left it, so that
 * items already taken in are still delivered. Logs which accounts left and what waits in them, and
 * which new account looks like a renamed one.
 */
import type { Config } from '../config/config.ts'
import type { Finding } from '../lib/config-fields.ts'
import { type AccountLedger, claimLead, openLedgers } from '../store/account-ledger.ts'
import {
  type AccountEntry,
  type AccountFacts,
  countPending,
  upstreamFeedNames,
  findRenameReason,
  noteConfigured,
  noteFacts,
  openLeftLedgers,
  readAccounting,
  readAccounts,
  readHoldings,
  removeLedger,
} from '../store/accounts.ts'
import { UpstreamError } from '../upstream/error.ts'
import { createAccountKey } from '../upstream/tokens.ts'
import { leftLedgers, standingOf, type EngineContext } from './context.ts'

export interface AccountWatch {
  /**
   * Opens ledgers that were registered, closes discarded ones, logs what was settled. Throws what
   * Redis throws.
   */
  watchOnce(): Promise<void>
}

/**
 * Opens all ledgers; waits while Redis is unreachable. Before anything is polled it logs which
 * accounts left and which look renamed.
 */
export async function openAccountLedgers(context: EngineContext): Promise<void> {
  const { config, redis, keys, ledgers, newAccounts, timings } = context
  const { detailWaitMs } = timings
  await endRemovals(context)
  const options = { redis, keys, config: config.ledger, detailWaitMs }
  ledgers.push(...(await openLedgers(options, accountNames(config))))
  await claimLead(context, ledgers) // the lead is an account of the configuration
  newAccounts.push(...(await findNewAccounts(context)))
  await noteAccounts(context)
  await openLeftAccounts(context)
}

/**
 * A full Redis refuses the notes; waiting items are delivered all the same, and the watch notes
 * them later.
 */
async function noteAccounts(context: EngineContext): Promise<void> {
  const { config, logger } = context
  try {
    await noteFacts(context, accountFacts(config))
    await noteConfigured(context, accountNames(config))
  } catch (error) {
    logger.warn({ err: error }, 'what the configuration says of its accounts was not noted')
  }
}

/**
 * Completes interrupted removals: the rest of such a ledger is no longer consistent, so the account
 * starts anew.
 */
async function endRemovals(context: EngineContext): Promise<void> {
  for (const { name, discarding } of await readAccounts(context)) {
    if (!discarding?.isRemoving || !accountNames(context.config).includes(name)) continue
    await removeLedger(context, name, (ms) => context.clock.sleep(ms))
    const message =
      'the account was being discarded: the rest of its ledger is removed, and it starts anew'
    context.logger.warn({ account: name, by: discarding.by }, message)
  }
}

function accountNames({ accounts }: Config): string[] {
  return accounts.map(({ name }) => name)
}

/**
 * Returns the accounts of the configuration that no daemon had before and that have read nothing
 * yet.
 */
export async function findNewAccounts({
  config,
  redis,
  keys,
  ledgers,
}: Pick<EngineContext, 'config' | 'redis' | 'keys' | 'ledgers'>): Promise<string[]> {
  const entries = await readAccounts({ redis, keys })
  const configuredBefore = entries.filter(({ configuredMs }) => configuredMs !== undefined)
  const known = new Set(configuredBefore.map(({ name }) => name))
  const configured = new Set(accountNames(config))
  const fresh = ledgers.filter(({ account }) => configured.has(account) && !known.has(account))
  const names: string[] = []
  for (let at = 0; at < fresh.length; at += accountsAtOnce) {
    const batch = fresh.slice(at, at + accountsAtOnce)
    const accountings = await Promise.all(batch.map(readAccounting))
    names.push(
      ...batch
        .filter((_ledger, i) => upstreamFeedNames(accountings[i]?.feeds ?? {}).length === 0)
        .map(({ account }) => account),
    )
  }
  return names
}

const accountsAtOnce = 50

/** By account: the facts by which a renamed account is recognised. */
function accountFacts({ accounts, feeds }: Config): Map<string, AccountFacts> {
  const byAccount = Map.groupBy(feeds, ({ account }) => account)
  return new Map(
    accounts.map((account) => {
      const own = (byAccount.get(account.name) ?? []).map(({ name }) => name)
      return [account.name, { baseUrl: account.baseUrl, ...readKeyFact(account), feeds: own }]
    }),
  )
}

function readKeyFact(account: Config['accounts'][number]): Pick<AccountFacts, 'key'> {
  try {
    return { key: createAccountKey(account)().fingerprint }
  } catch (error) {
    if (error instanceof UpstreamError) return {} // the key's file cannot be read just now
    throw error
  }
}

export interface Rename {
  account: string
  left: string
  why: string
}

/** Finds new accounts that look like `left`, an account that is no longer in the configuration. */
export async function findRenames(
  { config, redis, keys }: Pick<EngineContext, 'config' | 'redis' | 'keys'>,
  newAccounts: readonly string[],
  left: AccountLedger,
): Promise<Rename[]> {
  if (newAccounts.length === 0) return []
  const { feeds } = await readHoldings(left)
  if (feeds.length === 0) return []
  const entries = await readAccounts({ redis, keys })
  const facts = entries.find(({ name }) => name === left.account)?.facts
  // of the new ones alone: each key is read, and many may have left
  const accounts = config.accounts.filter(({ name }) => newAccounts.includes(name))
  return [...accountFacts({ ...config, accounts })].flatMap(([account, fresh]): Rename[] => {
    const why = findRenameReason(fresh, { facts, feeds })
    return why === undefined ? [] : [{ account, left: left.account, why }]
  })
}

/** Finds accounts of a new configuration that look like ones that leave with the old one. */
export function renameFindings(before: Config, after: Config): Finding[] {
  const [old, fresh] = [accountFacts(before), accountFacts(after)]
  return [...fresh].flatMap(([account, facts]): Finding[] => {
    if (old.has(account)) return []
    const renames = [...old].flatMap(([left, leftFacts]): Finding[] => {
      const { feeds } = leftFacts
      const why = fresh.has(left) ? undefined : findRenameReason(facts, { facts: leftFacts, feeds })
      if (why === undefined) return []
      const { said, remedy } = formatRename({ account, left, why })
      return [{ path: ['accounts', account], problem: said, remedy }]
    })
    return renames.slice(0, 1)
  })
}

/** Words a rename for the operator, with the remedy. */
export function formatRename({ account, left, why }: Rename): { said: string; remedy: string } {
  return {
    said: `account ${account} is new and ${left} has left, and ${why}: a renamed account starts anew and sends again what ${left} has sent`,
    remedy: `keep the name ${left}; if they are two accounts, go on`,
  }
}

export function buildAccountWatch(context: EngineContext): AccountWatch {
  const { redis, keys, ledgers, config } = context
  const waiting = new Set<string>()

  function closeDiscarded(entries: readonly AccountEntry[]): void {
    for (const { account } of leftLedgers({ ledgers, config })) {
      const entry = entries.find(({ name }) => name === account)
      if (entry !== undefined && !entry.discarding) continue
      const place = ledgers.findIndex((ledger) => ledger.account === account)
      ledgers.splice(place, 1)
      waiting.delete(account)
      context.foreignAccounts.delete(account)
      context.logger.info({ account }, 'the account is discarded: its ledger is closed')
    }
  }

  async function logSettled(): Promise<void> {
    for (const ledger of leftLedgers(context)) {
      const { account } = ledger
      if ((await countPending(ledger)) > 0) waiting.add(account)
      else if (waiting.delete(account)) {
        context.logger.info({ account }, 'all that the account that left took in is settled')
      }
    }
  }

  return {
    async watchOnce() {
      await noteConfigured(context, accountNames(config))
      const entries = await readAccounts({ redis, keys })
      closeDiscarded(entries)
      await openLeftAccounts(context, entries)
      await takeForeignAccounts(context)
      await logSettled()
    },
  }
}

/** Opens the ledgers of accounts that left and are not open yet. */
async function openLeftAccounts(
  context: EngineContext,
  entries?: readonly AccountEntry[],
): Promise<void> {
  const { config, redis, keys, ledgers, foreignAccounts, generation, timings } = context
  const open = ledgers.map(({ account }) => account)
  const { detailWaitMs } = timings
  const options = { redis, keys, config: config.ledger, detailWaitMs }
  const left = await openLeftLedgers(options, open, entries)
  for (const ledger of left) {
    const { account } = ledger
    const entry = entries?.find(({ name }) => name === account)
    // while it runs, only a newer configuration brings accounts; the look finds those of old versions
    const isForeign = entry?.configuredMs !== undefined
    const isEmpty = async (): Promise<boolean> => (await readHoldings(ledger)).feeds.length === 0
    if (entry && !isForeign && (await isEmpty())) continue // of one that starts just now, or a command
    if (isForeign) foreignAccounts.set(account, generation.number)
    ledgers.push(ledger)
    if (!isForeign) await logLeftAccount(context, ledger)
  }
}

/** Where this configuration was started anew since another one brought an account, that has left. */
async function takeForeignAccounts(context: EngineContext): Promise<void> {
  const { ledgers, foreignAccounts, generation } = context
  for (const [account, broughtWith] of foreignAccounts) {
    if (generation.number === broughtWith || !(await standingOf(context).checkNewest())) continue
    foreignAccounts.delete(account)
    const ledger = ledgers.find((one) => one.account === account)
    if (ledger) await logLeftAccount(context, ledger)
  }
}

async function logLeftAccount(context: EngineContext, ledger: AccountLedger): Promise<void> {
  const { logger } = context
  const { account } = ledger
  const { pendingTotal, pending, deadLetters, quarantined } = await readHoldings(ledger)
  if (pendingTotal > 0) {
    const fields = { account, pending: pendingTotal, states: pending, deadLetters, quarantined }
    logger.warn(fields, 'account is not configured any more; what it took in is still delivered')
  } else if (deadLetters + quarantined > 0) {
    logger.info({ account, deadLetters, quarantined }, 'account is not configured any more')
  }
  await logRenames(context, ledger)
}

async function logRenames(context: EngineContext, left: AccountLedger): Promise<void> {
  for (const rename of await findRenames(context, context.newAccounts, left)) {
    const { said, remedy } = formatRename(rename)
    context.logger.warn({ account: rename.account, left: rename.left, remedy }, said)
  }
}
