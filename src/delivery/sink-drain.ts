/**
 * Drains one sink for all accounts: claims what is due, applies suppression, sends it, and writes
 * outcomes together with the opening of the next attempts. A claim changes no item; an attempt is
 * opened right before its send. The ledger is the truth, so a second process that claims the same
 * does no harm.
 */
import { randomUUID } from 'node:crypto'
import { settleMembers } from '../grouping/freeze.ts'
import type { Sink } from '../sinks/sink.ts'
import { type AccountLedger, parseRef } from '../store/account-ledger.ts'
import { type ItemChange, releaseUndetailed, type SinkBatchWaits } from '../store/pending-items.ts'
import {
  type AttemptResult,
  type AttemptOptions,
  attemptSend,
  type OpenMessage,
  countSettled,
  logOthers,
  type SendPace,
  reportToCircuit,
} from './attempt.ts'
import {
  advanceClaims,
  aheadMs,
  type Claim,
  claimDue,
  claimRoom,
  type Holder,
  maxClaims,
  type Message,
  type ClaimUpdate,
  type ClaimUpdateResult,
  type SettleResult,
} from './claims.ts'
import { DueAccounts, soonMs, type DueInfo, type Choice, type WorkHints } from './due-accounts.ts'
import { freezeBatches, type SuppressionOptions, selectSendable } from './suppression.ts'

export interface DrainOptions extends AttemptOptions, SuppressionOptions {
  pace: SendPace
  hints: Pick<WorkHints, 'write' | 'clear'>
  holder: Holder
  /** How often a shut circuit is read again. */
  circuitRecheckMs: number
  /** By configured sink: how long its batch waits. */
  batchWaits: SinkBatchWaits
  /** Announces the items that were released from their wait for a full event. */
  release: (account: string, made: ItemChange[]) => Promise<void>
}

/** A claimed message that was not begun. */
interface ClaimedMessage {
  ledger: AccountLedger
  message: Message
  /** Identifies the attempt: if it is opened twice because an answer was lost, it is still one. */
  token: string
  renewedAtMs: number
  /** The message is the circuit's probe. */
  isProbe: boolean
}

interface RunningSend extends ClaimedMessage {
  cutOff: AbortController
}

interface EndedSend extends AttemptResult {
  ledger: AccountLedger
  message: Message
  token: string
  isProbe: boolean
  /** A write of its outcome failed, and may have reached Redis all the same. */
  mayBeWritten?: boolean
}

/** A claim update in progress: how many sends it opens, and how long their places are reserved. */
interface RunningUpdate {
  opening: number
  untilMs: number
}

/** How long an admission by the circuit holds: another replica may have found the sink down. */
const admittedForMs = 250

/** A frozen process may have lost its claims: it sends nothing that it renewed longer ago. */
const maxLeaseAgeMs = 5_000
const renewalsPerLease = 5

/** Wait after a failure that is not the sink's. */
const errorRetryMs = 5_000

/** How long an account is left alone whose claim or claim update failed. */
const failedRestMs = 1_000

/** A claim or claim update that takes longer no longer delays other accounts. */
const hungAfterMs = 500

/** Shortest interval between two reports of success. */
const reportMs = 500

export class SinkDrain {
  readonly #sink: Sink
  readonly #options: DrainOptions
  readonly #due = new DueAccounts()
  /** Most severe first. */
  #waiting: ClaimedMessage[] = []
  readonly #running = new Map<string, RunningSend>()
  #ended: EndedSend[] = []
  /** Work that runs beside the steps. */
  readonly #chores = new Set<Promise<void>>()
  #ready = (): void => undefined
  #isFinishing = false
  /** When the circuit last admitted a send, and until when it admits none, monotonic ms. */
  #admittedAtMs = -Infinity
  #shutUntilMs = -Infinity
  /** When the next message may go to a sink with a limit, as far as known here, monotonic ms. */
  #nextPlaceMs = -Infinity
  /** When a success was last reported to the circuit, monotonic ms; -Infinity: report the next. */
  #toldOkAtMs = -Infinity
  #claimCount = 0
  /** Updates and claims run beside the steps, one per account: one that hangs stops no other. */
  readonly #updates = new Map<AccountLedger, RunningUpdate>()
  /** Since when, by account, monotonic ms. */
  readonly #claiming = new Map<string, number>()
  readonly #isBusy = (account: string): boolean => this.#claiming.has(account)
  readonly #failures: { error: unknown }[] = []

