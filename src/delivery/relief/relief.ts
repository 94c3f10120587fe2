/**
 * What happens to a sink's backlog while nothing can be sent to it, in order: people's items come
 * together for one message, then all goes to the fallback; and beyond `pending_max` the least severe are
 * given up. Any replica may do any of it, several at once.
 */
import { gatherItems } from '../../ledger/collecting.ts'
import { waitingRefs } from '../../ledger/due.ts'
import { parseRef } from '../../ledger/refs.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Circuit, CircuitReading } from '../circuit.ts'
import type { WorkTeller } from '../work-hints.ts'
import { divertAll } from './divert-all.ts'
import type { Diverter } from './diverter.ts'
import { eachPage, type Paging } from './each-page.ts'
import { createOverflow } from './overflow.ts'
import type { ReliefSink } from './relief-sink.ts'
import type { Wake } from './wake.ts'

export interface Relief {
  /** One pass over all sinks. */
  relieveOnce(signal?: AbortSignal, alive?: () => void): Promise<void>
}

export interface ReliefOptions {
  sinks: ReadonlyMap<string, ReliefSink>
  circuit: Pick<Circuit, 'read'>
  diverter: Diverter
  drains: Pick<WorkTeller, 'booksOf'>
  wake: Pick<Wake, 'ensureTried'>
  clock: Clock
  logger: Logger
  /** Items that were given up. */
  onOverflow: (sink: string, items: number) => void
}

/** A short fault leaves people's single messages single. */
const gatherAfterMs = 60_000

export function createRelief(options: ReliefOptions): Relief {
  const { sinks } = options
  const overflow = createOverflow(options)
  return {
    async relieveOnce(signal = new AbortController().signal, alive = () => undefined) {
      const steps: ((sink: ReliefSink, until: Until) => Promise<unknown>)[] = [
        ({ name }) => options.wake.ensureTried(name),
        (sink, until) => gather(options, sink, until),
        (sink, until) => divert(options, sink, until),
        (sink, { signal, alive }) =>
          overflow.relieve(sink, { goesOn: async () => !signal.aborted, alive }),
      ]
      const failures: unknown[] = []
      for (const sink of sinks.values()) {
        for (const step of steps) {
          if (signal.aborted) return
          await step(sink, { signal, alive }).catch((error: unknown) => failures.push(error))
          alive()
        }
      }
      if (failures.length > 0) throw failures[0] // what a full Redis refuses keeps nothing else from its relief
    },
  }
}

interface Until {
  signal: AbortSignal
  alive: () => void
}

/** Not while a message tries whether the sink is back. */
function isBlockedFor(
  { state, openedAtMs, paused }: CircuitReading,
  nowMs: number,
  ms: number,
): boolean {
  const isOpen = state === 'open' || state === 'disabled'
  const sinceMs = Math.min(isOpen ? (openedAtMs ?? nowMs) : nowMs, paused?.sinceMs ?? nowMs)
  return nowMs - sinceMs > ms
}

async function gather(
  { drains, circuit, clock }: ReliefOptions,
  { name, keptPlaces }: ReliefSink,
  { signal, alive }: Until,
): Promise<void> {
  if (Object.keys(keptPlaces).length === 0) return
  const nowMs = clock.now()
  if (!isBlockedFor(await circuit.read(name, nowMs), nowMs, gatherAfterMs)) return
  const paging: Paging = { goesOn: async () => !signal.aborted, alive }
  for (const book of drains.booksOf(name)) {
    const gatherPage = async (refs: readonly string[]): Promise<number> => {
      const singles = refs.filter((ref) => parseRef(ref).kind === 'item')
      const gathered = await gatherItems(book, singles, keptPlaces)
      return gathered
    }
    await eachPage((page) => waitingRefs(book, name, page), gatherPage, paging)
  }
}

async function divert(
  options: ReliefOptions,
  sink: ReliefSink,
  { signal, alive }: Until,
): Promise<void> {
  const { drains, diverter, clock, logger } = options
  const goesOn = async (): Promise<boolean> => !signal.aborted && (await mayDivert(options, sink))
  if (!(await goesOn())) return
  let items = 0
  for (const book of drains.booksOf(sink.name)) {
    const work = { book, sink: sink.name, diverter, nowMs: clock.now() }
    items += await divertAll(work, { goesOn, alive })
  }
  const fields = { sink: sink.name, fallback: sink.fallback, items }
  if (items > 0) logger.warn(fields, 'the sink takes nothing: its items go to the fallback')
}

/**
 * A pause is the operator's: nothing goes elsewhere. While a message tries whether the sink is back, and
 * while the fallback takes nothing either, what waits stays.
 */
async function mayDivert(
  { circuit, clock }: ReliefOptions,
  { name, fallback, fallbackAfterMs }: ReliefSink,
): Promise<boolean> {
  if (fallback === undefined) return false
  const nowMs = clock.now()
  const { state, openedAtMs, paused } = await circuit.read(name, nowMs)
  if (paused !== undefined) return false
  const isLong = openedAtMs !== undefined && nowMs - openedAtMs >= fallbackAfterMs
  if (state !== 'disabled' && !(state === 'open' && isLong)) return false
  const other = await circuit.read(fallback, nowMs)
  return other.paused === undefined && other.state !== 'open' && other.state !== 'disabled'
}
