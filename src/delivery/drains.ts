/**
 * The drains of all sinks. A sink costs something while it has work: who made the work nudges its drain, other
 * processes hear of it by a hint within a second, and a slow pass over all accounts finds what no hint names.
 */
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Sink } from '../sinks/sink.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { type ItemChange, readSinkNames } from '../store/pending-items.ts'
import type { DueInfo, DueWork, WorkHints, WorkAnnouncer } from './due-accounts.ts'
import type { Orphans } from './orphans.ts'
import type { SinkDrain } from './sink-drain.ts'

export interface DrainsOptions {
  sinks: ReadonlyMap<string, Sink>
  createDrain: (sink: Sink) => SinkDrain
  ledgers: readonly AccountLedger[]
  hints: WorkHints
  orphans: Orphans
  /** How long an item waits for its full event. */
  detailWaitMs: number
  leaseMs: number
  clock: Clock
  logger: Logger
}

interface Runner {
  drain: SinkDrain
  isRunning: boolean
  ended: Promise<void>
}

/** Hints that are read at once. */
const maxHints = 1_000

/** By so much this process' clock may differ from Redis' own. */
const maxClockSkewMs = 300_000

/** Accounts that the slow pass asks at once. */
const ledgersAtOnce = 20

/** After a failure of a turn that is no sink's: Redis, or a defect. */
const failurePauseMs = 1_000

/** What an aborted send gets to write its outcome. */
const abortGraceMs = 500

export class Drains implements WorkAnnouncer {
  readonly #options: DrainsOptions
  readonly #runners = new Map<string, Runner>()
  /** By sink: books that have, or had, items for it. */
  readonly #ledgersBySink = new Map<string, Set<AccountLedger>>()
  readonly #stopping = new AbortController()
  #hasStarted = false

  constructor(options: DrainsOptions) {
    this.#options = options
  }

  start(): void {
    this.#hasStarted = true
  }

  async announce(account: string, work: readonly DueWork[]): Promise<void> {
    const pairs = new Map<string, Required<DueWork>>()
    for (const { sink, rank = 4, inMs = 0 } of work) {
      const known = pairs.get(sink)
      pairs.set(sink, {
        sink,
        rank: Math.max(known?.rank ?? rank, rank),
        inMs: Math.min(known?.inMs ?? inMs, inMs),
      })
    }
    for (const { sink, ...due } of pairs.values()) this.#nudge(account, sink, due)
    const hints = [...pairs.values()].map(({ sink, inMs }) => ({ account, sink, inMs }))
    await this.#options.hints.write(hints)
  }

