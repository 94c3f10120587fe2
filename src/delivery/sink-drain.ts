/**
 * Drains one sink for all accounts: claims what is due, applies suppression, sends it, and writes
 * outcomes together with the opening of the next attempts. A claim changes no item; an attempt is
 * opened right before its send. The ledger is the truth, so a second process that claims the same
 * does no harm.
 */
import { randomUUID } from 'node:crypto'
import { settleMembers } from '../grouping/freeze.ts'
import type { Sink } from '../sinks/sink.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { Admission } from './admission.ts'
import {
  type AttemptResult,
  type AttemptOptions,
  attemptSend,
  type OpenMessage,
  countSettled,
  type SendPace,
} from './send/attempt.ts'
import type { AdmitResult } from './circuit.ts'
import {
  advanceClaims,
  aheadMs,
  type Claim,
  claimDue,
  type ClaimRequest,
  claimRoom,
  type Holder,
  maxClaims,
  type Message,
  type ClaimUpdate,
  type ClaimUpdateResult,
  type SettleResult,
} from './claims.ts'
import { type ClaimedWorkOptions, selectMessages } from './claimed-work.ts'
import { type DueAccount, DueAccounts, type DueInfo } from './due-accounts.ts'

export interface DrainOptions extends AttemptOptions, ClaimedWorkOptions {
  pace: SendPace
  holder: Holder
  /** How often a shut circuit is read again. */
  circuitRecheckMs: number
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
  beganMs: number
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

/** A frozen process may have lost its claims: it sends nothing that it renewed longer ago. */
const maxLeaseAgeMs = 5_000
const renewalsPerLease = 5

/** Until the next probe where the last one found no message. */
const idleProbeMs = 1_000

/** Wait after a failure that is not the sink's. */
const errorRetryMs = 5_000

/** How long an account is left alone whose claim or claim update failed. */
const failedRestMs = 1_000

/** How long a message is left alone whose destination only a newer configuration has. */
const unknownRestMs = 5_000

/** A send that takes longer gives its slot to another, which keeps its own: a mail server may answer in 10 min. */
const longSendMs = 30_000

/** A claim or claim update that takes longer no longer delays other accounts. */
const hungAfterMs = 500

export class SinkDrain {
  readonly #sink: Sink
  readonly #options: DrainOptions
  readonly #admission: Admission
  readonly #due = new DueAccounts()
  /** Most severe first. */
  #waiting: ClaimedMessage[] = []
  readonly #running = new Map<string, RunningSend>()
  #ended: EndedSend[] = []
  /** Work that runs beside the ticks. */
  readonly #chores = new Set<Promise<void>>()
  #ready = (): void => undefined
  #isFinishing = false
  /** Until when the circuit admits no send, monotonic ms. */
  #shutUntilMs = -Infinity
  /** When the next message may go to a sink with a limit, as far as known here, monotonic ms. */
  #nextPlaceMs = -Infinity
  #claimCount = 0
  /** Updates and claims run beside the ticks, one per account: one that hangs stops no other. */
  readonly #updates = new Map<AccountLedger, RunningUpdate>()
  /** Since when, by account, monotonic ms. */
  readonly #claiming = new Map<string, number>()
  readonly #isBusy = (account: string): boolean => this.#claiming.has(account)
  readonly #failures: { error: unknown }[] = []

  constructor(sink: Sink, options: DrainOptions) {
    this.#sink = sink
    this.#options = options
    this.#admission = new Admission(sink, options)
  }

  /** Something of the account may be due. */
  nudge(account: string, due: DueInfo = {}): void {
    this.#due.note(account, due, this.#nowMs())
    this.#ready()
  }

  /** Sets the listener that is called whenever a tick would find something to do. */
  onReady(listener: () => void): void {
    this.#ready = listener
  }

