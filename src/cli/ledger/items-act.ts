/** What `items resend`, `move` and `discard` share: one question, one result, one exit code. */
import type { Config } from '../../config/config.ts'
import { type ActCounts, actOn, type ItemAct } from '../../delivery/item-acts.ts'
import { type LedgerItem, worstFirst } from '../../store/items.ts'
import { type Context, loadConfigFile, print, requireConfirmation } from '../context.ts'
import { type ByOption, operatorName, recordCommand, withStore } from '../open/open-store.ts'
import { pluralize, sanitize } from '../terminal.ts'
import {
  chooseItems,
  readSelection,
  requireNarrowed,
  type SelectionOptions,
} from './item-selection.ts'
import { leftWords } from '../../operator/acts/act-words.ts'

export interface ActOptions extends SelectionOptions, ByOption {
  yes?: true
}

interface NamedAct {
  act: ItemAct
  verb: 'resend' | 'move' | 'discard'
  /** Past participle of the result. */
  done: string
  /** Of the question: what becomes of them. */
  effect: string
}

interface Outcome {
  /** The states that were looked for. */
  states: ReadonlySet<string>
  counts: ActCounts
  /** Chosen, but in a state in which it cannot be done. */
  staying: readonly LedgerItem[]
}

/** Exit code: 0 if all that could be done was done, 1 if something was left or nothing was found. */
export async function runAct(
  context: Context,
  { ids, options }: { ids: string[]; options: ActOptions },
  build: (config: Config, by: string) => NamedAct,
): Promise<void> {
  requireNarrowed(ids, options)
  const { config } = loadConfigFile(context, options.config)
  const named = build(config, operatorName(context, options) ?? 'an operator')
  const outcome = await withStore(config, async (store): Promise<Outcome> => {
    const { ledgers, filter } = await readSelection(store, config, options)
    const states = filter.states ?? named.act.usual
    const chosen = await chooseItems(context, ids, { ledgers, filter: { ...filter, states } })
    const { fit = [], stay: staying = [] } = Object.groupBy(chosen.toSorted(worstFirst), (item) =>
      named.act.takes(item) ? 'fit' : 'stay',
    )
    if (fit.length > 0 && !options.yes)
      await requireConfirmation(context, question(named, fit, staying))
    const { account, by } = options
    const items = fit.map(({ ledger, ref }) => `${ledger.account}/${ref}`)
    const about = { act: `/items/${named.verb}`, account, by, items }
    const isDone = ({ done }: ActCounts): boolean => done > 0
    const counts = await recordCommand(context, store, { ...about, isDone }, () =>
      actOn(fit, named.act, (done) => {
        const isShown = fit.length > 100 && done % 50 === 0
        if (isShown) context.terminal.progress(`${done} of ${fit.length}`)
      }),
    )
    context.terminal.progress('')
    return { states, counts, staying }
  })
  const { done, busy, other, no_payload, no_recipient } = outcome.counts
  print(context, options, {
    json: {
      done,
      left: { busy, other, no_payload, no_recipient, stay: outcome.staying.length },
    },
    lines: () => resultLines(named, outcome),
  })
  if (done === 0 || busy + other + no_payload + no_recipient > 0) context.exitCode = 1
}

/** `3 items of sink soc (2 dead, 1 queued; 1 critical, 2 high) will be …`. */
function question(
  { effect }: NamedAct,
  items: readonly LedgerItem[],
  staying: readonly LedgerItem[],
): string[] {
  const states = formatTally(items.map(({ state }) => state))
  const severities = formatTally(items.map(({ severity }) => severity))
  return [
    `${pluralize(items.length, 'item')}${formatSinks(items)} (${states}; ${severities}) ${effect}.`,
    ...stayingLines(staying).map((line) => `L${line.slice(1)}.`),
  ]
}

function formatSinks(items: readonly LedgerItem[]): string {
  const sinks = [...new Set(items.flatMap(({ item }) => item?.sink ?? []))].toSorted()
  if (sinks.length === 0 || sinks.length > 3) return ''
  return ` of ${sinks.length === 1 ? 'sink' : 'sinks'} ${sanitize(sinks.join(', '))}`
}

function stayingLines(staying: readonly LedgerItem[]): string[] {
  if (staying.length === 0) return []
  return [`left as they are: ${formatTally(staying.map(({ state }) => state))}`]
}

function resultLines({ done, verb }: NamedAct, { states, counts, staying }: Outcome): string[] {
  const { done: count, ...others } = counts
  const left = Object.entries(others).filter(([, number]) => number > 0)
  if (count === 0 && left.length === 0) {
    const meant = [...states].join(', ')
    return [`nothing was found to ${verb} among what is ${meant}`, ...stayingLines(staying)]
  }
  const next = verb !== 'discard' && count > 0 ? '; a running daemon goes on within seconds' : ''
  return [
    `${pluralize(count, 'item')} ${done}${next}`,
    ...left.map(
      ([why, number]) =>
        `${pluralize(number, 'item')} left: ${leftWords[why as keyof typeof leftWords]}`,
    ),
    ...stayingLines(staying),
  ]
}

/** `3 critical, 1 high`. */
export function formatTally(words: readonly string[]): string {
  const counts = Map.groupBy(words, (word) => word)
  return [...counts].map(([word, all]) => `${all.length} ${sanitize(word, 40)}`).join(', ')
}
