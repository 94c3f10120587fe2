/**
 * Drains one sink, whatever the number of its accounts: claims what is due, has the rules judge it, sends it, and
 * writes what came of it together with the opening of the next attempts. A claim marks nothing; an attempt is opened
 * right before its send. The ledger decides what is true: whoever else claims the same does no harm.
 */
import { randomUUID } from 'node:crypto'
import { settleMembers } from '../grouping/freeze.ts'
import type { Sink } from '../sinks/sink.ts'
import { type Book, parseRef } from '../store/account-ledger.ts'
import { type MadeWork, releaseDetail, type SinkModes } from '../store/pending-items.ts'
import { readPayload } from '../store/records.ts'
import {
  type Attempted,
  type AttemptOptions,
  attemptSend,
  type Begun,
  countSettled,
  type SendPace,
  tellReplicas,
} from './attempt.ts'
import {
  advanceClaims,
  type Claim,
  claimDue,
  type Holder,
  type Message,
  type Outcome,
  type Round,
  type RoundAnswer,
  type Settled,
} from './claims.ts'
import { DueAccounts, soonMs, type Told, type Turn, type WorkHints } from './due-accounts.ts'
import { freezeBatches, type Judging, withoutKeptBack } from './suppression.ts'

export interface DrainOptions extends AttemptOptions, Judging {
  pace: SendPace
  hints: Pick<WorkHints, 'tell' | 'clear'>
  holder: Holder
  /** Every sink of the configuration, and how long it collects a batch. */
  modes: SinkModes
  /** Sends on what a record's full event was awaited for. */
  release: (account: string, made: MadeWork[]) => Promise<void>
}

/** What lies in this process' hands and was not begun. */
interface Held {
  book: Book
  message: Message
  /** Of its attempt: opened twice, because an answer was lost, it is one. */
  token: string
  renewedAtMs: number
  /** It tries whether the sink is back. */
  isProbe: boolean
}

interface Running extends Held {
  cutOff: AbortController
}

interface Ended {
  book: Book
  message: Message
  token: string
  outcome: Outcome
  taken: Attempted['taken']
  isGivenUp: boolean
  isProbe: boolean
  /** A write of it broke off, and may have arrived all the same. */
  mayBeWritten?: boolean
}

/** A round under way: how many sends it opens, which have their place for so long. */
interface Going {
  opening: number
  untilMs: number
}

/** What one claim takes at most, as far as the sink can send it within `aheadMs`. */
const maxClaims = 100
const aheadMs = 2_000

/** So long a leave to send holds: another replica may have met a sink that is down, or wants a pause. */
const leaveMs = 250

/** A process that was frozen may have lost its claims: it sends nothing that it renewed longer ago. */
const freshMs = 5_000

/** Renewed when a third of a lease is over. */
const renewals = 3

/** After a failure that is no sink's, what was to be sent is tried again after as long. */
const brokenOffMs = 5_000

/** An account whose claim failed is asked again after as long. */
const failedMs = 1_000

/** A claim or a round that takes longer holds no other account's up. */
const slowMs = 500

/** A shut circuit is looked at again as often: a late success may have closed it. */
const shutLookMs = 5_000

/** A sink that takes everything is reported once in so long. */
const reportMs = 500

export class SinkDrain {
  readonly #sink: Sink
  readonly #options: DrainOptions
  readonly #due = new DueAccounts()
  /** The worst first. */
  #waiting: Held[] = []
  readonly #running = new Map<string, Running>()
  #ended: Ended[] = []
  /** What goes on beside the turns. */
  readonly #chores = new Set<Promise<void>>()
  #ready = (): void => undefined
  #isFinishing = false
  /** When the circuit let something through last, and until when it lets nothing, monotonic ms. */
  #admittedAtMs = -Infinity
  #shutUntilMs = -Infinity
  /** When the next message may go to a sink with a limit, as far as this process knows, monotonic ms. */
  #placeMs = -Infinity
  /** When it was reported that the sink takes everything, monotonic ms; -Infinity: another success is news. */
  #toldOkAtMs = -Infinity
  #turns = 0
  /** Rounds and claims go on beside the turns, one for each account: where a part of Redis hangs, the others go on. */
  readonly #rounds = new Map<Book, Going>()
  /** Since when, by account, monotonic ms. */
  readonly #claiming = new Map<string, number>()
  #failure: { error: unknown } | undefined

