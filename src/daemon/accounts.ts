/**
 * Keeps the ledgers open of the configuration's accounts and of every account that left it, so that
 * items already taken in are still delivered. Logs which accounts left and what waits in them, and
 * whether others are new beside them: they may have been renamed.
 */
import type { Config } from '../config/config.ts'
import { type AccountLedger, claimLead, openLedgers } from '../store/account-ledger.ts'
import {
  type AccountEntry,
  noteConfigured,
  openLeftLedgers,
  readAccounts,
  readHoldings,
  removeLedger,
} from '../store/accounts.ts'
import { standingOf, type EngineContext } from './context.ts'

export interface AccountWatch {
  /**
   * Opens ledgers that were registered, closes discarded ones. Throws what Redis throws.
   */
  watchOnce(): Promise<void>
}

/**
 * Opens all ledgers; waits while Redis is unreachable. Before anything is polled it logs which
 * accounts left and which are new.
 */
export async function openAccountLedgers(context: EngineContext): Promise<void> {
  const { config, redis, keys, ledgers, timings } = context
  const { detailWaitMs } = timings
  await endRemovals(context)
  const options = { redis, keys, config: config.ledger, detailWaitMs }
  ledgers.push(...(await openLedgers(options, accountNames(config))))
  await claimLead(context, ledgers) // the lead is an account of the configuration
  const fresh = await findNewAccounts(context)
  await noteAccounts(context)
  await openLeftAccounts(context)
  const left = leftLedgers(context).map(({ account }) => account)
  if (fresh.length === 0 || left.length === 0) return
  context.logger.warn({ accounts: fresh, left, remedy: renameRemedy }, renameWarning)
}

/**
 * A full Redis refuses the notes; waiting items are delivered all the same, and the watch notes
 * them later.
 */
async function noteAccounts(context: EngineContext): Promise<void> {
  const { config, logger } = context
  try {
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

function leftLedgers({ ledgers, config }: EngineContext): AccountLedger[] {
  const configured = new Set(accountNames(config))
  return ledgers.filter(({ account }) => !configured.has(account))
}

function accountNames({ accounts }: Config): string[] {
  return accounts.map(({ name }) => name)
}

/** The accounts of the configuration that no daemon had before. */
async function findNewAccounts(context: EngineContext): Promise<string[]> {
  const entries = await readAccounts(context)
  const before = entries.filter(({ configuredMs }) => configuredMs !== undefined)
  const known = new Set(before.map(({ name }) => name))
  return accountNames(context.config).filter((name) => !known.has(name))
}

const renameWarning =
  'accounts are new and others have left: a renamed account starts anew and sends again what it has sent'
const renameRemedy = 'keep the name of an account that is the same; if they are others, go on'

export function buildAccountWatch(context: EngineContext): AccountWatch {
  const { redis, keys, ledgers, config } = context

  function closeDiscarded(entries: readonly AccountEntry[]): void {
    for (const { account } of leftLedgers(context)) {
      const entry = entries.find(({ name }) => name === account)
      if (entry !== undefined && !entry.discarding) continue
      const place = ledgers.findIndex((ledger) => ledger.account === account)
      ledgers.splice(place, 1)
      context.foreignAccounts.delete(account)
      context.logger.info({ account }, 'the account is discarded: its ledger is closed')
    }
  }

  return {
    async watchOnce() {
      await noteConfigured(context, accountNames(config))
      const entries = await readAccounts({ redis, keys })
      closeDiscarded(entries)
      await openLeftAccounts(context, entries)
      await takeForeignAccounts(context)
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
}
