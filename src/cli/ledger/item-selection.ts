/** How the `items` commands choose items: by ids and uids, or by what the items are. */
import type { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { severities, type Severity } from '../../event.ts'
import { refang } from '../../messages/sanitize.ts'
import { redisNow } from '../../redis/scripts.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { readAccounting } from '../../store/accounts.ts'
import { pendingWords, type State, stateWords } from '../../store/item-states.ts'
import { findItems, fits, type ItemFilter, type LedgerItem, scanItems } from '../../store/items.ts'
import { readSinkNames } from '../../store/pending-items.ts'
import { deliveryIdPattern } from '../../store/records.ts'
import { type CommonOptions, type Context, addCommonOptions } from '../context.ts'
import { ledgersFor, type OpenStore } from '../open/open-store.ts'
import {
  addPeriodOptions,
  listParser,
  type PeriodOptions,
  parseWord,
  resolvePeriod,
  wordsOption,
} from '../options.ts'
import { CommandError, findNamed, sanitize } from '../terminal.ts'

export interface SelectionOptions extends CommonOptions, PeriodOptions {
  state?: ReadonlySet<State>
  sink?: string
  feed?: string
  account?: string
  severity?: Severity
}

export function addSelectionOptions(command: Command): Command {
  addCommonOptions(command)
    .addOption(
      wordsOption(
        '--state <words>',
        'in these states, such as dead,retrying; pending: all that are not final; all',
        manyStates,
        parseStates,
      ),
    )
    .option('--sink <name>', 'of this sink; it may have left the configuration')
    .option('--feed <name>', 'that this feed showed; it may have left the configuration')
    .option('--account <name>', 'of this account')
    .addOption(
      wordsOption('--severity <word>', 'this or higher', severities, (word) =>
        parseWord(severities, word),
      ),
    )
  return addPeriodOptions(command, 'in its state since')
}

function parseStates(text: string): ReadonlySet<State> {
  const words = listParser(manyStates)(text)
  return new Set(
    words.flatMap((word) => {
      if (word === 'all') return stateWords
      return word === 'pending' ? [...pendingWords] : [word]
    }),
  )
}

const manyStates = [...stateWords, 'pending', 'all'] as const

export interface Selection {
  ledgers: readonly AccountLedger[]
  filter: ItemFilter
}

/** Throws CommandError for a name that neither the configuration nor a ledger knows. */
export async function readSelection(
  store: OpenStore,
  config: Config,
  options: SelectionOptions,
): Promise<Selection> {
  const { account, state, sink, feed, severity } = options
  const ledgers = ledgersFor(store, { account })
  if (sink !== undefined) {
    const known = await Promise.all(ledgers.map(readSinkNames))
    requireKnown('sink', sink, [...config.sinks.map(({ name }) => name), ...known.flat()])
  }
  if (feed !== undefined) {
    const counted = await Promise.all(ledgers.map((ledger) => readAccounting(ledger)))
    const known = counted.flatMap(({ feeds }) => Object.keys(feeds))
    requireKnown('feed', feed, [...config.feeds.map(({ name }) => name), ...known])
  }
  const { fromMs, toMs } = resolvePeriod(options, await redisNow(store))
  return { ledgers, filter: { states: state, sink, feed, severity, fromMs, toMs } }
}

function requireKnown(thing: string, name: string, names: readonly string[]): void {
  findNamed(
    [...new Set(names)].map((one) => ({ name: one })),
    name,
    thing,
  )
}

/** Options of acts, beside those that choose items. */
const notNarrowing: ReadonlySet<string> = new Set(['by', 'yes', 'to'])

/** Throws CommandError where nothing is named: no act is on everything by chance. */
export function requireNarrowed(ids: readonly string[], options: SelectionOptions): void {
  const { config: _config, output: _output, ...narrowing } = options
  const isNarrowed = Object.keys(narrowing).some((name) => !notNarrowing.has(name))
  if (ids.length > 0 || isNarrowed) return
  const remedy = 'name them by uid or id, or choose them with --sink, --feed, --state and the like'
  throw new CommandError('mistake', `no items are named; ${remedy}`)
}

/** The chosen items of one act, with progress. Throws CommandError for an id that nobody knows. */
export async function chooseItems(
  { terminal }: Context,
  ids: readonly string[],
  { ledgers, filter }: Selection,
): Promise<LedgerItem[]> {
  const chosen = new Map<string, LedgerItem>()
  const add = (item: LedgerItem): void =>
    void chosen.set(`${item.ledger.account} ${item.ref}`, item)
  for (const id of ids) {
    const found = await findGiven(ledgers, id)
    for (const item of found) if (fits(item, filter)) add(item)
  }
  if (ids.length > 0) return [...chosen.values()]
  for (const ledger of ledgers) {
    for await (const item of scanItems(ledger, filter)) {
      add(item)
      if (chosen.size % 500 === 0) terminal.progress(`found ${chosen.size} items`)
    }
  }
  terminal.progress('')
  return [...chosen.values()]
}

/** Accepts a bare delivery id, `delivery b…`, and a mail's Message-ID: `<b….recipient@domain>`. */
export function parseDeliveryId(given: string): string | undefined {
  const text = given
    .trim()
    .replace(/^delivery:? +/u, '')
    .replace(/^<|>$/gu, '')
  const id = /^([eb][0-9a-f]+)\.[0-9a-f]{16}@\S+$/u.exec(text)?.[1] ?? text
  return deliveryIdPattern.test(id) ? id : undefined
}

/** Throws CommandError for an id that nobody knows. */
async function findGiven(ledgers: readonly AccountLedger[], given: string): Promise<LedgerItem[]> {
  const id = parseDeliveryId(given) ?? refang(given.trim())
  const found = await findItems(ledgers, id)
  if (found.length > 0) return found
  const why = 'it was settled long ago, resolved or expired'
  throw new CommandError('refused', `the ledger has no item "${sanitize(given, 200)}": ${why}`)
}