  constructor(sink: Sink, options: DrainOptions) {
    this.#sink = sink
    this.#options = options
  }

  /** Something of the account may be due. */
  nudge(account: string, told: Told = {}): void {
    this.#due.tell(account, told, this.#nowMs())
    this.#ready()
  }

  /** Is called whenever a turn would find something to do. */
  onReady(listener: () => void): void {
    this.#ready = listener
  }

  /**
   * One turn: begins to write what has ended, to open what may go, and to claim more. Resolves with how long at most
   * until the next turn, ms; undefined: until `onReady`. Throws what Redis threw at what an earlier turn began.
   */
  async turn(): Promise<number | undefined> {
    const failure = this.#failure
    this.#failure = undefined
    if (failure) throw failure.error
    await this.#advance()
    this.#claimBeside()
    return this.#nextTurnMs()
  }

  /** Renews the leases of what is in hand; a send whose claim was lost is cut off. */
  async renew(): Promise<void> {
    const nowMs = this.#nowMs()
    const eachMs = this.#options.holder.leaseMs / renewals
    const old = [...this.#waiting, ...this.#running.values()].filter(
      ({ renewedAtMs }) => nowMs - renewedAtMs >= eachMs,
    )
    const books = [...Map.groupBy(old, ({ book }) => book)]
    const renewing = books.map(async ([book, its]) => {
      const { lost } = await this.#write(book, { renew: its.map(({ message: { ref } }) => ref) })
      for (const held of its) {
        held.renewedAtMs = nowMs
        if (lost.includes(held.message.ref)) this.#drop(held)
      }
    })
    await Promise.allSettled(renewing) // what is not renewed is somebody else's when its lease ends
  }