  announceChanges(account: string, changes: readonly ItemChange[]): Promise<void> {
    return this.announce(
      account,
      changes.flatMap((change) => this.#toDueWork(change)),
    )
  }

  /** Takes up what other processes told of. */
  async readHintsOnce(): Promise<void> {
    const { sinks, hints } = this.#options
    const found = await hints.read(maxHints)
    const [mine, others] = partition(found, ({ sink }) => sinks.has(sink))
    for (const hint of mine) this.#nudge(hint.account, hint.sink, { hint })
    // of sinks that only another configuration knows, or none: its own processes, or the slow pass
    await hints.clear(others.map((hint) => ({ ...hint, inMs: undefined })))
  }

  /** Renews the leases of all that is in hand. */
  async renewOnce(): Promise<void> {
    const all = Promise.all([...this.#runners.values()].map(({ drain }) => drain.renew()))
    // where one part of Redis hangs, the leases of the others are renewed all the same
    await this.#waitForFirst(
      all.then(() => undefined),
      this.#options.leaseMs / 4,
    )
  }

  /** Looks at every account: nudges what is due, and holds or takes back what has no sink. */
  async reconcileOnce(signal?: AbortSignal, alive: () => void = () => undefined): Promise<void> {
    const { ledgers, orphans } = this.#options
    const failures: PromiseSettledResult<void>[] = []
    for (let at = 0; at < ledgers.length && !signal?.aborted; at += ledgersAtOnce) {
      const batch = ledgers
        .slice(at, at + ledgersAtOnce)
        .map((ledger) => this.#reconcileLedger(ledger))
      failures.push(
        ...(await Promise.allSettled(batch)).filter(({ status }) => status === 'rejected'),
      )
      alive()
    }
    orphans.report()
    const [failed] = failures
    if (failed?.status === 'rejected') throw failed.reason
  }

  ledgersFor(sink: string): readonly AccountLedger[] {
    return [...(this.#ledgersBySink.get(sink) ?? [])]
  }

  /** Claims nothing more, lets running sends finish until the deadline, then aborts them. */
  async stop(deadlineMs: number): Promise<void> {
    const { clock } = this.#options
    this.#stopping.abort()
    const all = [...this.#runners.values()]
    // what cannot be given back is due again when its lease ends
    const finishing = all.map(({ drain, ended }) =>
      drain.finish().then(
        () => ended,
        () => ended,
      ),
    )
    const finished = Promise.all(finishing)
    const over = new AbortController()
    void finished.catch(() => undefined).then(() => over.abort())
    void this.#renewUntil(over.signal)
    await clock.sleep(deadlineMs, over.signal)
    for (const { drain } of all) drain.abort()
    await clock.sleep(abortGraceMs, over.signal)
  }

  /** While what runs finishes: its loops have ended. */
  async #renewUntil(over: AbortSignal): Promise<void> {
    const { clock, leaseMs } = this.#options
    while (!over.aborted) {
      await clock.sleep(leaseMs / 4, over)
      if (!over.aborted) await this.renewOnce().catch(() => undefined)
    }
  }

  #nudge(account: string, sink: string, due: DueInfo): void {
    const runner = this.#ensureRunner(sink)
    if (!runner || !this.#hasStarted || this.#stopping.signal.aborted) return
    this.#noteLedger(account, sink)
    runner.drain.nudge(account, due)
    if (runner.isRunning) return
    runner.isRunning = true
    runner.ended = this.#run(runner, sink)
  }

  #ensureRunner(name: string): Runner | undefined {
    const { sinks, createDrain } = this.#options
    const known = this.#runners.get(name)
    const sink = sinks.get(name)
    if (known || !sink) return known
    const runner = { drain: createDrain(sink), isRunning: false, ended: Promise.resolve() }
    this.#runners.set(name, runner)
    return runner
  }

  #noteLedger(account: string, sink: string): void {
    const ledger = this.#options.ledgers.find((one) => one.account === account)
    if (ledger)
      this.#ledgersBySink.set(
        sink,
        (this.#ledgersBySink.get(sink) ?? new Set<AccountLedger>()).add(ledger),
      )
  }

  /** Turn after turn while there is something in hand, or soon due. */
  async #run(runner: Runner, sink: string): Promise<void> {
    const { clock, logger } = this.#options
    const { drain } = runner
    while (!drain.isIdle) {
      const ready = Promise.withResolvers<void>()
      drain.onReady(ready.resolve)
      try {
        const waitMs = await drain.step()
        if (waitMs !== 0 && !drain.isIdle) await this.#waitForFirst(ready.promise, waitMs)
      } catch (error) {
        logger.repeated.error({ sink, err: error }, 'work broke off; it comes again', {
          cause: `${sink} ${error instanceof Error ? error.name : 'unknown'}`,
          list: 'records',
          name: sink,
        })
        await clock.sleep(failurePauseMs) // also when stopping: nothing spins
      }
    }
    runner.isRunning = false
  }

  async #waitForFirst(ready: Promise<void>, waitMs: number | undefined): Promise<void> {
    if (waitMs === undefined) return ready
    const waited = new AbortController()
    await Promise.race([ready, this.#options.clock.sleep(waitMs, waited.signal)])
    waited.abort()
  }

  #toDueWork({ k: sink, rk: rank, kind }: ItemChange): DueWork[] {
    const { sinks, detailWaitMs } = this.#options
    if (kind === 'single') return [{ sink, rank }]
    if (kind === 'collect') return [{ sink, rank, inMs: sinks.get(sink)?.batch?.waitMs ?? 0 }]
    return kind === 'detail' ? [{ sink, rank, inMs: detailWaitMs }] : []
  }

  async #reconcileLedger(ledger: AccountLedger): Promise<void> {
    const { sinks, orphans, clock } = this.#options
    const names = await readSinkNames(ledger)
    if (names.length === 0) return
    const pipeline = ledger.redis.pipeline()
    for (const sink of names) {
      pipeline.zrange(ledger.key('due', sink), '0', '0', 'WITHSCORES')
      pipeline.scard(ledger.key('orphans', sink))
    }
    const replies = ((await pipeline.exec()) ?? []).map(([error, value]) => {
      if (error) throw error
      return value
    })
    for (const [i, sink] of names.entries()) {
      const [, dueText] = replies[2 * i] as string[]
      // a clock that differs from Redis' hides nothing: whoever claims asks Redis
      const isDue = dueText !== undefined && Number(dueText) <= clock.now() + maxClockSkewMs
      const hasOrphans = Number(replies[2 * i + 1]) > 0
      this.#noteLedger(ledger.account, sink)
      if (!sinks.has(sink)) {
        if (isDue) await orphans.hold(ledger, sink)
      } else {
        const isBack = hasOrphans && (await orphans.takeBack(ledger, sink)) > 0
        if (isDue || isBack) this.#nudge(ledger.account, sink, {})
      }
    }
  }
}

function partition<T>(all: readonly T[], matches: (entry: T) => boolean): [T[], T[]] {
  return [all.filter(matches), all.filter((entry) => !matches(entry))]
}
