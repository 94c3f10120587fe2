/**
 * Runs the drains of all sinks. A sink without work costs nothing. The process that creates work
 * nudges its own drain, and a slow pass over all accounts finds what others created or left.
 */
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Sink } from '../sinks/sink.ts'
import type { AccountLedger, Standing } from '../store/account-ledger.ts'
import { type ItemChange, readSinkNames } from '../store/pending-items.ts'
import type { DueInfo, DueWork, WorkAnnouncer } from './due-accounts.ts'
import type { GoneSinks } from './relief/gone-sinks.ts'
import type { SinkDrain } from './sink-drain.ts'

export interface DrainsOptions {
  sinks: ReadonlyMap<string, Sink>
  createDrain: (sink: Sink) => SinkDrain
  ledgers: readonly AccountLedger[]
  goneSinks: GoneSinks
  standing: Pick<Standing, 'isForeign'>
  /** Members have joined groups of an account. */
  noteGroups: (account: string) => void
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

/** How far ahead the slow pass looks: further than to the next pass, and to the end of a lease. */
const aheadMs = 60_000

/** Accounts that the slow pass reads at the same time. */
const ledgersAtOnce = 20

/** Pause after a tick itself fails: what all accounts share is away, or a defect. */
const failurePauseMs = 1_000

/** A reason of its own: the default one is an error with a stack, made for each event. */
const waitIsOver = 'the wait is over'

/** Time that aborted sends have to write their outcomes. */
const abortGraceMs = 500

export class Drains implements WorkAnnouncer {
  readonly #options: DrainsOptions
  readonly #runners = new Map<string, Runner>()
  /** By sink: account ledgers that have, or had, items for it. */
  readonly #ledgersBySink = new Map<string, Set<AccountLedger>>()
  readonly #stopping = new AbortController()
  #hasStarted = false

  constructor(options: DrainsOptions) {
    this.#options = options
  }

  start(): void {
    this.#hasStarted = true
  }

  announce(account: string, work: readonly DueWork[]): void {
    for (const [sink, all] of Map.groupBy(work, ({ sink: name }) => name)) {
      const rank = Math.max(...all.map((due) => due.rank ?? 4))
      const inMs = Math.min(...all.map((due) => due.inMs ?? 0))
      this.#nudge(account, sink, { rank, inMs })
    }
  }

  announceChanges(account: string, changes: readonly ItemChange[]): void {
    if (changes.some(({ kind }) => kind === 'group')) this.#options.noteGroups(account)
    this.announce(
      account,
      changes.flatMap((change) => this.#toDueWork(change)),
    )
  }

  /** Renews the leases of everything this process has claimed. */
  async renewOnce(): Promise<void> {
    const all = Promise.all([...this.#runners.values()].map(({ drain }) => drain.renew()))
    // if one part of Redis hangs, the leases in the others are still renewed
    await this.#waitForFirst(
      all.then(() => undefined),
      this.#options.leaseMs / 4,
    )
  }

  /** The slow pass: nudges what is due in every account, and notes which sinks are gone or back. */
  async reconcileOnce(signal?: AbortSignal, alive: () => void = () => undefined): Promise<void> {
    const { ledgers } = this.#options
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
    // a claim that cannot be given back is due again when its lease ends
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
    over.abort()
  }

  /** Renews leases while running sends finish, because the regular loops have already ended. */
  async #renewUntil(over: AbortSignal): Promise<void> {
    const { clock, leaseMs } = this.#options
    while (!over.aborted) {
      await clock.sleep(leaseMs / 4, over)
      if (!over.aborted) await this.renewOnce().catch(() => undefined)
    }
  }

  #nudge(account: string, sink: string, due: DueInfo): void {
    if (this.#options.standing.isForeign(account)) return
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

  /** Ticks the drain until it has nothing in hand and nothing is due soon. */
  async #run(runner: Runner, sink: string): Promise<void> {
    const { drain } = runner
    while (!drain.isIdle) {
      const ready = Promise.withResolvers<void>()
      drain.onReady(ready.resolve)
      try {
        const waitMs = await drain.tick()
        this.#logFailures(drain, sink)
        if (waitMs !== 0 && !drain.isIdle) await this.#waitForFirst(ready.promise, waitMs)
      } catch (error) {
        this.#logFailure(sink, error)
        // also while stopping, so that the loop does not spin
        await this.#options.clock.sleep(failurePauseMs)
      }
    }
    runner.isRunning = false
  }

  #logFailures(drain: SinkDrain, sink: string): void {
    let failure = drain.takeFailure()
    while (failure) {
      this.#logFailure(sink, failure.error)
      failure = drain.takeFailure()
    }
  }

  #logFailure(sink: string, error: unknown): void {
    const { logger } = this.#options
    logger.repeated.error({ sink, err: error }, 'work was interrupted; it is retried', {
      cause: `${sink} ${error instanceof Error ? error.name : 'unknown'}`,
      list: 'records',
      name: sink,
    })
  }

  async #waitForFirst(ready: Promise<void>, waitMs: number | undefined): Promise<void> {
    if (waitMs === undefined) return ready
    const waited = new AbortController()
    await Promise.race([ready, this.#options.clock.sleep(waitMs, waited.signal)])
    waited.abort(waitIsOver)
  }

  #toDueWork({ k: sink, rk: rank, kind }: ItemChange): DueWork[] {
    const { sinks, detailWaitMs } = this.#options
    if (kind === 'single') return [{ sink, rank }]
    if (kind === 'collect') return [{ sink, rank, inMs: sinks.get(sink)?.batch?.waitMs ?? 0 }]
    return kind === 'detail' ? [{ sink, rank, inMs: detailWaitMs }] : []
  }

  async #reconcileLedger(ledger: AccountLedger): Promise<void> {
    const { sinks, goneSinks, standing, clock } = this.#options
    if (standing.isForeign(ledger.account)) return
    const names = await readSinkNames(ledger)
    if (names.length === 0) return
    const pipeline = ledger.redis.pipeline()
    for (const sink of names) {
      pipeline.zrange(ledger.key('due', sink), '0', '0', 'WITHSCORES')
      pipeline.sismember(ledger.key('gone'), sink)
    }
    const replies = ((await pipeline.exec()) ?? []).map(([error, value]) => {
      if (error) throw error
      return value
    })
    for (const [i, sink] of names.entries()) {
      const [, dueText] = replies[2 * i] as string[]
      const isDue = dueText !== undefined && Number(dueText) <= clock.now() + aheadMs
      const isGone = replies[2 * i + 1] === 1
      this.#noteLedger(ledger.account, sink)
      if (!sinks.has(sink)) {
        if (isDue) await goneSinks.note(ledger, sink)
      } else {
        if (isGone) await goneSinks.takeBack(ledger, sink)
        if (isDue) this.#nudge(ledger.account, sink, {})
      }
    }
  }
}