  /** Claims nothing more, and gives back what is not begun. */
  async finish(): Promise<void> {
    this.#isFinishing = true
    const accounts = new Set(this.#waiting.map(({ book }) => book.account))
    await this.#giveBack()
    const sink = this.#sink.name
    await this.#options.hints.tell([...accounts].map((account) => ({ account, sink, inMs: 0 })))
    this.#ready()
  }

  /** Cuts off what is being sent. */
  abort(): void {
    for (const { cutOff } of this.#running.values()) cutOff.abort()
  }

  /** How much lies in this process' hands. */
  get inHand(): number {
    const going = this.#running.size + this.#chores.size + this.#claiming.size + this.#rounds.size
    return this.#waiting.length + this.#ended.length + going
  }

  /** Nothing in hand, and nothing soon due. */
  get isIdle(): boolean {
    return this.inHand === 0 && (this.#isFinishing || this.#due.isEmpty)
  }

  #nowMs(): number {
    return this.#options.clock.monotonic()
  }

  get #free(): number {
    const nowMs = this.#nowMs()
    const going = [...this.#rounds.values()].filter(({ untilMs }) => untilMs > nowMs)
    const opening = going.reduce((sum, one) => sum + one.opening, 0)
    return this.#sink.concurrency - this.#running.size - opening
  }

  /** How much waits for its turn; what waits for a part of Redis that hangs does not count. */
  get #readyCount(): number {
    const nowMs = this.#nowMs()
    const isHung = ({ book }: Held): boolean => (this.#rounds.get(book)?.untilMs ?? nowMs) < nowMs
    return this.#waiting.length - this.#waiting.filter(isHung).length
  }

  #write(book: Book, round: Round): Promise<RoundAnswer> {
    return advanceClaims(book, { ...this.#options.holder, by: this.#options.replica }, round)
  }

  // Claiming ---------------------------------------------------------------------------------------

  #claimBeside(): void {
    const nowMs = this.#nowMs()
    if (this.#isFinishing || this.#claimingUntilMs > nowMs) return
    if (this.#readyCount >= this.#sink.concurrency) return
    if (nowMs < this.#shutUntilMs || this.#placeMs - nowMs > aheadMs) return
    this.#turns = (this.#turns + 1) % 10
    const isOldest = this.#turns === 0 // one turn in ten, whatever it has
    const turn = this.#due.next(nowMs, { isOldest, isBusy: (name) => this.#claiming.has(name) })
    if (!turn) return
    const { chosen } = turn
    this.#claiming.set(chosen.account, nowMs)
    void this.#claimMore(turn)
      .catch((error: unknown) => {
        // others first: it may be this account's part of Redis alone
        this.#due.served(chosen, { inMs: failedMs, rank: chosen.rank }, this.#nowMs())
        this.#failure = { error }
      })
      .then(() => {
        this.#claiming.delete(chosen.account)
        this.#ready()
      })
  }

  /** Until when the claims that go on are waited for, monotonic ms. */
  get #claimingUntilMs(): number {
    return Math.max(-Infinity, ...this.#claiming.values()) + slowMs
  }

  async #claimMore(turn: Turn): Promise<void> {
    const { circuit } = this.#options
    const { name, sendTimeoutMs } = this.#sink
    const nowMs = this.#nowMs()
    const room = roomFor(this.#sink) - this.#readyCount
    const { count, waitMs, isProbe } = await circuit.admit(name, Math.max(1, room), sendTimeoutMs)
    if (count === 0) return this.#shut(waitMs)
    this.#admittedAtMs = nowMs
    let hasFound = false
    try {
      hasFound = await this.#claimFrom(turn, { count, isProbe })
    } finally {
      if (!hasFound && isProbe) await circuit.giveBack(name)
    }
  }

  /** What waits for the circuit hides no other sink's work, and is not held. */
  async #shut(waitMs: number): Promise<void> {
    this.#shutUntilMs = this.#nowMs() + Math.min(waitMs, shutLookMs)
    this.#toldOkAtMs = -Infinity // the probe's success is news
    const inMs = Math.max(waitMs, soonMs)
    void this.#giveBack()
    await this.#options.hints.clear(this.#due.takeHints().map((hint) => ({ ...hint, inMs })))
  }

  /** Whether anything came of it that is to be sent. */
  async #claimFrom(
    { chosen, rivals, leastRank }: Turn,
    { count, isProbe }: { count: number; isProbe: boolean },
  ): Promise<boolean> {
    const { account, rank } = chosen
    const book = this.#options.book(account)
    if (!book) {
      this.#due.drop(account)
      if (chosen.hint)
        void this.#addChore(this.#options.hints.clear([{ ...chosen.hint, inMs: undefined }]))
      return false
    }
    const renewedAtMs = this.#nowMs()
    const { claims, left, topRank, nextInMs } = await claimDue(book, this.#options.holder, {
      sink: this.#sink.name,
      max: Math.max(1, Math.ceil(count / (1 + rivals))),
      leastRank,
    })
    const fresh = claims.filter((claim) => !this.#holds(book, claim))
    const { messages, againInMs } = await this.#sortOut(book, fresh, count)
    const inMs = left > 0 ? 0 : leastOf(nextInMs, againInMs)
    const next = { ...(inMs !== undefined && { inMs }), rank: topRank ?? rank }
    const hint = this.#due.served(chosen, next, this.#nowMs())
    if (hint) void this.#addChore(this.#options.hints.clear([{ ...hint, inMs }]))
    const held = messages.map((message) => ({ book, message, token: randomUUID() }))
    const added = held.map((one) => ({ ...one, renewedAtMs, isProbe }))
    this.#waiting = [...this.#waiting, ...added].toSorted((a, b) => b.message.rank - a.message.rank)
    if (this.#isFinishing) await this.#giveBack()
    return messages.length > 0
  }

  /** A lease that ended while Redis was away: what this process still has in hand goes on. */
  #holds(book: Book, { ref }: Claim): boolean {
    const inHand = [...this.#waiting, ...this.#ended, ...this.#running.values()]
    return inHand.some((one) => one.book === book && one.message.ref === ref)
  }

  /** Those that are to be sent; what else was claimed is seen to. `againInMs`: when the rest of a batch is due. */
  async #sortOut(
    book: Book,
    claims: readonly Claim[],
    max: number,
  ): Promise<{ messages: Message[]; againInMs: number | undefined }> {
    const { book: find } = this.#options
    const sink = this.#sink
    const messages: Message[] = []
    let againInMs: number | undefined
    for (const claim of claims) {
      if (claim.kind === 'detail') void this.#addChore(this.#releaseWithout(book, claim.ref))
      else if (claim.kind === 'settling') {
        void this.#addChore(settleMembers(book, claim.ref, claim.batch, find))
      } else if (claim.kind === 'unsealing') void this.#addChore(this.#unseal(book, claim.ref))
      else if (claim.kind !== 'collection') messages.push(claim)
      else {
        const { frozen, restInMs } = await this.#freeze(book, claim, max)
        messages.push(...frozen)
        againInMs = leastOf(againInMs, restInMs)
      }
    }
    return { messages: await withoutKeptBack(this.#options, { book, sink }, messages), againInMs }
  }

  async #unseal(book: Book, ref: string): Promise<void> {
    await this.#options.diverter?.unseal(book, ref)
    this.nudge(book.account)
  }

  #freeze(book: Book, claim: Claim, count: number): ReturnType<typeof freezeBatches> {
    const max = Math.min(count, this.#sink.concurrency) // the first of them wait for the last
    return freezeBatches(this.#options, { book, sink: this.#sink, claim, max })
  }

  /** Its wait for the full event is over: all of the record go on without it. */
  async #releaseWithout(book: Book, ref: string): Promise<void> {
    const { modes, release } = this.#options
    const parsed = parseRef(ref)
    if (parsed.kind !== 'item') return
    const payload = await readPayload(book, parsed.recordId)
    const without = payload && { detail: 'unavailable' as const, ...payload }
    const made = await releaseDetail(book, parsed.recordId, modes, without)
    await release(book.account, made)
  }

  // Sending ----------------------------------------------------------------------------------------

  /** Begins to write what has ended and to open what may go now: one script for each account that has none going. */
  async #advance(): Promise<void> {
    const opening = await this.#takeNext()
    const settling = this.#ended.filter(({ book }) => !this.#rounds.has(book))
    this.#ended = this.#ended.filter(({ book }) => this.#rounds.has(book))
    for (const book of new Set([...settling, ...opening].map((one) => one.book))) {
      this.#advanceBeside(
        book,
        settling.filter((one) => one.book === book),
        opening.filter((one) => one.book === book),
      )
    }
  }

  #advanceBeside(book: Book, settling: Ended[], opening: Held[]): void {
    this.#rounds.set(book, { opening: opening.length, untilMs: this.#nowMs() + slowMs })
    void this.#advanceIn(book, settling, opening)
      .catch((error: unknown) => {
        this.#failure = { error }
      })
      .then(() => {
        this.#rounds.delete(book)
        this.#ready()
      })
  }

  /** What may go now: as much as is free, or one for each place in the sink's pace. */
  async #takeNext(): Promise<Held[]> {
    const isEarly = this.#nowMs() < this.#placeMs
    if (this.#isFinishing || this.#free <= 0 || isEarly || !this.#hasNext) return []
    if (!(await this.#isStillAdmitted())) return []
    let count = this.#free
    if (this.#sink.limitPerSecond !== undefined) {
      const { isTaken, nextInMs } = await this.#options.pace.take(this.#sink)
      this.#placeMs = this.#nowMs() + nextInMs
      count = Number(isTaken)
    }
    const idle = this.#waiting.filter(({ book }) => !this.#rounds.has(book))
    const next = new Set(idle.slice(0, count))
    this.#waiting = this.#waiting.filter((one) => !next.has(one))
    return [...next]
  }

  get #hasNext(): boolean {
    return this.#waiting.some(({ book }) => !this.#rounds.has(book))
  }

  /** Whether what was claimed may still go; else it is given back. */
  async #isStillAdmitted(): Promise<boolean> {
    const { circuit } = this.#options
    const { name, sendTimeoutMs } = this.#sink
    const nowMs = this.#nowMs()
    if (nowMs - this.#admittedAtMs < leaveMs || this.#waiting[0]?.isProbe) return true
    const { count, waitMs, isProbe } = await circuit.admit(name, 1, sendTimeoutMs)
    if (isProbe) await circuit.giveBack(name) // it is claimed by itself
    if (count === 0 || isProbe) await this.#shut(waitMs)
    else this.#admittedAtMs = nowMs
    return count > 0 && !isProbe
  }

  async #advanceIn(book: Book, settling: Ended[], opening: Held[]): Promise<void> {
    const begin = opening.map(({ message: { ref }, token }) => ({ ref, token }))
    const renewedAtMs = this.#nowMs()
    const settle = settling.map(({ message: { ref }, token, outcome }) => ({ ref, token, outcome }))
    let answer: RoundAnswer
    try {
      answer = await this.#write(book, { settle, begin })
    } catch (error) {
      const again = settling.map((one) => ({ ...one, mayBeWritten: true }))
      this.#ended.push(...again) // written by a later turn
      if (!this.#isFinishing) this.#waiting.unshift(...opening) // else due again when its lease ends
      throw error
    } finally {
      this.#rounds.set(book, { opening: 0, untilMs: renewedAtMs + slowMs })
    }
    for (const [i, held] of opening.entries()) {
      const opened = answer.begun[i]
      // undefined: another's by now, or there is nothing to send any more
      if (opened) this.#start({ ...held, renewedAtMs }, { ...held.message, ...opened })
      else if (held.isProbe) void this.#addChore(this.#options.circuit.giveBack(this.#sink.name))
    }
    await this.#afterSettling(settling, answer.settled)
  }

  #start(held: Held, message: Begun): void {
    const { book, token, isProbe } = held
    const cutOff = new AbortController()
    const key = keyOf(book, message)
    this.#running.set(key, { ...held, cutOff })
    void this.#send(held, message, cutOff.signal).then((attempted) => {
      const { outcome, taken, isGivenUp = false } = attempted
      this.#running.delete(key)
      this.#ended.push({ book, message, token, outcome, taken, isGivenUp, isProbe })
      if (!this.#rounds.has(book)) this.#ready()
    })
  }

