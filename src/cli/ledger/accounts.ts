/**
 * The `accounts` commands: every account that ever took in an event, also one that left the
 * configuration.
 */
import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { redisNow } from '../../redis/scripts.ts'
import {
  type AccountLedger,
  claimLead,
  hasReplicas,
  openExistingLedger,
} from '../../store/account-ledger.ts'
import {
  type AccountEntry,
  keepAccount,
  noteDiscarding,
  readAccounts,
  readHoldings,
  removeLedger,
} from '../../store/accounts.ts'
import { scanPendingRecords } from '../../store/records.ts'
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
import { addListOptions, type ListOptions, listThing } from '../list.ts'
import { CommandError, findNamed, pluralize } from '../terminal.ts'

export function accountsCommand(context: Context): Command {
  const list = addListOptions(addCommonOptions(new Command('list')), 'account')
    .description('list accounts of configuration and ledger with what waits, the worst first')
    .action((name: string | undefined, options: ListOptions) =>
      listThing(context, options, { thing: 'account', name }),
    )
  const discard = addByOption(addCommonOptions(new Command('discard')))
    .description('remove the ledger of an account that left and for which nothing waits')
    .argument('<account>', 'name of the account; it must not be configured any more')
    .option('--yes', 'do not ask')
    .action((name: string, options: DiscardOptions) => discardAccount(context, name, options))
  return new Command('accounts').addCommand(list).addCommand(discard)
}

/**
 * `accounts discard` removes the ledger of an account that left. Keys go in small steps; after an
 * interruption the same command continues.
 */

export interface DiscardOptions extends CommonOptions, ByOption {
  yes?: true
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
    const { discarding } = await requireLeft(store, config, account)
    const { redis, keys } = store
    const ledger = await openExistingLedger({ redis, keys, account, config: config.ledger })
    const { deadLetters, quarantined } = ledger
      ? await readHoldings(ledger)
      : { deadLetters: 0, quarantined: 0 }
    if (ledger && !discarding?.isRemoving) await requireSettled(store, ledger)
    const question = questionLines(account, { deadLetters, quarantined })
    if (!options.yes) await requireConfirmation(context, question)
    const by = operatorName(context, options) ?? 'an operator'
    const about = { act: `/accounts/${account}/discard`, account, by: options.by }
    return recordCommand(context, store, about, async () => {
      await handOverLead(store, config, account)
      await noteDiscarding(store, account, by)
      if (ledger && !discarding?.isRemoving) await waitForDaemons(context, store, ledger)
      await removeAll(context, store, account)
      return { deadLetters, quarantined }
    })
  })
  print(context, options, {
    json: { account, dead_letters: counts.deadLetters, quarantined: counts.quarantined },
    lines: () => [`removed the ledger of ${account} with ${amounts(counts)}`],
  })
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
    `a running daemon had account "${account}" in its configuration ${Math.floor(agoMs / 1000)} s ago; reload it without the account, and ask again after 30 s`,
  )
}

/** Throws CommandError while items wait, of the account or in a message that its ledger holds. */
async function requireSettled(store: OpenStore, ledger: AccountLedger): Promise<void> {
  const { account } = ledger
  const { pendingTotal } = await readHoldings(ledger)
  if (pendingTotal > 0) {
    const select = `--account ${account} --state pending`
    throw new CommandError(
      'refused',
      `${pluralize(pendingTotal, 'item')} of ${account} still wait; first: tocsin items discard ${select}, or: tocsin items move ${select} --to <sink>`,
    )
  }
  const others = store.ledgers.filter((one) => one.account !== account)
  if (await lacksHead(others)) {
    throw new CommandError(
      'refused',
      `a message with items of other accounts is on its way in the ledger of ${account}; try again in a minute, while a daemon runs`,
    )
  }
}

/** Whether an item of these ledgers is in a frozen message that none of them holds. */
async function lacksHead(ledgers: readonly AccountLedger[]): Promise<boolean> {
  const found = new Set<string>()
  for (const ledger of ledgers) {
    for await (const { items } of scanPendingRecords(ledger)) {
      const frozen = items.filter(({ state }) => state === 'batch')
      frozen.forEach(({ messageId = '' }) => found.add(messageId))
    }
  }
  for (const messageId of found) {
    const heads = ledgers.map((one) => one.redis.exists(one.key('batch', messageId)))
    if (!(await Promise.all(heads)).includes(1)) return true
  }
  return false
}

interface Losses {
  deadLetters: number
  quarantined: number
}

function questionLines(account: string, losses: Losses): string[] {
  return [
    `${amounts(losses)} of ${account} will be gone.`,
    'Its ledger is removed: histories, cursors, and what tells that an event is known.',
  ]
}

function amounts({ deadLetters, quarantined }: Losses): string {
  return `${pluralize(deadLetters, 'dead letter')} and ${pluralize(quarantined, 'quarantined item')}`
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

/** Throws CommandError, and keeps the account, if items wait again that somebody sent meanwhile. */
async function waitForDaemons(
  { terminal, clock, stop }: Context,
  store: OpenStore,
  ledger: AccountLedger,
): Promise<void> {
  if (!(await hasReplicas(store.redis, store.keys))) return
  terminal.progress('waiting for running daemons to close its ledger')
  await clock.sleep(closeWaitMs, stop)
  stop.throwIfAborted()
  try {
    await requireSettled(store, ledger)
  } catch (error) {
    await keepAccount(store, ledger.account)
    throw error
  }
}

async function removeAll(
  { terminal, clock, stop }: Context,
  store: OpenStore,
  account: string,
): Promise<void> {
  terminal.progress(`removing the ledger of ${account}`)
  const isRemoved = await removeLedger(store, account, (ms) => clock.sleep(ms, stop))
  terminal.progress('')
  if (isRemoved) return
  throw new CommandError(
    'refused',
    `account "${account}" is configured again: what was not removed yet stays`,
  )
}
