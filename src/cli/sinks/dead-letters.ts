/** The `dead-letters` commands: list, show, replay and discard. */

import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import type { Message } from '../../messages/message.ts'
import { formatSeverity } from '../../messages/summary.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import {
  countDeadLetters,
  type DeadLetter,
  discardDeadLetter,
  findDeadLetter,
  type LetterOutcome,
  listDeadLetters,
  replayDeadLetter,
  readSinkNames,
} from '../../store/pending-items.ts'
import { readPayload } from '../../store/records.ts'
import {
  addCommonOptions,
  requireConfirmation,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import {
  renderRecordMessage,
  itemJson,
  itemLines,
  linkLines,
  failureReason,
  historyJson,
  historyLines,
} from '../ledger/explain.ts'
import {
  destinationLabels,
  type DestinationLabels,
  type OpenStore,
  notifyDaemon,
  withStore,
} from '../open/open-store.ts'
import { addWideOption, findBatchWaitMs, parsePositive, type WideOption } from '../options.ts'
import {
  CommandError,
  pluralize,
  findNamed,
  sanitize,
  formatIsoTime,
  titledTable,
  formatUtcTime,
} from '../terminal.ts'

export function deadLettersCommand(context: Context): Command {
  const list = addWideOption(addCommonOptions(new Command('list')))
    .description('what was given up, newest first')
    .option('--sink <name>', 'only those of this sink')
    .option('--limit <n>', 'how many on a page', parsePositive, 20)
    .option('--page <n>', 'which page', parsePositive, 1)
    .action((options: ListOptions) => listLetters(context, options))
  const show = addCommonOptions(new Command('show'))
    .description('one dead letter: its history and what it would have said')
    .argument('<id>', 'as list shows it')
    .action((id: string, options: CommonOptions) => showLetter(context, id, options))
  const command = new Command('dead-letters')
  command.addCommand(list).addCommand(show)
  command.addCommand(changeCommand(context, 'replay', 'send dead letters again'))
  return command.addCommand(changeCommand(context, 'discard', 'close dead letters unsent'))
}

function changeCommand(context: Context, verb: 'replay' | 'discard', description: string): Command {
  const command = addCommonOptions(new Command(verb))
    .description(description)
    .argument('[ids...]', 'as list shows them')
    .option('--sink <name>', 'with --all: those of this sink')
    .option('--all', 'every one of the sink')
    .option('--reason <word>', 'with --all: only those that failed for it, e.g. unauthorized')
    .action((ids: string[], options: ChangeOptions) => {
      refuseIncompleteChoice(ids, options)
      return changeLetters(context, verb, ids, options)
    })
  return verb === 'discard' ? command.option('--yes', 'do not ask') : command
}

function refuseIncompleteChoice(ids: string[], { sink, all, reason }: ChangeOptions): void {
  const isAll = sink !== undefined && all === true
  const isMixed = ids.length > 0 && (sink ?? all ?? reason) !== undefined
  if (isMixed || (ids.length === 0 && !isAll)) {
    throw new CommandError(
      'mistake',
      'name dead letters by their ids, or all of a sink by --sink <name> --all',
    )
  }
}

export interface ListOptions extends CommonOptions, WideOption {
  sink?: string
  limit: number
  page: number
}

export async function listLetters(context: Context, options: ListOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { total, letters } = await withStore(config, async (store) =>
    readPage(await findSinkLetters(store, config, options.sink), options),
  )
  const labels = destinationLabels(config)
  const { page, limit } = options
  print(context, options, {
    json: { total, page, limit, letters: letters.map((letter) => letterJson(letter, labels)) },
    lines: () => listLines(context, letters, labels, { ...options, total }),
  })
}

async function readPage(
  lists: SinkLetters[],
  { limit, page }: ListOptions,
): Promise<{ total: number; letters: DeadLetter[] }> {
  const counts = await Promise.all(lists.map(({ ledger, sink }) => countDeadLetters(ledger, sink)))
  const first = { offset: 0, count: page * limit }
  const newest = await Promise.all(
    lists.map(({ ledger, sink }) => listDeadLetters(ledger, sink, first)),
  )
  const letters = newest
    .flatMap((list) => list.letters)
    .toSorted((left, right) => right.diedAtMs - left.diedAtMs)
  return {
    total: counts.reduce((sum, count) => sum + count, 0),
    letters: letters.slice((page - 1) * limit, page * limit),
  }
}

function letterJson(
  { id, diedAtMs, record, item }: DeadLetter,
  labels: DestinationLabels,
): Record<string, unknown> {
  return {
    id,
    died_at: formatIsoTime(diedAtMs),
    uid: record.uid,
    reason: failureReason(item),
    item: itemJson(item, labels),
  }
}

function listLines(
  { terminal }: Context,
  letters: readonly DeadLetter[],
  labels: DestinationLabels,
  { total, page, limit, ...width }: ListOptions & { total: number },
): string[] {
  if (total === 0) return ['There are no dead letters.']
  const pages = Math.ceil(total / limit)
  const rows = letters.map(({ id, diedAtMs, record, item }) => [
    id,
    formatUtcTime(diedAtMs),
    formatSeverity(item.severity),
    sanitize(labels.get(item.destination) ?? item.destination, 60),
    failureReason(item),
    sanitize(record.uid, 200),
  ])
  return [
    ...titledTable(
      terminal,
      [['id', 'dead since', 'severity', 'destination', 'reason', 'uid'], ...rows],
      width,
    ),
    `page ${page} of ${pages}, ${pluralize(total, 'dead letter')} in all${page < pages ? `; more with --page ${page + 1}` : ''}`,
  ]
}

export async function showLetter(
  context: Context,
  id: string,
  options: CommonOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { letter, payload } = await withStore(config, async (store) => {
    const found = await requireLetter(store, id)
    const ledger = store.ledgers.find(({ account }) => account === found.record.account)
    return { letter: found, payload: ledger && (await readPayload(ledger, found.record.recordId)) }
  })
  const labels = destinationLabels(config)
  const message = payload && renderRecordMessage(config, letter.record, payload, letter.item)
  print(context, options, {
    json: {
      ...letterJson(letter, labels),
      story: historyJson(letter.record, labels),
      message: message ?? null,
    },
    lines: () => [
      `dead letter ${id}`,
      ...itemLines(letter.item, labels),
      '',
      ...historyLines(letter.record, labels),
      '',
      ...(message ? messageLines(message) : [payloadGoneText]),
    ],
  })
}

const payloadGoneText =
  'The content is no longer kept (retention.payload): this letter cannot be replayed.'

function messageLines({ summary, facts, extract, notes, ...message }: Message): string[] {
  return [
    summary,
    ...facts.map(({ label, value }) => `  ${label}: ${value}`),
    ...(extract ? [`  ${extract.label}: ${extract.text.replaceAll('\n', ' ')}`] : []),
    ...linkLines(message).map((line) => `  ${line}`),
    ...notes.map((note) => `  ${note}`),
  ]
}

/**
 * `dead-letters replay` and `discard`. Each letter changes in one script, so an interrupted run
 * loses none.
 */

export interface ChangeOptions extends CommonOptions {
  sink?: string
  all?: true
  reason?: string
  yes?: true
}

type Verb = 'replay' | 'discard'

interface ChosenLetter {
  id: string
  ref: string
  account: string
  sink: string
}

interface ChangeCounts {
  done: number
  failed: { id: string; outcome: LetterOutcome }[]
}

export async function changeLetters(
  context: Context,
  verb: Verb,
  ids: string[],
  options: ChangeOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const result = await withStore(config, async (store) => {
    const chosen = await chooseLetters(store, config, ids, options)
    const count = pluralize(chosen.length, 'dead letter')
    if (verb === 'discard' && chosen.length > 0 && !options.yes) {
      await requireConfirmation(context, [`${count} will be closed and never sent.`])
    }
    const changed = await changeAll({ context, store, config, verb }, chosen)
    return { changed, held: verb === 'replay' ? heldSinks(config, chosen) : [] }
  })
  const { done, failed } = result.changed
  print(context, options, {
    json: { [verb === 'replay' ? 'replayed' : 'discarded']: done, failed },
    lines: () => changeLines(verb, result.changed, result.held),
  })
  if (failed.length > 0) context.exitCode = 1
}

async function chooseLetters(
  store: OpenStore,
  config: Config,
  ids: string[],
  { sink, reason }: ChangeOptions,
): Promise<ChosenLetter[]> {
  const chosen = new Map<string, ChosenLetter>()
  const add = ({ id, ref, record, item }: DeadLetter): void =>
    void chosen.set(id, { id, ref, account: record.account, sink: item.sink })
  for (const id of ids) add(await requireLetter(store, id))
  if (sink === undefined) return [...chosen.values()]
  for await (const letter of scanLetters(await findSinkLetters(store, config, sink))) {
    if (reason === undefined || failureReason(letter.item) === reason) add(letter)
  }
  return [...chosen.values()]
}

interface ChangeRun {
  context: Context
  store: OpenStore
  config: Config
  verb: Verb
}

/** Fewer are done before a progress line would help. */
const progressThreshold = 100

async function changeAll(
  change: ChangeRun,
  chosen: readonly ChosenLetter[],
): Promise<ChangeCounts> {
  const { terminal } = change.context
  const changed: ChangeCounts = { done: 0, failed: [] }
  for (const [index, letter] of chosen.entries()) {
    if (chosen.length > progressThreshold && index % 50 === 0) {
      terminal.progress(`${change.verb}: ${index} of ${chosen.length}`)
    }
    const outcome = await changeOne(change, letter)
    if (outcome === 'done' || outcome === 'collect') changed.done += 1
    else changed.failed.push({ id: letter.id, outcome })
  }
  terminal.progress('')
  await notifyDaemon(change.store, new Set(chosen.map(({ account }) => account)))
  return changed
}

async function changeOne(
  { store, config, verb }: ChangeRun,
  letter: ChosenLetter,
): Promise<LetterOutcome> {
  const ledger = store.ledgers.find(({ account }) => account === letter.account)
  if (ledger === undefined) throw new Error(`the ledger of account ${letter.account} is not open`)
  if (verb === 'discard') return discardDeadLetter(ledger, letter.ref)
  return replayDeadLetter(ledger, letter.ref, findBatchWaitMs(config, letter.sink))
}

function heldSinks({ sinks }: Config, chosen: readonly ChosenLetter[]): string[] {
  const known = new Set(sinks.map(({ name }) => name))
  return [...new Set(chosen.map(({ sink }) => sink))].filter((sink) => !known.has(sink))
}

function changeLines(verb: Verb, { done, failed }: ChangeCounts, held: string[]): string[] {
  const next = done > 0 ? '; a running daemon sends what was replayed within seconds' : ''
  const count = pluralize(done, 'dead letter')
  return [
    verb === 'replay' ? `replayed ${count}${next}` : `discarded ${count}`,
    ...held.map((sink) => `the configuration has no sink "${sink}": what was replayed is held`),
    ...failed.map(({ id, outcome }) => `${id}: ${formatFailure(outcome)}`),
  ]
}

function formatFailure(outcome: LetterOutcome): string {
  return outcome === 'no_payload'
    ? 'its content is no longer kept (retention.payload), so it cannot be sent again'
    : 'it is no dead letter any more: somebody replayed or discarded it meanwhile'
}

/** One sink's dead letters in one account ledger. */
export interface SinkLetters {
  ledger: AccountLedger
  sink: string
}

/**
 * Finds the dead letters of one sink or all, including sinks that left the configuration. Throws
 * CommandError.
 */
export async function findSinkLetters(
  { ledgers }: OpenStore,
  { sinks }: Config,
  sink: string | undefined,
): Promise<SinkLetters[]> {
  const lists: SinkLetters[] = []
  for (const ledger of ledgers) {
    for (const name of await readSinkNames(ledger)) lists.push({ ledger, sink: name })
  }
  if (sink === undefined) return lists
  const names = new Set([...sinks.map(({ name }) => name), ...lists.map((one) => one.sink)])
  findNamed(
    [...names].map((name) => ({ name })),
    sink,
    'sink',
  )
  return lists.filter((list) => list.sink === sink)
}

const pageLength = 200

/** Yields every dead letter of the given lists. */
export async function* scanLetters(lists: readonly SinkLetters[]): AsyncGenerator<DeadLetter> {
  for (const { ledger, sink } of lists) {
    for (let offset = 0, total = 1; offset < total; offset += pageLength) {
      const page = await listDeadLetters(ledger, sink, { offset, count: pageLength })
      total = page.total
      yield* page.letters
    }
  }
}

/** Finds a letter by the id that `dead-letters list` shows. Throws CommandError. */
export async function requireLetter({ ledgers }: OpenStore, id: string): Promise<DeadLetter> {
  const [, account = '', localId = ''] = /^([a-z][a-z0-9_-]*)\.([0-9a-f]+\.\d+)$/.exec(id) ?? []
  if (localId === '') {
    const remedy = 'take one from "dead-letters list"'
    throw new CommandError('mistake', `"${id}" is not the id of a dead letter; ${remedy}`)
  }
  const named = ledgers.map((ledger) => ({ name: ledger.account, ledger }))
  const letter = await findDeadLetter(findNamed(named, account, 'account').ledger, localId)
  if (letter !== undefined) return letter
  throw new CommandError(
    'refused',
    `there is no dead letter ${id}: it was replayed or discarded, or its history has expired`,
  )
}
