/**
 * What the circuits of a sink let this process send, and what they are told of its sends. A failure
 * is laid at the door of what failed: the message, its destination, or the whole sink.
 */
import type { Sink, SinkError } from '../sinks/sink.ts'
import type { AttemptOptions, AttemptResult } from './send/attempt.ts'
import type { AdmitResult, SentReport } from './circuit.ts'
import type { Message } from './claims.ts'
import {
  type CircuitEffect,
  concernsDestination,
  effectOn,
  isUnexplained,
  mayBeMessages,
  pauseAfter,
} from './send/retry-policy.ts'

type AdmissionOptions = Pick<AttemptOptions, 'circuit' | 'logger' | 'clock'>

/** How a send ended. */
export interface SentMessage extends Pick<AttemptResult, 'outcome' | 'sinkResult' | 'newParts'> {
  message: Pick<Message, 'destination' | 'failedAtMs' | 'probesDestination'>
  /** It was the probe of the sink's circuit. */
  isProbe: boolean
}

/** How long an admission by the circuit holds: another replica may have found the sink down. */
const admittedForMs = 250

/** Shortest interval between two reports of success. */
const reportMs = 500

export class Admission {
  readonly #sink: Sink
  readonly #options: AdmissionOptions
  /** Those that have a circuit of their own. */
  readonly #destinations: Sink['destinations']
  /** When the circuit last admitted a send, monotonic ms. */
  #admittedAtMs = -Infinity
  /** When a success was last reported, monotonic ms; -Infinity: report the next. */
  #toldOkAtMs = -Infinity
  #last: AdmitResult = { count: 1, waitMs: 0, isProbe: false }

  constructor(sink: Sink, options: AdmissionOptions) {
    this.#sink = sink
    this.#options = options
    this.#destinations = sink.destinations.filter(({ id }) => id !== sink.name)
  }