  async #send(
    { book, renewedAtMs }: Held,
    message: Begun,
    signal: AbortSignal,
  ): Promise<Attempted> {
    const isStale = this.#nowMs() - renewedAtMs > freshMs
    if (isStale) return { outcome: { outcome: 'unsent' }, taken: undefined }
    try {
      return await attemptSend(this.#options, { book, sink: this.#sink, signal }, message)
    } catch (error) {
      // no sink's: Redis, or a defect, before anything left
      const { logger } = this.#options
      const about = { sink: this.#sink.name, ref: message.ref, err: error }
      logger.warn(about, 'work broke off; it comes again')
      const outcome = { outcome: 'retry' as const, inMs: brokenOffMs, counts: false }
      return { outcome, taken: undefined }
    }
  }

  // After an outcome -------------------------------------------------------------------------------

  async #afterSettling(settling: Ended[], settled: readonly Settled[]): Promise<void> {
    for (const [i, one] of settling.entries()) {
      const answer = settled[i]
      const isOurs = answer?.status === 'already' && one.mayBeWritten
      if (answer?.status === 'settled' || (answer && isOurs)) this.#goOn(one, answer)
    }
    for (const one of settling) await this.#tellHow(one)
  }

  #goOn(one: Ended, { batch }: Settled): void {
    const { diverter, book: find } = this.#options
    const { book, message, outcome, isGivenUp } = one
    if (isGivenUp) void this.#addChore(diverter?.divert(book, message.ref))
    if (batch) void this.#addChore(settleMembers(book, message.ref, batch, find))
    countSettled(this.#options, this.#sink, one)
    const isAgain = outcome.outcome === 'unsent' || outcome.outcome === 'split'
    const inMs = isAgain ? 0 : outcome.inMs // of a retry alone
    if (inMs === undefined) return
    if (inMs <= soonMs) this.nudge(book.account, { inMs, rank: message.rank })
    const told = { account: book.account, sink: this.#sink.name, inMs }
    void this.#addChore(this.#options.hints.tell([told]))
  }

  /** The circuit hears of every failure, and of success as often as it has to. */
  async #tellHow(one: Ended): Promise<void> {
    const atMs = this.#nowMs()
    const isOk = one.taken === 'ok'
    if (isOk && !one.isProbe && atMs - this.#toldOkAtMs < reportMs) return
    this.#toldOkAtMs = isOk ? atMs : -Infinity
    const state = await tellReplicas(this.#options, this.#sink, one)
    if (state === 'back') void this.#addChore(this.#options.wake?.all(this.#sink.name))
    if (state !== 'shut') return
    this.#admittedAtMs = -Infinity
    void this.#giveBack()
  }

  /** What fails is due again when its lease ends. */
  async #addChore(work: Promise<unknown> | undefined): Promise<void> {
    if (!work) return
    const { logger } = this.#options
    const failed = (error: unknown): void =>
      logger.warn({ sink: this.#sink.name, err: error }, 'work broke off; it comes again')
    const chore = work.then(() => undefined, failed)
    this.#chores.add(chore)
    await chore
    this.#chores.delete(chore)
    this.#ready()
  }

  // Leases -----------------------------------------------------------------------------------------

  async #giveBack(): Promise<void> {
    const given = this.#waiting.splice(0)
    if (given.length === 0) return
    const { circuit } = this.#options
    const back = [...Map.groupBy(given, ({ book }) => book)].map((one) => this.#giveBackIn(...one))
    if (given.some(({ isProbe }) => isProbe)) back.push(circuit.giveBack(this.#sink.name))
    await this.#addChore(Promise.all(back))
  }

  async #giveBackIn(book: Book, its: Held[]): Promise<void> {
    const back = its.map(({ message: { ref, rank } }) => ({ ref, rank }))
    await this.#write(book, { back })
    this.nudge(book.account, { rank: Math.max(...back.map(({ rank }) => rank)) })
  }

  #drop(held: Held): void {
    this.#running.get(keyOf(held.book, held.message))?.cutOff.abort()
    this.#waiting = this.#waiting.filter((one) => one !== held)
  }

  #nextTurnMs(): number | undefined {
    const nowMs = this.#nowMs()
    const times: number[] = []
    for (const { untilMs } of this.#rounds.values()) if (untilMs > nowMs) times.push(untilMs)
    const isFree = this.#free > 0 && !this.#isFinishing
    if (isFree && this.#hasNext) {
      times.push(Math.max(this.#placeMs, this.#shutUntilMs))
    }
    const nextMs = this.#due.nextMs({ isBusy: (name) => this.#claiming.has(name) })
    const mayClaim = !this.#isFinishing && this.#readyCount < this.#sink.concurrency
    if (mayClaim && nextMs !== undefined) {
      const placeMs = this.#placeMs - aheadMs
      times.push(Math.max(nextMs, this.#shutUntilMs, placeMs, this.#claimingUntilMs))
    }
    return times.length === 0 ? undefined : Math.max(0, Math.min(...times) - nowMs)
  }
}

function keyOf({ account }: Book, { ref }: Message): string {
  return `${account} ${ref}`
}

/** How many pieces of work a sink has room for: what it can send within two seconds, as far as that is known. */
function roomFor({ limitPerSecond, concurrency }: Sink): number {
  if (limitPerSecond === undefined) return Math.min(maxClaims, concurrency * 8)
  return Math.max(1, Math.min(maxClaims, Math.floor((limitPerSecond * aheadMs) / 1_000)))
}

function leastOf(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b)
}
