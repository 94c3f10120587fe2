/** Replays or discards dead letters; each in one script, so that an interrupted run loses none. */
import type { Config } from '../config/config.ts'
import {
  discardDeadLetter,
  replayDeadLetter,
  type DeadLetter,
  type LetterOutcome,
} from '../ledger/dead-letters.ts'
import { batchWaitOf } from './batch-wait.ts'
import { askFirst } from './ask-first.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { drawersOf, eachLetter, letterById } from './dead-letters-find.ts'
import { tellDaemon, withLedger, type OpenLedger } from './open-ledger.ts'
import { reasonOf } from './story.ts'
import { counted } from './words.ts'

export interface ChangeOptions extends CommonOptions {
  sink?: string
  all?: true
  reason?: string
  yes?: true
}

type Verb = 'replay' | 'discard'

interface Chosen {
  id: string
  ref: string
  account: string
  sink: string
}

interface Changed {
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
  const told = await withLedger(config, async (ledger) => {
    const chosen = await choose(ledger, config, ids, options)
    const count = counted(chosen.length, 'dead letter')
    if (verb === 'discard' && chosen.length > 0 && !options.yes) {
      await askFirst(context, [`${count} will be closed and never sent.`])
    }
    const changed = await changeAll({ context, ledger, config, verb }, chosen)
    return { changed, held: verb === 'replay' ? heldSinks(config, chosen) : [] }
  })
  const { done, failed } = told.changed
  print(context, options, {
    json: { [verb === 'replay' ? 'replayed' : 'discarded']: done, failed },
    lines: () => linesOf(verb, told.changed, told.held),
  })
  if (failed.length > 0) context.exitCode = 1
}

async function choose(
  ledger: OpenLedger,
  config: Config,
  ids: string[],
  { sink, reason }: ChangeOptions,
): Promise<Chosen[]> {
  const chosen = new Map<string, Chosen>()
  const add = ({ id, ref, record, item }: DeadLetter): void =>
    void chosen.set(id, { id, ref, account: record.account, sink: item.sink })
  for (const id of ids) add(await letterById(ledger, id))
  if (sink === undefined) return [...chosen.values()]
  for await (const letter of eachLetter(await drawersOf(ledger, config, sink))) {
    if (reason === undefined || reasonOf(letter.item) === reason) add(letter)
  }
  return [...chosen.values()]
}

interface Change {
  context: Context
  ledger: OpenLedger
  config: Config
  verb: Verb
}

/** Fewer are done before anybody wonders. */
const worthProgress = 100

async function changeAll(change: Change, chosen: readonly Chosen[]): Promise<Changed> {
  const { terminal } = change.context
  const changed: Changed = { done: 0, failed: [] }
  for (const [index, letter] of chosen.entries()) {
    if (chosen.length > worthProgress && index % 50 === 0) {
      terminal.progress(`${change.verb}: ${index} of ${chosen.length}`)
    }
    const outcome = await changeOne(change, letter)
    if (outcome === 'done' || outcome === 'collect') changed.done += 1
    else changed.failed.push({ id: letter.id, outcome })
  }
  terminal.progress('')
  await tellDaemon(change.ledger, new Set(chosen.map(({ account }) => account)))
  return changed
}

async function changeOne({ ledger, config, verb }: Change, letter: Chosen): Promise<LetterOutcome> {
  const book = ledger.books.find(({ account }) => account === letter.account)
  if (book === undefined) throw new Error(`no book is open for account ${letter.account}`)
  if (verb === 'discard') return discardDeadLetter(book, letter.ref)
  return replayDeadLetter(book, letter.ref, batchWaitOf(config, letter.sink))
}

function heldSinks({ sinks }: Config, chosen: readonly Chosen[]): string[] {
  const known = new Set(sinks.map(({ name }) => name))
  return [...new Set(chosen.map(({ sink }) => sink))].filter((sink) => !known.has(sink))
}

function linesOf(verb: Verb, { done, failed }: Changed, held: string[]): string[] {
  const next = done > 0 ? '; a running daemon sends what was replayed within seconds' : ''
  const count = counted(done, 'dead letter')
  return [
    verb === 'replay' ? `replayed ${count}${next}` : `discarded ${count}`,
    ...held.map((sink) => `the configuration has no sink "${sink}": what was replayed is held`),
    ...failed.map(({ id, outcome }) => `${id}: ${failureWords(outcome)}`),
  ]
}

function failureWords(outcome: LetterOutcome): string {
  return outcome === 'no_payload'
    ? 'its content is no longer kept (retention.payload), so it cannot be sent again'
    : 'it is no dead letter any more: somebody replayed or discarded it meanwhile'
}
