/** `accounts`: every account that ever took something in, also those that left the configuration. */
import { Command } from 'commander'
import { type Message, messagesBeingMade } from '../audit/ledger-check.ts'
import type { Config } from '../config/config.ts'
import { findNew, findRenames, type Rename, renameInWords } from '../daemon/accounts.ts'
import { leftBooks } from '../daemon/context.ts'
import { readAnswered } from '../delivery/claims.ts'
import { sealedMembers, settleMembers } from '../grouping/freeze.ts'
import { redisNow } from '../redis/scripts.ts'
import { type Book, claimLead, hasReplicas, parseRef, reopenBook } from '../store/account-ledger.ts'
import {
  type AccountEntry,
  type Holdings,
  noteDiscarding,
  readAccounts,
  readHoldings,
  removeLedger,
} from '../store/accounts.ts'
import {
  discardDeadLetter,
  discardItem,
  holdOrphan,
  listDeadLetters,
  pendingItems,
  type PlacedItem,
  type Redirected,
  sinksOf,
} from '../store/pending-items.ts'
import {
  addCommonOptions,
  askFirst,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from './context.ts'
import {
  addByOption,
  type ByOption,
  lookFirst,
  needIndex,
  type OpenLedger,
  operatorName,
  withLedger,
} from './open-ledger.ts'
import { pendingInWords } from './sinks-list.ts'
import { CommandError, counted, findNamed, harmless, isoTime, timeInWords } from './terminal.ts'

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

/**
 * `accounts discard`: gives up what an account that left took in, then removes its ledger. Each item in one
 * script and the keys in small steps; whatever cuts it off, the same command again goes on.
 */

export interface DiscardOptions extends CommonOptions, ByOption {
  yes?: true
}

interface Discarding {
  context: Context
  ledger: OpenLedger
  account: string
  /** undefined: its book is removed already, a removal was cut off after that. */
  book: Book | undefined
  by: string
}

interface Discarded {
  items: number
  deadLetters: number
  quarantined: number
  /** In messages that are being sent just now: nothing was removed then. */
  busy: number
}

/** A daemon says so often that it has the account; one that said so lately still has. */
const configuredForMs = 20_000

/** How long a daemon may go on with a book after it was told to close it, ms. */
const closingMs = 12_000

/** An attempt that began so long ago has died with its process. */
const staleMs = 60_000

export async function discardAccount(
  context: Context,
  account: string,
  options: DiscardOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const done = await withLedger(config, async (ledger) => {
    await needIndex(context, ledger)
    await findLeft(ledger, config, account)
    const { redis, keys } = ledger
    const book = await reopenBook({ redis, keys, account, config: config.ledger })
    const holdings = book && (await readHoldings(book))
    if (!options.yes) await askFirst(context, questionLines(account, holdings))
    const by = operatorName(context, options) ?? 'an operator'
    await passLeadOn(ledger, config, account)
    return discard({ context, ledger, account, book, by }, holdings?.quarantined ?? 0)
  })
  const { items, deadLetters, quarantined, busy } = done
  print(context, options, {
    json: {
      account,
      removed: busy === 0,
      discarded: items,
      dead_letters: deadLetters,
      quarantined,
      on_their_way: busy,
    },
    lines: () => doneLines(account, done),
  })
  if (busy > 0) context.exitCode = 1
}

/** Throws CommandError for an account that is configured, here or in a running daemon, or that is unknown. */
async function findLeft(
  ledger: OpenLedger,
  config: Config,
  account: string,
): Promise<AccountEntry> {
  if (config.accounts.some(({ name }) => name === account)) {
    const remedy = `take accounts.${account} and its feeds out of the file and reload first`
    throw new CommandError('mistake', `account "${account}" is configured; ${remedy}`)
  }
  const names = config.accounts.map(({ name }) => name)
  const left = (await readAccounts(ledger)).filter(({ name }) => !names.includes(name))
  const entry = findNamed(left, account, 'account without configuration')
  const agoMs = (await redisNow(ledger)) - (entry.configuredMs ?? 0)
  if (agoMs >= configuredForMs) return entry
  throw new CommandError(
    'refused',
    `a running daemon had account "${account}" in its configuration ${Math.floor(agoMs / 1000)} s ago; reload it without the account, and ask again in half a minute`,
  )
}

function questionLines(account: string, holdings: Holdings | undefined): string[] {
  const { pendingTotal = 0, deadLetters = 0, quarantined = 0 } = holdings ?? {}
  const what = [
    counted(pendingTotal, 'pending item'),
    counted(deadLetters, 'dead letter'),
    counted(quarantined, 'quarantined item'),
  ]
  return [
    `${what.slice(0, -1).join(', ')} and ${what.at(-1)} of ${account} will be given up and never sent.`,
    'Its ledger is removed: stories, cursors, and what tells that an event is known.',
  ]
}

/** The windows of digests, where no daemon has run since the account left. */
async function passLeadOn(ledger: OpenLedger, config: Config, account: string): Promise<void> {
  if ((await ledger.redis.get(ledger.keys.shared('lead'))) !== account) return
  const names = config.accounts.map(({ name }) => name)
  await claimLead(
    ledger,
    ledger.books.filter((book) => names.includes(book.account)),
  )
}

async function discard(discarding: Discarding, quarantined: number): Promise<Discarded> {
  const { context, ledger, account, by } = discarding
  const { terminal, clock, stop } = context
  const sum = { items: 0, deadLetters: 0, quarantined, busy: 0 }
  await giveUp(discarding, sum)
  if (sum.busy > 0) return { ...sum, quarantined: 0 }
  await noteDiscarding(ledger, account, by)
  if (await hasReplicas(ledger.redis, ledger.keys)) {
    terminal.progress('waiting for running daemons to close its ledger')
    await clock.sleep(closingMs, stop)
    stop.throwIfAborted()
    await giveUp(discarding, sum) // what somebody replayed meanwhile
    if (sum.busy > 0) return { ...sum, quarantined: 0 }
  }
  terminal.progress(`removing the ledger of ${account}`)
  const isRemoved = await removeLedger(ledger, account, (ms) => clock.sleep(ms, stop))
  terminal.progress('')
  if (isRemoved) return sum
  throw new CommandError(
    'refused',
    `account "${account}" is configured again: what was not removed yet stays`,
  )
}

/** Settles every pending item, then closes every dead letter. */
async function giveUp(discarding: Discarding, sum: Discarded): Promise<void> {
  const { context, book } = discarding
  if (!book) return
  sum.busy += await freeOthers(discarding, book) // first: what is taken apart later has no head any more
  for await (const placed of pendingItems(book)) {
    const outcome = await giveUpItem(discarding, book, placed)
    if (outcome === 'busy') sum.busy += 1
    if (outcome === 'done') sum.items += 1
    if (sum.items % 50 === 0) context.terminal.progress(`${sum.items} given up`)
  }
  for (const sink of sum.busy > 0 ? [] : await sinksOf(book)) {
    sum.deadLetters += await closeLetters(book, sink)
  }
  context.terminal.progress('')
}

async function giveUpItem(
  discarding: Discarding,
  book: Book,
  { ref, item }: PlacedItem,
): Promise<Redirected> {
  const by = `by ${discarding.by}`
  const first = await discardItem(book, ref, by)
  if (first !== 'busy') return first
  const { sink, sealedIn, atMs } = item
  if (sealedIn !== undefined) {
    const taken = await takeApart(discarding, { messageId: sealedIn, sink }, [book])
    if (taken !== 'done') return taken
  } else {
    if (await isFresh(discarding, atMs)) return 'busy'
    await holdOrphan(book, ref)
  }
  return discardItem(book, ref, by)
}

/** Out of messages that this account leads: they go with it, and what others have in them stays to be told. */
async function freeOthers(discarding: Discarding, book: Book): Promise<number> {
  const others = discarding.ledger.books.filter(({ account }) => account !== book.account)
  let busy = 0
  for (const message of [...(await ledMessages(book)), ...(await messagesBeingMade(book))]) {
    const members = await Promise.all(others.map((one) => sealedMembers(one, message.messageId)))
    const count = members.flat().length
    if (count > 0 && (await takeApart(discarding, message, others)) === 'busy') busy += count
  }
  return busy
}

async function ledMessages(book: Book): Promise<Message[]> {
  const messages: Message[] = []
  for (const sink of await sinksOf(book)) {
    const refs = await book.redis.zrange(book.key('due', sink), '0', '-1')
    for (const ref of refs.map(parseRef)) {
      if (ref.kind === 'batch') messages.push({ messageId: ref.batchId, sink })
    }
  }
  return messages
}

/** What `of` has in a message goes out of it, whoever is to send that; `other`: the message's outcome was known. */
async function takeApart(
  discarding: Discarding,
  { messageId, sink }: Message,
  of: readonly Book[],
): Promise<'done' | 'busy' | 'other'> {
  const { ledger, account, book: own } = discarding
  const ref = `b:${messageId}:${sink}`
  const others = ledger.books.filter((one) => one.account !== account)
  const books = own ? [own, ...others] : others
  const head = await headOf(books, messageId)
  if (await isFresh(discarding, head?.sentAtMs)) return 'busy'
  const answered = head && (await readAnswered(head.book, ref))
  if (head && answered) {
    const bookOf = (name: string): Book | undefined => books.find((one) => one.account === name)
    await settleMembers(head.book, ref, answered, bookOf)
    return 'other'
  }
  for (const book of of) await holdOrphan(book, ref)
  return 'done'
}

async function isFresh({ ledger }: Discarding, sentAtMs: number | undefined): Promise<boolean> {
  return sentAtMs !== undefined && (await redisNow(ledger)) - sentAtMs < staleMs
}

/** Where a sealed message is kept: with the account that leads it, which may be another one. */
async function headOf(
  books: readonly Book[],
  messageId: string,
): Promise<{ book: Book; sentAtMs: number | undefined } | undefined> {
  for (const book of books) {
    const text = await book.redis.get(book.key('batch', messageId))
    if (text === null) continue
    const { st, at } = JSON.parse(text) as { st?: string; at?: number }
    return { book, sentAtMs: st === 'sending' ? at : undefined }
  }
  return undefined
}

async function closeLetters(book: Book, sink: string): Promise<number> {
  let closed = 0
  for (;;) {
    const { letters } = await listDeadLetters(book, sink, { offset: 0, count: 200 })
    let done = 0
    for (const { ref } of letters) done += (await discardDeadLetter(book, ref)) === 'done' ? 1 : 0
    if (done === 0) return closed
    closed += done
  }
}

function doneLines(
  account: string,
  { items, deadLetters, quarantined, busy }: Discarded,
): string[] {
  const given = `discarded ${counted(items, 'item')}, ${counted(deadLetters, 'dead letter')} and ${counted(quarantined, 'quarantined item')} of ${account}`
  if (busy === 0) return [`${given}; its ledger is removed`]
  return [
    `discarded ${counted(items, 'item')} of ${account}; left ${counted(busy, 'item')} in messages on their way just now`,
    `nothing is removed yet: "tocsin accounts discard ${account}" again in a minute`,
  ]
}
