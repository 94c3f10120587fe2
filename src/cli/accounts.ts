/** `accounts`: every account that ever took something in, also those that left the configuration. */
import { Command } from 'commander'
import { findNew, findRenames, renameInWords, type Rename } from '../app/build-accounts.ts'
import { leftBooks } from '../app/shared.ts'
import type { Config } from '../config/config.ts'
import { readAccounts, readHoldings, type AccountEntry, type Holdings } from '../ledger/accounts.ts'
import { reopenBook } from '../ledger/book.ts'
import { discardAccount, type DiscardOptions } from './accounts-discard.ts'
import { loadConfigFile } from './config-file.ts'
import { addCommonOptions, print, type CommonOptions, type Context } from './context.ts'
import { lookFirst, withLedger, type OpenLedger } from './open-ledger.ts'
import { addByOption } from './operator.ts'
import { pendingInWords } from './sinks-list.ts'
import { counted, harmless, isoTime, timeInWords } from './words.ts'

export function accountsCommand(context: Context): Command {
  const list = addCommonOptions(new Command('list'))
    .description('every account of the ledger: configured or not, and what waits in it')
    .action((options: CommonOptions) => listAccounts(context, options))
  const discard = addByOption(addCommonOptions(new Command('discard')))
    .description('give up what an account that left took in, and remove its ledger')
    .argument('<account>', 'name of the account; it must not be configured any more')
    .option('--yes', 'do not ask')
    .action((name: string, options: DiscardOptions) => discardAccount(context, name, options))
  return new Command('accounts').addCommand(list).addCommand(discard)
}

interface AccountReport {
  entry: AccountEntry
  isConfigured: boolean
  /** undefined: nothing of it is kept. */
  holdings: Holdings | undefined
  /** Accounts that left and that it looks like. */
  renames: Rename[]
}

async function listAccounts(context: Context, options: CommonOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  if (!(await withLedger(config, (ledger) => lookFirst(context, ledger)))) {
    context.terminal.complain(
      'a running daemon still looks for accounts that left before accounts were registered; look again in a few minutes',
    )
  }
  const reports = await withLedger(config, (ledger) => reportAccounts(ledger, config))
  print(context, options, {
    json: reports.map((report) => accountJson(report, config)),
    lines: () => reports.flatMap((report) => accountLines(context, report)),
  })
}

async function reportAccounts(ledger: OpenLedger, config: Config): Promise<AccountReport[]> {
  const { redis, keys } = ledger
  const entries = await readAccounts(ledger)
  const renames = await findAllRenames(ledger, config)
  const names = config.accounts.map(({ name }) => name)
  const reports: AccountReport[] = []
  for (const entry of entries) {
    const { name: account } = entry
    const book = await reopenBook({ redis, keys, account, config: config.ledger })
    reports.push({
      entry,
      isConfigured: names.includes(account),
      holdings: book && (await readHoldings(book)),
      renames: renames.filter((rename) => rename.account === account),
    })
  }
  return reports.toSorted((a, b) => Number(b.isConfigured) - Number(a.isConfigured))
}

async function findAllRenames(ledger: OpenLedger, config: Config): Promise<Rename[]> {
  const newAccounts = await findNew({ ...ledger, config })
  const found: Rename[] = []
  for (const left of leftBooks({ ...ledger, config })) {
    found.push(...(await findRenames({ ...ledger, config }, newAccounts, left)))
  }
  return found
}

function accountJson(
  { entry, isConfigured, holdings, renames }: AccountReport,
  config: Config,
): Record<string, unknown> {
  const { name, sinceMs, configuredMs, discarding } = entry
  return {
    account: name,
    is_configured: isConfigured,
    since: isoTime(sinceMs),
    last_configured: isoTime(configuredMs),
    discarding: discarding ? { since: isoTime(discarding.atMs), by: discarding.by } : null,
    pending: holdings?.pending ?? {},
    dead_letters: holdings?.deadLetters ?? 0,
    quarantined: holdings?.quarantined ?? 0,
    feeds: feedsOf(name, holdings, config),
    looks_renamed_from: renames.map(({ left, why }) => ({ account: left, why })),
  }
}

function feedsOf(
  account: string,
  holdings: Holdings | undefined,
  { feeds }: Config,
): { feed: string; is_configured: boolean }[] {
  const own = feeds.filter((feed) => feed.account === account).map(({ name }) => name)
  const all = new Set([...own, ...(holdings?.feeds ?? [])])
  return [...all].map((feed) => ({ feed, is_configured: own.includes(feed) }))
}

function accountLines({ terminal }: Context, report: AccountReport): string[] {
  const { entry, isConfigured, holdings, renames } = report
  const name = terminal.paint('bold', entry.name)
  const state = isConfigured
    ? terminal.paint('green', 'configured')
    : terminal.paint('yellow', leftInWords(entry))
  const { pending = {}, deadLetters = 0, quarantined = 0, feeds = [] } = holdings ?? {}
  const counts = `${counted(deadLetters, 'dead letter')}, ${quarantined} quarantined`
  return [
    `${name}: ${state}`,
    `  ${pendingInWords(pending)}; ${counts}`,
    `  feeds that it read: ${feeds.map((feed) => harmless(feed, 60)).join(', ') || 'none yet'}`,
    ...renames.flatMap((rename) => renameLines(terminal, rename)),
    ...(isConfigured ? [] : remedyLines(entry, report)),
  ]
}

function leftInWords({ configuredMs, discarding }: AccountEntry): string {
  if (discarding) {
    return `being discarded since ${timeInWords(discarding.atMs)} by ${harmless(discarding.by, 100)}`
  }
  const last = configuredMs === undefined ? '' : `, last seen so ${timeInWords(configuredMs)}`
  return `not configured${last}`
}

function renameLines(terminal: Context['terminal'], rename: Rename): string[] {
  const { said, remedy } = renameInWords(rename)
  return [`  ${terminal.paint('yellow', 'warning')} ${said}`, `    ${remedy}`]
}

function remedyLines({ name, discarding }: AccountEntry, { holdings }: AccountReport): string[] {
  const command = `"tocsin accounts discard ${name}"`
  if (discarding) return [`  ${command} again ends it`]
  const isWaiting = (holdings?.pendingTotal ?? 0) > 0
  return [
    ...(isWaiting ? ['  a running daemon still delivers what it took in'] : []),
    `  ${command} gives up what is left and removes its ledger`,
  ]
}
