/**
 * The `accounts` commands: every account that ever took in an event, also one that left the
 * configuration.
 */
import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { accountColumns } from '../../operator/account-report.ts'
import {
  type AccountDiscard,
  type DiscardCounts,
  settleAccount,
} from '../../daemon/for-commands/discard-account.ts'
import { redisNow } from '../../redis/scripts.ts'
import { claimLead, hasReplicas, openExistingLedger } from '../../store/account-ledger.ts'
import {
  type AccountEntry,
  type Holdings,
  noteDiscarding,
  readAccounts,
  readHoldings,
  removeLedger,
} from '../../store/accounts.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
  requireConfirmation,
} from '../context.ts'
import {
  addByOption,
  type ByOption,
  type OpenStore,
  operatorName,
  recordCommand,
  withStore,
} from '../open/open-store.ts'
import { addListOptions, type ListOptions, printList, readListed } from '../list.ts'
import { CommandError, findNamed, pluralize } from '../terminal.ts'

export function accountsCommand(context: Context): Command {
  const list = addListOptions(addCommonOptions(new Command('list')), 'account')
    .description('list accounts of configuration and ledger with what waits, the worst first')
    .action((name: string | undefined, options: ListOptions) =>
      listAccounts(context, name, options),
    )
  const discard = addByOption(addCommonOptions(new Command('discard')))
    .description('give up what an account that left took in, and remove its ledger')
    .argument('<account>', 'name of the account; it must not be configured any more')
    .option('--yes', 'do not ask')
    .action((name: string, options: DiscardOptions) => discardAccount(context, name, options))
  return new Command('accounts').addCommand(list).addCommand(discard)
}

async function listAccounts(
  context: Context,
  name: string | undefined,
  options: ListOptions,
): Promise<void> {
  const { config, accounts, problems } = await readListed(context, options)
  printList(context, options, name, {
    thing: 'account',
    rows: accounts,
    nameOf: (account) => account.name,
    columns: accountColumns(config),
    problems,
  })
}

/**
 * `accounts discard`: settles what an account that left still has, then removes its ledger. Each
 * item is settled in one script and keys are removed in small steps, so after an interruption the
 * same command continues.
 */

export interface DiscardOptions extends CommonOptions, ByOption {
  yes?: true
}

interface DiscardRun extends AccountDiscard {
  context: Context
}

/**
 * A running daemon registers its accounts more often than this; a later registration counts as
 * current.
 */
const recentlyConfiguredMs = 20_000

/** Longest time that a daemon keeps using an account ledger after it was told to close it. */
const closeWaitMs = 12_000

export async function discardAccount(
  context: Context,
  account: string,
  options: DiscardOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const counts = await withStore(config, async (store) => {
    await requireLeft(store, config, account)
    const { redis, keys } = store
    const ledger = await openExistingLedger({ redis, keys, account, config: config.ledger })
    const holdings = ledger && (await readHoldings(ledger))
    if (!options.yes) await requireConfirmation(context, questionLines(account, holdings))
    const by = operatorName(context, options) ?? 'an operator'
    const onProgress = (items: number): void => context.terminal.progress(`${items} given up`)
    const discarding = { context, store, account, ledger, by, onProgress }
    const about = { act: `/accounts/${account}/discard`, account, by: options.by }
    return recordCommand(context, store, about, async () => {
      await handOverLead(store, config, account)
      return discardLedger(discarding, holdings?.quarantined ?? 0)
    })
  })
  const { items, deadLetters, quarantined, busy } = counts
  print(context, options, {
    json: {
      account,
      removed: busy === 0,
      discarded: items,
      dead_letters: deadLetters,
      quarantined,
      on_their_way: busy,
    },
    lines: () => discardLines(account, counts),
  })
  if (busy > 0) context.exitCode = 1
}

/**
 * Throws CommandError for an account that is unknown, or configured here or in a running daemon.
 */
async function requireLeft(
  store: OpenStore,
  config: Config,
  account: string,
): Promise<AccountEntry> {
  if (config.accounts.some(({ name }) => name === account)) {
    const remedy = `take accounts.${account} and its feeds out of the file and reload first`
    throw new CommandError('mistake', `account "${account}" is configured; ${remedy}`)
  }
  const names = config.accounts.map(({ name }) => name)
  const left = (await readAccounts(store)).filter(({ name }) => !names.includes(name))
  const entry = findNamed(left, account, 'account without configuration')
  const agoMs = (await redisNow(store)) - (entry.configuredMs ?? 0)
  if (agoMs >= recentlyConfiguredMs) return entry
  throw new CommandError(
    'refused',
    `a running daemon had account "${account}" in its configuration ${Math.floor(agoMs / 1000)} s ago; reload it without the account, and ask again in half a minute`,
  )
}

function questionLines(account: string, holdings: Holdings | undefined): string[] {
  const { pendingTotal = 0, deadLetters = 0, quarantined = 0 } = holdings ?? {}
  const all = amounts(pendingTotal, deadLetters, quarantined)
  return [
    `${all} of ${account} will be given up and never sent.`,
    'Its ledger is removed: histories, cursors, and what tells that an event is known.',
  ]
}

function amounts(items: number, deadLetters: number, quarantined: number): string {
  return `${pluralize(items, 'item')}, ${pluralize(deadLetters, 'dead letter')} and ${pluralize(quarantined, 'quarantined item')}`
}

/**
 * Hands the digest windows to a configured account, in case no daemon has run since the account
 * left.
 */
async function handOverLead(store: OpenStore, config: Config, account: string): Promise<void> {
  if ((await store.redis.get(store.keys.shared('lead'))) !== account) return
  const names = config.accounts.map(({ name }) => name)
  await claimLead(
    store,
    store.ledgers.filter((ledger) => names.includes(ledger.account)),
  )
}

async function discardLedger(discarding: DiscardRun, quarantined: number): Promise<DiscardCounts> {
  const { context, store, account, by } = discarding
  const { terminal, clock, stop } = context
  const counts = { items: 0, deadLetters: 0, quarantined, busy: 0 }
  await settleAccount(discarding, counts)
  terminal.progress('')
  if (counts.busy > 0) return { ...counts, quarantined: 0 }
  await noteDiscarding(store, account, by)
  if (await hasReplicas(store.redis, store.keys)) {
    terminal.progress('waiting for running daemons to close its ledger')
    await clock.sleep(closeWaitMs, stop)
    stop.throwIfAborted()
    await settleAccount(discarding, counts) // what somebody replayed meanwhile
    if (counts.busy > 0) return { ...counts, quarantined: 0 }
  }
  terminal.progress(`removing the ledger of ${account}`)
  const isRemoved = await removeLedger(store, account, (ms) => clock.sleep(ms, stop))
  terminal.progress('')
  if (isRemoved) return counts
  throw new CommandError(
    'refused',
    `account "${account}" is configured again: what was not removed yet stays`,
  )
}

function discardLines(
  account: string,
  { items, deadLetters, quarantined, busy }: DiscardCounts,
): string[] {
  if (busy === 0) {
    const all = amounts(items, deadLetters, quarantined)
    return [`discarded ${all} of ${account}; its ledger is removed`]
  }
  return [
    `discarded ${pluralize(items, 'item')} of ${account}; left ${pluralize(busy, 'item')} in messages on their way just now`,
    `nothing is removed yet: "tocsin accounts discard ${account}" again in a minute`,
  ]
}