  constructor(sink: Sink, options: DrainOptions) {
    this.#sink = sink
    this.#options = options
  }

  /** Something of the account may be due. */
  nudge(account: string, due: DueInfo = {}): void {
    this.#due.note(account, due, this.#nowMs())
    this.#ready()
  }

  /** Sets the listener that is called whenever a step would find something to do. */
  onReady(listener: () => void): void {
    this.#ready = listener
  }

  /**
   * Makes one step: starts writing outcomes, opening attempts, and claiming more. Returns the
   * longest wait until the next step, ms; undefined: until `onReady`.
   */
  async step(): Promise<number | undefined> {
    await this.#startUpdates()
    this.#startClaim()
    return this.#nextStepMs()
  }

  /** What Redis threw at the work of an account, the oldest first; others go on meanwhile. */
  takeFailure(): { error: unknown } | undefined {
    return this.#failures.shift()
  }

  /** Renews the leases of what is in hand, and of the probe; a send whose claim was lost is cut off. */
  async renew(): Promise<void> {
    const nowMs = this.#nowMs()
    const eachMs = this.#options.holder.leaseMs / renewalsPerLease
    const held = [...this.#waiting, ...this.#running.values()]
    const old = held.filter(({ renewedAtMs }) => nowMs - renewedAtMs >= eachMs)
    const ledgers = [...Map.groupBy(old, ({ ledger }) => ledger)]
    const renewing = ledgers.map(async ([ledger, messages]) => {
      const { lost } = await this.#write(ledger, {
        renew: messages.map(({ message: { ref } }) => ref),
      })
      for (const one of messages) {
        one.renewedAtMs = nowMs
        if (lost.includes(one.message.ref)) this.#drop(one)
      }
    })
    if (held.some(({ isProbe }) => isProbe))
      renewing.push(this.#options.circuit.renewProbe(this.#sink.name))
    await Promise.allSettled(renewing) // what is not renewed is somebody else's when its lease ends
  }