  /**
   * One tick: starts writing outcomes, opening attempts, and claiming more. Returns the
   * longest wait until the next tick, ms; undefined: until `onReady`.
   */
  async tick(): Promise<number | undefined> {
    await this.#startUpdates()
    this.#startClaim()
    return this.#nextTickMs()
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
    renewing.push(this.#admission.renewProbes(held))
    await Promise.allSettled(renewing) // what is not renewed is somebody else's when its lease ends
  }

  /** Claims nothing more, and gives back claims that were not begun. */
  async finish(): Promise<void> {
    this.#isFinishing = true
    await this.#giveBack()
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
    const running = [...this.#running.values()]
    const long = running.filter(({ beganMs }) => nowMs - beganMs >= longSendMs).length
    const { concurrency } = this.#sink
    return concurrency + Math.min(long, concurrency) - running.length - opening
  }

  /** How many claimed messages wait, without those whose part of Redis hangs. */
  get #readyCount(): number {
    const nowMs = this.#nowMs()
    const isHung = ({ ledger }: ClaimedMessage): boolean =>
      (this.#updates.get(ledger)?.untilMs ?? nowMs) < nowMs
    return this.#waiting.length - this.#waiting.filter(isHung).length
  }

  async #timed<T>(stage: 'claim' | 'settle', work: Promise<T>): Promise<T> {
    const beganMs = this.#nowMs()
    try {
      return await work
    } finally {
      const seconds = (this.#nowMs() - beganMs) / 1000
      this.#options.metrics.deliveryStageSeconds.observe({ stage }, seconds)
    }
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
    const isProbe = this.#admission.isShut
    const chosen = this.#due.choose(nowMs, { isOldest, isProbe, isBusy: this.#isBusy, leastKnown })
    if (!chosen) return
    this.#claiming.set(chosen.account, nowMs)
    void this.#claimMore(chosen, Math.max(1, leastKnown))
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

  async #claimMore(chosen: DueAccount, leastRank: number): Promise<void> {
    const room = claimRoom(this.#sink) - this.#readyCount
    const admitted = await this.#admission.ask(Math.max(1, room))
    const { count, waitMs, isProbe } = admitted
    if (count === 0) {
      this.#shut(waitMs)
      return
    }
    if (isProbe) void this.#giveBack() // what was claimed before the circuit opened
    let hasFound = false
    try {
      hasFound = await this.#claimFrom(chosen, leastRank, admitted)
    } finally {
      if (!hasFound && isProbe) await this.#admission.releaseProbe()
    }
  }

  /** Stops while the circuit is shut: claims are given back. */
  #shut(waitMs: number): void {
    this.#shutUntilMs = this.#nowMs() + Math.min(waitMs, this.#options.circuitRecheckMs)
    void this.#giveBack()
  }

  /** Claims for one account; resolves with whether anything is to be sent. */
  async #claimFrom(
    chosen: DueAccount,
    leastRank: number,
    { count, waitMs, isProbe, isForUntried = false }: AdmitResult,
  ): Promise<boolean> {
    const { account, rank } = chosen
    const ledger = this.#options.findLedger(account)
    if (!ledger) {
      this.#due.drop(account)
      return false
    }
    const renewedAtMs = this.#nowMs()
    if (isProbe) this.#due.noteProbed(account, renewedAtMs)
    const request: ClaimRequest = {
      sink: this.#sink.name,
      max: count,
      leastRank,
      probe: isForUntried ? 'untried' : isProbe && 'any',
      waits: this.#admission.waits,
    }
    const found = await this.#timed('claim', claimDue(ledger, this.#options.holder, request))
    const { claims, left, topRank, nextInMs, putOffMs } = found
    const fresh = claims.filter((claim) => !this.#holds(ledger, claim))
    const { messages, unknown, againInMs } = await selectMessages(this.#options, {
      ledger,
      sink: this.#sink,
      claims: fresh,
      max: count,
      addChore: (work) => void this.#addChore(work),
      nudge: () => this.nudge(account),
    })
    // what was tried waits for the next probe
    const unprobedMs = isForUntried ? waitMs : idleProbeMs
    const isNothing = claims.length === unknown.length
    const leftMs = isProbe && isNothing ? unprobedMs : 0
    const nextMs = left > 0 ? leftMs : Math.min(nextInMs ?? Infinity, againInMs)
    const next = { inMs: nextMs, rank: topRank ?? rank, knownRank: topRank ?? 0 }
    this.#due.noteServed(chosen, next, this.#nowMs())
    if (unknown.length > 0) void this.#addChore(this.#giveBackTo(ledger, unknown, unknownRestMs))
    const laterMs = Math.min(putOffMs ?? Infinity, leftMs || Infinity)
    if (laterMs !== Infinity) this.nudge(account, { inMs: laterMs })
    const common = { ledger, renewedAtMs, isProbe }
    const added = messages.map((message) => ({ ...common, message, token: randomUUID() }))
    const refused = await this.#admission.takeProbes(added)
    for (const { message } of refused) message.probesDestination = false
    this.#waiting = [...this.#waiting, ...added].toSorted((a, b) => b.message.rank - a.message.rank)
    if (refused.length > 0) this.#putOff()
    if (this.#isFinishing) await this.#giveBack()
    return messages.length > 0
  }

  /** Whether it is in hand here already: its lease ended while Redis was away, and it goes on. */
  #holds(ledger: AccountLedger, { ref }: Claim): boolean {
    const inHand = [...this.#waiting, ...this.#ended, ...this.#running.values()]
    return inHand.some((one) => one.ledger === ledger && one.message.ref === ref)
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
    this.#putOff()
    if (!this.#hasNext) return []
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
    if (this.#admission.isRecent || this.#waiting[0]?.isProbe) return true
    const { count, waitMs, isProbe } = await this.#admission.ask(1)
    if (isProbe) await this.#admission.releaseProbe() // a probe gets a claim of its own
    if (count === 0 || isProbe) this.#shut(waitMs)
    return count > 0 && !isProbe
  }

  /** Gives back what was claimed for a destination before it was in trouble. */
  #putOff(): void {
    const { waits } = this.#admission
    const late = this.#waiting.filter(
      ({ message, isProbe }) =>
        !isProbe && !message.probesDestination && waits[message.destination] !== undefined,
    )
    this.#waiting = this.#waiting.filter((one) => !late.includes(one))
    for (const [id, messages] of Map.groupBy(late, ({ message }) => message.destination))
      void this.#giveBack(messages, waits[id])
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
      answer = await this.#timed('settle', this.#write(ledger, { settle, begin }))
    } catch (error) {
      const again = settling.map((ended) => ({ ...ended, mayBeWritten: true }))
      this.#ended.push(...again) // a later update writes them
      if (!this.#isFinishing) this.#waiting.unshift(...opening)
      else this.#releaseProbesOf(opening) // the messages are due again when their leases end
      throw error
    } finally {
      this.#updates.set(ledger, { opening: 0, untilMs: renewedAtMs + hungAfterMs })
    }
    for (const [i, held] of opening.entries()) {
      const opened = answer.begun[i]
      // undefined: another process holds it by now, or there is nothing to send any more
      if (opened) this.#start({ ...held, renewedAtMs }, { ...held.message, ...opened })
      else this.#releaseProbesOf([held])
    }
    await this.#afterSettling(settling, answer.settled)
  }

  #start(held: ClaimedMessage, message: OpenMessage): void {
    const { ledger, token, isProbe } = held
    const running = { ...held, cutOff: new AbortController(), beganMs: this.#nowMs() }
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
    const common = { ledger, sink: this.#sink, others: this.#admission }
    const context = { ...common, signal: cutOff.signal, isHeld }
    try {
      return await attemptSend(this.#options, context, message)
    } catch (error) {
      // not the sink's failure: Redis, or a defect, before anything was sent
      const about = { sink: this.#sink.name, ref: message.ref, err: error }
      this.#options.logger.warn(about, 'work was interrupted; what it held stays due')
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
    const { ledger, message, outcome, isGivenUp, newParts = 0 } = ended
    if (isGivenUp) void this.#addChore(rerouter.reroute(ledger, message.ref))
    if (newParts > 0 && message.kind === 'summary') {
      const unfreezing = rerouter.unfreeze(ledger, message.ref, {})
      void this.#addChore(unfreezing.then(() => this.nudge(ledger.account)))
    }
    if (batch) void this.#addChore(settleMembers(ledger, message.ref, batch, findLedger))
    countSettled(this.#options, this.#sink, ended)
    const isAgain = outcome.outcome === 'unsent' || outcome.outcome === 'split'
    const inMs = isAgain ? 0 : outcome.inMs // only a retry has one
    if (inMs !== undefined) this.nudge(ledger.account, { inMs, rank: message.rank })
  }

  async #reportResult(ended: EndedSend): Promise<void> {
    const state = await this.#admission.report(ended)
    if (state === 'back') void this.#addChore(this.#options.retryNow?.retryAll(this.#sink.name))
    if (state === 'shut') void this.#giveBack()
  }

  /** Runs work beside the ticks. Work that fails is due again when its lease ends. */
  async #addChore(work: Promise<unknown> | undefined): Promise<void> {
    if (!work) return
    const about = { sink: this.#sink.name }
    const logFailure = (err: unknown): void =>
      this.#options.logger.warn({ ...about, err }, 'work was interrupted; what it held stays due')
    const chore = work.then(() => undefined, logFailure)
    this.#chores.add(chore)
    await chore
    this.#chores.delete(chore)
    this.#ready()
  }

  // Leases -----------------------------------------------------------------------------------------

  /** Gives claims back, for others to take now or in `inMs`; by default all that were not begun. */
  async #giveBack(claimed = this.#waiting.splice(0), inMs?: number): Promise<void> {
    if (claimed.length === 0) return
    const byLedger = [...Map.groupBy(claimed, ({ ledger }) => ledger)]
    const back = byLedger.map(([ledger, held]) => {
      return this.#giveBackTo(
        ledger,
        held.map(({ message }) => message),
        inMs,
      )
    })
    this.#releaseProbesOf(claimed)
    await this.#addChore(Promise.all(back))
  }

  #releaseProbesOf(unsent: ClaimedMessage[]): void {
    const probes = unsent.filter(({ isProbe, message }) => isProbe || message.probesDestination)
    if (probes.length > 0) void this.#addChore(this.#admission.releaseProbes(probes))
  }

  async #giveBackTo(
    ledger: AccountLedger,
    messages: readonly Message[],
    inMs?: number,
  ): Promise<void> {
    const late = inMs === undefined ? {} : { inMs }
    const back = messages.map(({ ref, rank }) => ({ ref, rank, ...late }))
    await this.#write(ledger, { giveBack: back })
    this.nudge(ledger.account, { ...late, rank: Math.max(...back.map((one) => one.rank)) })
  }

  #drop(held: ClaimedMessage): void {
    this.#running.get(runningKey(held.ledger, held.message))?.cutOff.abort()
    if (!this.#waiting.includes(held)) return
    this.#waiting = this.#waiting.filter((waiting) => waiting !== held)
    this.#releaseProbesOf([held])
  }

  #nextTickMs(): number | undefined {
    const nowMs = this.#nowMs()
    const times: number[] = []
    for (const { untilMs } of this.#updates.values()) if (untilMs > nowMs) times.push(untilMs)
    const mayNext = this.#hasNext && !this.#isFinishing
    const slotMs = this.#freeSlots > 0 ? nowMs : this.#nextLongMs(nowMs)
    if (mayNext) times.push(Math.max(slotMs, this.#nextPlaceMs, this.#shutUntilMs))
    const nextMs = this.#due.nextMs({ isBusy: this.#isBusy, leastKnown: this.#leastKnown })
    const claimMs = Math.max(this.#shutUntilMs, this.#nextPlaceMs - aheadMs, this.#claimingUntilMs)
    if (!this.#isFinishing && nextMs !== undefined) times.push(Math.max(nextMs, claimMs))
    const firstMs = Math.min(...times)
    return firstMs === Infinity ? undefined : Math.max(0, firstMs - nowMs)
  }

  /** When the next running send gives its slot to another, monotonic ms. */
  #nextLongMs(nowMs: number): number {
    const times = [...this.#running.values()].map(({ beganMs }) => beganMs + longSendMs)
    return Math.min(...times.filter((ms) => ms > nowMs))
  }
}

function runningKey({ account }: AccountLedger, { ref }: Message): string {
  return `${account} ${ref}`
}
