/** How each sink does, read from Redis without changing anything that waits. */
import { addressPrints } from '../app/address-prints.ts'
import { collectingSinks } from '../app/build-flusher.ts'
import type { Config, SinkConfig } from '../config/config.ts'
import { createCircuit, type CircuitReading } from '../delivery/circuit.ts'
import { readDigestState, type DigestState } from '../digest/digest-state.ts'
import { readAccounting } from '../ledger/accounting.ts'
import { countDeadLetters } from '../ledger/dead-letters.ts'
import { sinksOf } from '../ledger/due.ts'
import { destinationsBySink } from './destination-labels.ts'
import { redisNow, type OpenLedger } from './open-ledger.ts'

export interface SinkReport {
  name: string
  /** undefined: the configuration no longer has it. */
  type: SinkConfig['type'] | undefined
  circuit: CircuitReading
  /** Items by state, over all accounts; only states that occur. */
  pending: Record<string, number>
  deadLetters: number
  digest: DigestState | undefined
}

/** Sinks that are no longer configured come last, and only while something of theirs is left. */
export async function reportSinks(ledger: OpenLedger, config: Config): Promise<SinkReport[]> {
  const { redis, keys } = ledger
  const nowMs = await redisNow(ledger)
  const pending = await pendingBySink(ledger)
  const circuit = createCircuit(redis, keys, addressPrints(config, ledger.books))
  const destinations = [...destinationsBySink(config)]
  const collecting = collectingSinks(
    { config },
    new Map(destinations.map(([name, of]) => [name, { destinations: of }])),
  )
  const types = new Map(config.sinks.map(({ name, type }) => [name, type]))
  const reports: SinkReport[] = []
  for (const name of await knownSinks(ledger, config)) {
    const sink = collecting.get(name)
    reports.push({
      name,
      type: types.get(name),
      circuit: await circuit.read(name, nowMs),
      pending: pending.get(name) ?? {},
      deadLetters: await deadLettersOf(ledger, name),
      digest: sink && (await readDigestState(ledger, sink, nowMs)),
    })
  }
  return reports.filter(({ type, ...report }) => type !== undefined || hasSomethingLeft(report))
}

function hasSomethingLeft({
  pending,
  deadLetters,
}: Pick<SinkReport, 'pending' | 'deadLetters'>): boolean {
  return deadLetters > 0 || Object.keys(pending).length > 0
}

/** Those of the configuration in its order, then those that only the ledger knows. */
export async function knownSinks({ books }: OpenLedger, { sinks }: Config): Promise<string[]> {
  const stored = await Promise.all(books.map(sinksOf))
  return [...new Set([...sinks.map(({ name }) => name), ...stored.flat().toSorted()])]
}

async function pendingBySink({ books }: OpenLedger): Promise<Map<string, Record<string, number>>> {
  const pending = new Map<string, Record<string, number>>()
  for (const book of books) {
    const { sinks } = await readAccounting(book)
    for (const [name, account] of Object.entries(sinks)) {
      pending.set(name, added(pending.get(name) ?? {}, account.pending))
    }
  }
  return pending
}

function added(sum: Record<string, number>, more: Record<string, number>): Record<string, number> {
  const states = Object.entries(more).filter(([, count]) => count !== 0)
  return { ...sum, ...Object.fromEntries(states.map(([s, count]) => [s, (sum[s] ?? 0) + count])) }
}

async function deadLettersOf({ books }: OpenLedger, sink: string): Promise<number> {
  const counts = await Promise.all(books.map((book) => countDeadLetters(book, sink)))
  return counts.reduce((sum, count) => sum + count, 0)
}