  /** Asks whether `count` messages may go. */
  async ask(count: number): Promise<AdmitResult> {
    const atMs = this.#options.clock.monotonic()
    this.#last = await this.#options.circuit.admit(this.#sink.name, count, this.#destinations)
    if (this.#last.count > 0) this.#admittedAtMs = atMs
    else this.#toldOkAtMs = -Infinity // report the probe's success at once
    return this.#last
  }

  /** The last answer is not too old to send by. */
  get isRecent(): boolean {
    return this.#options.clock.monotonic() - this.#admittedAtMs < admittedForMs
  }

  /** The last answer let a probe through, or nothing: the next claim probably is a probe, too. */
  get isShut(): boolean {
    return this.#last.isProbe || this.#last.count === 0
  }

  /** By destination in trouble, as the last answer said: how long its messages wait, ms. */
  get waits(): Readonly<Record<string, number>> {
    return this.#last.waits ?? {}
  }

  /** Whether the sink has accepted others since the attempt began that failed last. */
  hasAcceptedSince({ failedAtMs }: Pick<Message, 'failedAtMs'>): boolean {
    return failedAtMs !== undefined && (this.#last.lastSuccessMs ?? 0) > failedAtMs
  }

  /** How many messages more were made by splits since the sink accepted anything, as last answered. */
  get blindParts(): number {
    return this.#last.parts ?? 0
  }

  /** Takes the probes of destinations; returns the messages whose destination another one tests. */
  async takeProbes<T extends Pick<SentMessage, 'message'>>(claimed: readonly T[]): Promise<T[]> {
    const refused: T[] = []
    for (const one of claimed.filter(({ message }) => message.probesDestination)) {
      const { count } = await this.#options.circuit.admit(one.message.destination, 1)
      if (count === 0) refused.push(one)
    }
    return refused
  }

  async renewProbes(held: readonly Pick<SentMessage, 'isProbe' | 'message'>[]): Promise<void> {
    const names = new Set(held.flatMap((one) => this.#probedBy(one)))
    await Promise.all([...names].map((name) => this.#options.circuit.renewProbe(name)))
  }

  /** Gives up the probes that these messages were. */
  async releaseProbes(unsent: readonly Pick<SentMessage, 'isProbe' | 'message'>[]): Promise<void> {
    const names = new Set(unsent.flatMap((one) => this.#probedBy(one)))
    await Promise.all([...names].map((name) => this.#options.circuit.releaseProbe(name)))
  }

  /** Gives up the probe of the sink's circuit, for which there was no message. */
  releaseProbe(): Promise<void> {
    return this.#options.circuit.releaseProbe(this.#sink.name)
  }

  #probedBy({ isProbe, message }: Pick<SentMessage, 'isProbe' | 'message'>): string[] {
    return [
      ...(isProbe ? [this.#sink.name] : []),
      ...(message.probesDestination === true ? [message.destination] : []),
    ]
  }

  /**
   * Reports every failure, and success at most once per `reportMs`. Returns 'shut' if sends have to
   * wait, 'back' if a circuit closed.
   */
  async report(sent: SentMessage): Promise<'shut' | 'back' | undefined> {
    const { logger } = this.#options
    try {
      return await this.#reportAll(sent)
    } catch (err) {
      const message = 'the circuit does not know how this send went'
      logger.warn({ sink: this.#sink.name, err }, message)
      return undefined
    }
  }

  async #reportAll(sent: SentMessage): Promise<'shut' | 'back' | undefined> {
    const { sinkResult: error, message } = sent
    const probed = this.#probedBy(sent)
    if (error === undefined) {
      await this.releaseProbes([sent])
      return undefined
    }
    if (error === 'ok') return this.#reportSuccess(message, probed)
    const { name } = this.#sink
    const failed = this.#blame(error, sent)
    let back: 'shut' | 'back' | undefined
    for (const other of probed.filter((one) => !failed.includes(one))) {
      // the sink answered for itself; what it would have said of a destination is not known
      if (other === name) back = await this.#tell(name, 'answered', { isProbe: true })
      else await this.#options.circuit.releaseProbe(other)
    }
    for (const one of failed) back = (await this.#reportFailure(one, error, sent)) ?? back
    return back
  }

  /**
   * Whose failure it is. One that no answer explains is its destination's, and the sink's: of each
   * destination the first. So one that goes on failing does not shut the sink to the others.
   */
  #blame(error: SinkError, { message: { destination }, isProbe }: SentMessage): string[] {
    const { name } = this.#sink
    const isEither = this.#destinations.length > 1 && isUnexplained(error)
    if (!isEither)
      return [this.#destinations.length > 0 && concernsDestination(error) ? destination : name]
    const { failing = [] } = this.#last
    this.#last = { ...this.#last, failing: [...failing, destination] }
    return failing.includes(destination) && !isProbe ? [destination] : [destination, name]
  }

  async #reportSuccess(
    { destination }: SentMessage['message'],
    probed: readonly string[],
  ): Promise<'shut' | 'back' | undefined> {
    const { name } = this.#sink
    const atMs = this.#options.clock.monotonic()
    const names = new Set(probed)
    if (atMs - this.#toldOkAtMs >= reportMs) names.add(name)
    if (this.#last.failing?.includes(destination) === true) names.add(destination)
    if (names.has(name)) this.#toldOkAtMs = atMs
    const changes = [...names].map((one) =>
      this.#tell(one, 'ok', { isProbe: probed.includes(one) }),
    )
    return (await Promise.all(changes)).findLast((change) => change !== undefined)
  }

  async #reportFailure(
    name: string,
    error: SinkError,
    sent: SentMessage,
  ): Promise<'shut' | 'back' | undefined> {
    const { message, outcome, newParts } = sent
    this.#toldOkAtMs = -Infinity
    const pauseMs = pauseAfter(
      error,
      name === this.#sink.name ? this.#sink.limitPerSecond : undefined,
    )
    const effect = effectOn(error.reason)
    const isFailure = effect === 'fault' || effect === 'broken'
    const isProbe = this.#probedBy(sent).includes(name)
    const common = { isProbe, pauseMs }
    // refused again, while others were accepted: the fault is the message's; a destination's probe
    // ends with an answer, or the next one would hang at once
    const isAlone = this.hasAcceptedSince(message) && (name === this.#sink.name || !isProbe)
    if (isFailure && mayBeMessages(error) && isAlone) return this.#tell(name, 'none', common)
    const blame = message.failedAtMs === undefined ? 'first' : 'again'
    return this.#tell(name, effect, {
      ...common,
      reason: error.reason,
      answer: error.message,
      nextTryInMs: outcome.inMs,
      ...(mayBeMessages(error) && { blame, newParts }),
    })
  }

  /** Reports to one circuit. What shuts a destination shuts nothing else. */
  async #tell(
    name: string,
    word: 'ok' | CircuitEffect,
    report: SentReport,
  ): Promise<'shut' | 'back' | undefined> {
    const { circuit, logger } = this.#options
    const isSinks = name === this.#sink.name
    const change = await circuit.report(name, word, { ...report, isDestinations: !isSinks })
    const about = { sink: this.#sink.name, ...(!isSinks && { destination: name }) }
    if (change === 'opened') logger.warn(about, 'circuit opened: sends to it wait')
    if (change === 'disabled') {
      const message =
        'sink disabled: nothing is sent until its address is another one, or it is resumed'
      logger.error({ ...about, reason: report.answer }, message)
    }
    if (change === 'closed') logger.info(about, 'circuit closed: sends go on')
    const isShut = report.pauseMs !== undefined || (change !== undefined && change !== 'closed')
    if (isShut) this.#admittedAtMs = -Infinity
    if (change === 'closed' && report.pauseMs === undefined) return 'back'
    return isShut && isSinks ? 'shut' : undefined
  }
}