  /** Claims nothing more, and gives back claims that were not begun. */
  async finish(): Promise<void> {
    this.#isFinishing = true
    const accounts = new Set(this.#waiting.map(({ ledger }) => ledger.account))
    await this.#giveBack()
    const sink = this.#sink.name
    await this.#options.hints.write([...accounts].map((account) => ({ account, sink, inMs: 0 })))
    this.#ready()
  }

  /** Aborts running sends. */
  abort(): void {
    for (const { cutOff } of this.#running.values()) cutOff.abort()
  }

  /** Messages, updates and chores that this process has in hand. */
  get inHand(): number {
    const asides = this.#chores.size + this.#claiming.size + this.#updates.size
    return this.#waiting.length + this.#running.size + this.#ended.length + asides
  }

  /** Nothing in hand, and nothing soon due. */
  get isIdle(): boolean {
    return this.inHand === 0 && (this.#isFinishing || this.#due.isEmpty)
  }

  #nowMs(): number {
    return this.#options.clock.monotonic()
  }

  get #freeSlots(): number {
    const nowMs = this.#nowMs()
    const updates = [...this.#updates.values()].filter(({ untilMs }) => untilMs > nowMs)
    const opening = updates.reduce((sum, update) => sum + update.opening, 0)
    return this.#sink.concurrency - this.#running.size - opening
  }

  /** How many claimed messages wait, without those whose part of Redis hangs. */
  get #readyCount(): number {
    const nowMs = this.#nowMs()
    const isHung = ({ ledger }: ClaimedMessage): boolean =>
      (this.#updates.get(ledger)?.untilMs ?? nowMs) < nowMs
    return this.#waiting.length - this.#waiting.filter(isHung).length
  }

  #write(ledger: AccountLedger, update: ClaimUpdate): Promise<ClaimUpdateResult> {
    return advanceClaims(ledger, { ...this.#options.holder, by: this.#options.replica }, update)
  }

  // Claiming ---------------------------------------------------------------------------------------

  #startClaim(): void {
    const nowMs = this.#nowMs()
    if (this.#isFinishing || this.#claimingUntilMs > nowMs) return
    if (nowMs < this.#shutUntilMs || this.#nextPlaceMs - nowMs > aheadMs) return
    const leastKnown = this.#leastKnown
    if (leastKnown === 0) this.#claimCount = (this.#claimCount + 1) % 10
    const isOldest = leastKnown === 0 && this.#claimCount === 0 // one in ten, whatever its rank
    const choice = this.#due.choose(nowMs, { isOldest, isBusy: this.#isBusy, leastKnown })
    if (!choice) return
    const { chosen } = choice
    this.#claiming.set(chosen.account, nowMs)
    void this.#claimMore({ ...choice, leastRank: Math.max(choice.leastRank, leastKnown) })
      .catch((error: unknown) => {
        // let other accounts go first: perhaps only this one's part of Redis fails
        this.#due.noteServed(chosen, { ...chosen, inMs: failedRestMs }, this.#nowMs())
        this.#failures.push({ error })
      })
      .then(() => {
        this.#claiming.delete(chosen.account)
        this.#ready()
      })
  }

  /** While enough waits in hand, only what is worse than all of that is claimed. */
  get #leastKnown(): number {
    if (this.#readyCount < this.#sink.concurrency) return 0
    if (this.#readyCount >= maxClaims) return Infinity
    return (this.#waiting[0]?.message.rank ?? 0) + 1
  }

  /** Until when running claims keep further ones waiting, monotonic ms. */
  get #claimingUntilMs(): number {
    return Math.max(-Infinity, ...this.#claiming.values()) + hungAfterMs
  }

  async #claimMore(choice: Choice): Promise<void> {
    const { circuit } = this.#options
    const nowMs = this.#nowMs()
    const room = claimRoom(this.#sink) - this.#readyCount
    const { count, waitMs, isProbe } = await circuit.admit(this.#sink.name, Math.max(1, room))
    if (count === 0) return this.#shut(waitMs)
    if (isProbe) void this.#giveBack() // what was claimed before the circuit opened
    this.#admittedAtMs = nowMs
    let hasFound = false
    try {
      hasFound = await this.#claimFrom(choice, { count, isProbe })
    } finally {
      if (!hasFound && isProbe) await this.#releaseProbe()
    }
  }

  /** Stops while the circuit is shut: claims are given back, hints put off. */
  async #shut(waitMs: number): Promise<void> {
    this.#shutUntilMs = this.#nowMs() + Math.min(waitMs, this.#options.circuitRecheckMs)
    this.#toldOkAtMs = -Infinity // report the probe's success at once
    const inMs = Math.max(waitMs, soonMs)
    void this.#giveBack()
    await this.#options.hints.clear(this.#due.takeHints().map((hint) => ({ ...hint, inMs })))
  }

  /** Claims for one account; resolves with whether anything is to be sent. */
  async #claimFrom(
    { chosen, rivals, leastRank }: Choice,
    { count, isProbe }: { count: number; isProbe: boolean },
  ): Promise<boolean> {
    const { account, rank } = chosen
    const ledger = this.#options.findLedger(account)
    if (!ledger) {
      this.#due.drop(account)
      if (chosen.hint && this.#options.standing.isNewest)
        void this.#addChore(this.#options.hints.clear([{ ...chosen.hint, inMs: undefined }]))
      return false
    }
    const renewedAtMs = this.#nowMs()
    const { standing, holder } = this.#options
    const max = Math.max(1, Math.ceil(count / (1 + rivals)))
    const known = standing.isNewest ? undefined : this.#sink.destinations.map(({ id }) => id)
    const request = { sink: this.#sink.name, max, leastRank, known }
    const { claims, left, topRank, nextInMs, others } = await claimDue(ledger, holder, request)
    if (others > 0) logOthers(this.#options, this.#sink, { account, messages: others })
    const fresh = claims.filter((claim) => !this.#holds(ledger, claim))
    const { messages, againInMs } = await this.#selectMessages(ledger, fresh, count)
    const nextMs = left > 0 ? 0 : Math.min(nextInMs ?? Infinity, againInMs)
    const next = { inMs: nextMs, rank: topRank ?? rank, knownRank: topRank ?? 0 }
    const hint = this.#due.noteServed(chosen, next, this.#nowMs())
    const inMs = nextMs === Infinity ? undefined : nextMs
    // while others run that know what is left to them, their hint stays
    if (hint && (others === 0 || standing.isActive))
      void this.#addChore(this.#options.hints.clear([{ ...hint, inMs }]))
    const common = { ledger, renewedAtMs, isProbe }
    const added = messages.map((message) => ({ ...common, message, token: randomUUID() }))
    this.#waiting = [...this.#waiting, ...added].toSorted((a, b) => b.message.rank - a.message.rank)
    if (this.#isFinishing) await this.#giveBack()
    return messages.length > 0
  }

  /** Whether it is in hand here already: its lease ended while Redis was away, and it goes on. */
  #holds(ledger: AccountLedger, { ref }: Claim): boolean {
    const inHand = [...this.#waiting, ...this.#ended, ...this.#running.values()]
    return inHand.some((one) => one.ledger === ledger && one.message.ref === ref)
  }

  /** Picks messages to send and handles other claims; `againInMs`: when a batch's rest is due. */
  async #selectMessages(
    ledger: AccountLedger,
    claims: readonly Claim[],
    max: number,
  ): Promise<{ messages: Message[]; againInMs: number }> {
    const { findLedger } = this.#options
    const sink = this.#sink
    const isForMachines = sink.audience === 'machines'
    const messages: Message[] = []
    let againInMs = Infinity
    for (const claim of claims) {
      if (claim.kind === 'detail')
        void this.#addChore(this.#releaseWithoutDetail(ledger, claim.ref))
      else if (claim.kind === 'settling') {
        void this.#addChore(settleMembers(ledger, claim.ref, claim.batch, findLedger))
      } else if (claim.kind === 'unfreezing' || (claim.kind === 'summary' && isForMachines)) {
        // a summary was frozen while the sink was one for people: machines get each event
        void this.#addChore(this.#unfreeze(ledger, claim.ref))
      } else if (claim.kind !== 'collection') messages.push(claim)
      else {
        const { frozen, restInMs } = await this.#freeze(ledger, claim, max)
        messages.push(...frozen)
        againInMs = Math.min(againInMs, restInMs)
      }
    }
    return { messages: await selectSendable(this.#options, { ledger, sink }, messages), againInMs }
  }

  async #unfreeze(ledger: AccountLedger, ref: string): Promise<void> {
    await this.#options.rerouter?.unfreeze(ledger, ref)
    this.nudge(ledger.account)
  }

  #freeze(ledger: AccountLedger, claim: Claim, count: number): ReturnType<typeof freezeBatches> {
    const max = Math.min(count, this.#sink.concurrency) // frozen ones wait until all are frozen
    return freezeBatches(this.#options, { ledger, sink: this.#sink, claim, max })
  }

  /** The wait for the full event is over: all items of the record go on without it. */
  async #releaseWithoutDetail(ledger: AccountLedger, ref: string): Promise<void> {
    const { batchWaits, release } = this.#options
    const parsed = parseRef(ref)
    if (parsed.kind !== 'item') return
    await release(ledger.account, await releaseUndetailed(ledger, parsed.recordId, batchWaits))
  }

  // Sending ----------------------------------------------------------------------------------------

  /** Starts claim updates, which write outcomes and open attempts: at most one per account. */
  async #startUpdates(): Promise<void> {
    // without an await where none is opened: what ends meanwhile would be settled without a successor
    const opening = this.#mayOpen ? await this.#takeNext() : []
    const settling = this.#ended.filter(({ ledger }) => !this.#updates.has(ledger))
    this.#ended = this.#ended.filter(({ ledger }) => this.#updates.has(ledger))
    for (const ledger of new Set([...settling, ...opening].map((entry) => entry.ledger))) {
      this.#startUpdate(
        ledger,
        settling.filter((entry) => entry.ledger === ledger),
        opening.filter((entry) => entry.ledger === ledger),
      )
    }
  }

  #startUpdate(ledger: AccountLedger, settling: EndedSend[], opening: ClaimedMessage[]): void {
    this.#updates.set(ledger, { opening: opening.length, untilMs: this.#nowMs() + hungAfterMs })
    void this.#updateLedger(ledger, settling, opening)
      .catch((error: unknown) => {
        this.#failures.push({ error })
        return this.#options.clock.sleep(failedRestMs)
      })
      .then(() => {
        this.#updates.delete(ledger)
        this.#ready()
      })
  }

  /** Takes messages to open now: as many as slots are free, or one per send slot of the pace. */
  async #takeNext(): Promise<ClaimedMessage[]> {
    if (!(await this.#isStillAdmitted())) return []
    let count = Math.max(0, this.#freeSlots) // below 0 when updates that hung have gone on meanwhile
    if (this.#sink.limitPerSecond !== undefined) {
      const { isTaken, nextInMs } = await this.#options.pace.take(this.#sink)
      this.#nextPlaceMs = this.#nowMs() + nextInMs
      count = Number(isTaken)
    }
    const idle = this.#waiting.filter(({ ledger }) => !this.#updates.has(ledger))
    const next = new Set(idle.slice(0, count))
    this.#waiting = this.#waiting.filter((message) => !next.has(message))
    return [...next]
  }

  get #mayOpen(): boolean {
    const isEarly = this.#nowMs() < this.#nextPlaceMs
    return !this.#isFinishing && this.#freeSlots > 0 && !isEarly && this.#hasNext
  }

  get #hasNext(): boolean {
    return this.#waiting.some(({ ledger }) => !this.#updates.has(ledger))
  }

  /** Whether claimed messages may still be sent; otherwise they are given back. */
  async #isStillAdmitted(): Promise<boolean> {
    const nowMs = this.#nowMs()
    if (nowMs - this.#admittedAtMs < admittedForMs || this.#waiting[0]?.isProbe) return true
    const { count, waitMs, isProbe } = await this.#options.circuit.admit(this.#sink.name, 1)
    if (isProbe) await this.#releaseProbe() // a probe gets a claim of its own
    if (count === 0 || isProbe) await this.#shut(waitMs)
    else this.#admittedAtMs = nowMs
    return count > 0 && !isProbe
  }

  async #updateLedger(
    ledger: AccountLedger,
    settling: EndedSend[],
    opening: ClaimedMessage[],
  ): Promise<void> {
    const begin = opening.map(({ message: { ref }, token }) => ({ ref, token }))
    const renewedAtMs = this.#nowMs()
    const settle = settling.map(({ message: { ref }, token, outcome }) => ({ ref, token, outcome }))
    let answer: ClaimUpdateResult
    try {
      answer = await this.#write(ledger, { settle, begin })
    } catch (error) {
      const again = settling.map((ended) => ({ ...ended, mayBeWritten: true }))
      this.#ended.push(...again) // a later update writes them
      if (!this.#isFinishing) this.#waiting.unshift(...opening)
      else this.#releaseProbeOf(opening) // the messages are due again when their leases end
      throw error
    } finally {
      this.#updates.set(ledger, { opening: 0, untilMs: renewedAtMs + hungAfterMs })
    }
    for (const [i, held] of opening.entries()) {
      const opened = answer.begun[i]
      // undefined: another process holds it by now, or there is nothing to send any more
      if (opened) this.#start({ ...held, renewedAtMs }, { ...held.message, ...opened })
      else this.#releaseProbeOf([held])
    }
    await this.#afterSettling(settling, answer.settled)
  }

  #start(held: ClaimedMessage, message: OpenMessage): void {
    const { ledger, token, isProbe } = held
    const running = { ...held, cutOff: new AbortController() }
    const key = runningKey(ledger, message)
    this.#running.set(key, running)
    void this.#send(running, message).then((attempted) => {
      this.#running.delete(key)
      this.#ended.push({ ledger, message, token, ...attempted, isProbe })
      if (!this.#updates.has(ledger)) this.#ready()
    })
  }

  async #send(running: RunningSend, message: OpenMessage): Promise<AttemptResult> {
    const { ledger, cutOff } = running
    const isHeld = (): boolean => this.#nowMs() - running.renewedAtMs <= maxLeaseAgeMs
    const context = { ledger, sink: this.#sink, signal: cutOff.signal, isHeld }
    try {
      return await attemptSend(this.#options, context, message)
    } catch (error) {
      // not the sink's failure: Redis, or a defect, before anything was sent
      const about = { sink: this.#sink.name, ref: message.ref, err: error }
      this.#options.logger.warn(about, 'work was interrupted; it is retried')
      const outcome = { outcome: 'retry' as const, inMs: errorRetryMs, counts: false }
      return { outcome, sinkResult: undefined }
    }
  }

  // After an outcome -------------------------------------------------------------------------------

  async #afterSettling(settling: EndedSend[], settled: readonly SettleResult[]): Promise<void> {
    for (const [i, ended] of settling.entries()) {
      const answer = settled[i]
      const isOurs = answer?.status === 'already' && ended.mayBeWritten
      if (answer?.status === 'settled' || (answer && isOurs)) this.#followUp(ended, answer)
    }
    for (const ended of settling) await this.#reportResult(ended)
  }

  #followUp(ended: EndedSend, { batch }: SettleResult): void {
    const { rerouter, findLedger } = this.#options
    const { ledger, message, outcome, isGivenUp } = ended
    if (isGivenUp) void this.#addChore(rerouter?.reroute(ledger, message.ref))
    if (batch) void this.#addChore(settleMembers(ledger, message.ref, batch, findLedger))
    countSettled(this.#options, this.#sink, ended)
    const isAgain = outcome.outcome === 'unsent' || outcome.outcome === 'split'
    const inMs = isAgain ? 0 : outcome.inMs // only a retry has one
    if (inMs === undefined) return
    if (inMs <= soonMs) this.nudge(ledger.account, { inMs, rank: message.rank })
    const hint = { account: ledger.account, sink: this.#sink.name, inMs }
    void this.#addChore(this.#options.hints.write([hint]))
  }

  /** Reports every failure to the circuit, and success at most once per `reportMs`. */
  async #reportResult(ended: EndedSend): Promise<void> {
    const atMs = this.#nowMs()
    const isOk = ended.sinkResult === 'ok'
    if (isOk && !ended.isProbe && atMs - this.#toldOkAtMs < reportMs) return
    this.#toldOkAtMs = isOk ? atMs : -Infinity
    const state = await reportToCircuit(this.#options, this.#sink, ended)
    if (state === 'back') void this.#addChore(this.#options.retryNow?.retryAll(this.#sink.name))
    if (state !== 'shut') return
    this.#admittedAtMs = -Infinity
    void this.#giveBack()
  }

  /** Runs work beside the steps. Work that fails is due again when its lease ends. */
  async #addChore(work: Promise<unknown> | undefined): Promise<void> {
    if (!work) return
    const about = { sink: this.#sink.name }
    const logFailure = (err: unknown): void =>
      this.#options.logger.warn({ ...about, err }, 'work was interrupted; it is retried')
    const chore = work.then(() => undefined, logFailure)
    this.#chores.add(chore)
    await chore
    this.#chores.delete(chore)
    this.#ready()
  }

  // Leases -----------------------------------------------------------------------------------------

  async #giveBack(): Promise<void> {
    const claimed = this.#waiting.splice(0)
    if (claimed.length === 0) return
    const byLedger = [...Map.groupBy(claimed, ({ ledger }) => ledger)]
    const back = byLedger.map((one) => this.#giveBackTo(...one))
    this.#releaseProbeOf(claimed)
    await this.#addChore(Promise.all(back))
  }

  #releaseProbeOf(unsent: ClaimedMessage[]): void {
    if (unsent.some(({ isProbe }) => isProbe)) void this.#addChore(this.#releaseProbe())
  }

  #releaseProbe(): Promise<void> {
    return this.#options.circuit.releaseProbe(this.#sink.name)
  }

  async #giveBackTo(ledger: AccountLedger, messages: ClaimedMessage[]): Promise<void> {
    const back = messages.map(({ message: { ref, rank } }) => ({ ref, rank }))
    await this.#write(ledger, { giveBack: back })
    this.nudge(ledger.account, { rank: Math.max(...back.map(({ rank }) => rank)) })
  }

  #drop(held: ClaimedMessage): void {
    this.#running.get(runningKey(held.ledger, held.message))?.cutOff.abort()
    if (!this.#waiting.includes(held)) return
    this.#waiting = this.#waiting.filter((waiting) => waiting !== held)
    this.#releaseProbeOf([held])
  }

  #nextStepMs(): number | undefined {
    const nowMs = this.#nowMs()
    const times: number[] = []
    for (const { untilMs } of this.#updates.values()) if (untilMs > nowMs) times.push(untilMs)
    const isFree = this.#freeSlots > 0 && !this.#isFinishing
    if (isFree && this.#hasNext) times.push(Math.max(this.#nextPlaceMs, this.#shutUntilMs))
    const nextMs = this.#due.nextMs({ isBusy: this.#isBusy, leastKnown: this.#leastKnown })
    const claimMs = Math.max(this.#shutUntilMs, this.#nextPlaceMs - aheadMs, this.#claimingUntilMs)
    if (!this.#isFinishing && nextMs !== undefined) times.push(Math.max(nextMs, claimMs))
    return times.length === 0 ? undefined : Math.max(0, Math.min(...times) - nowMs)
  }
}

function runningKey({ account }: AccountLedger, { ref }: Message): string {
  return `${account} ${ref}`
}
