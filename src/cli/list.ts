/**
 * Prints feeds, sinks and accounts: a table with the problems of each, the worst first; every field of
 * one that is named; or JSON, by the same columns.
 */
import type { Command } from 'commander'
import { readLedgerState } from '../operator/ledger-state.ts'
import { type Listed, type ListedThing, listThings } from '../operator/lists.ts'
import type { Problem } from '../operator/alerts/troubles.ts'
import { fieldLines } from './api/listing.ts'
import { type Column, toJson } from '../operator/reports/columns.ts'
import { tableLines } from './columns.ts'
import { type CommonOptions, type Context, loadConfigFile, print } from './context.ts'
import { ledgersFor, withStore } from './open/open-store.ts'
import { findingLine } from './finding-line.ts'
import { findNamed, sanitize, type Style } from './terminal.ts'

export interface ListOptions extends CommonOptions {
  account?: string
}

export function addListOptions(command: Command, thing: string): Command {
  return command.argument(`[${thing}]`, `name of the ${thing}: prints every field of it`)
}

export function addAccountOption(command: Command): Command {
  return command.option('--account <name>', 'of this account')
}

interface Printed<Row> {
  thing: ListedThing
  columns: readonly Column<Row>[]
  rows: readonly Listed<Row>[]
  /** Of the daemon: without it no row gets better or worse. */
  daemon: readonly Problem[]
}

/** Prints all that configuration and ledger have, or what they have of `--account`. Throws CommandError. */
export async function listThing(
  context: Context,
  options: ListOptions,
  { thing, name }: { thing: ListedThing; name: string | undefined },
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const state = await withStore(config, async (store) => {
    ledgersFor(store, options) // refuses an account that nobody knows
    const accounts = options.account === undefined ? undefined : [options.account]
    return readLedgerState(store, config, accounts)
  })
  const daemon = state.problems.filter(({ check }) => check === 'daemon')
  printList(context, options, name, { thing, daemon, ...listThings(thing, state, config) })
}

/** Throws CommandError for a name that is not there. */
export function printList<Row>(
  context: Context,
  options: ListOptions,
  name: string | undefined,
  { thing, rows, columns, daemon }: Printed<Row>,
): void {
  const named = rows.map((one) => {
    return { ...one, badness: Math.max(0, ...one.problems.map(badnessOf)) }
  })
  if (name !== undefined) findNamed(named, name, thing)
  const chosen = named.filter((one) => name === undefined || one.name === name)
  const whole = ({ row, problems: own }: (typeof named)[number]): Record<string, unknown> => ({
    ...toJson(columns, row),
    problems: own,
  })
  print(context, options, { json: chosen.map(whole), lines })

  function lines(): string[] {
    return [...daemon.map((one) => findingLine(context.terminal, one)), ...rowLines()]
  }

  function rowLines(): string[] {
    if (chosen.length === 0) {
      const { account } = options
      return [
        account === undefined
          ? `there is no ${thing} yet`
          : `no ${thing} has anything of account ${account} yet`,
      ]
    }
    if (name !== undefined) {
      return chosen.flatMap((one) => {
        const fields = toJson(columns, one.row)
        return [...fieldLines(fields), ...problemLines(context, one.problems)]
      })
    }
    const worstFirst = chosen.toSorted((one, other) => other.badness - one.badness)
    const shown = worstFirst.map(({ row }) => row)
    const [head = '', ...body] = tableLines(context, columns, shown)
    return [
      head,
      ...body.flatMap((line, at) => [
        line,
        ...problemLines(context, worstFirst[at]?.problems ?? []),
      ]),
    ]
  }
}

type OwnProblem = Listed<unknown>['problems'][number]

function badnessOf({ status, stops }: OwnProblem): number {
  if (status === 'warning') return 1
  return stops ? 3 : 2
}

const styles: Record<Problem['status'], Style> = { problem: 'red', warning: 'yellow' }

function problemLines({ terminal }: Context, problems: readonly OwnProblem[]): string[] {
  return problems.map(({ status, detail, remedy }) => {
    const word = terminal.paint(styles[status], status)
    return `  ${word}  ${sanitize(`${detail}; ${remedy}`, 1_200)}`
  })
}
