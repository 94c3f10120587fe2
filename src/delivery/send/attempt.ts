/** One attempt: builds the delivery, sends it, turns the sink's answer into a ledger outcome. */
import { isCanary, ownFeed, severities } from '../../event.ts'
import { type MessageAbout, readFrozenRefs } from '../../grouping/freeze.ts'
import { type Clock, withTimeout } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Metrics } from '../../lib/metrics/metrics.ts'
import { type Attachment, buildAttachment, type CsvRow, toCsvRow } from '../../messages/csv.ts'
import { typeLabel } from '../../messages/message.ts'
import { messagePath } from '../../messages/page-links.ts'
import type { Redis } from '../../redis/client.ts'
import type { Keys } from '../../redis/keys.ts'
import { runScript } from '../../redis/scripts.ts'
import {
  type Delivery,
  type DeliveryMember,
  isAnswerLost,
  type Receipt,
  type Sink,
  SinkError,
  type SinkReason,
} from '../../sinks/sink.ts'
import type { AccountLedger, Standing } from '../../store/account-ledger.ts'
import { type FoundItem, readItems } from '../../store/records.ts'
import type { Circuit } from '../circuit.ts'
import type { Message, Outcome } from '../claims.ts'
import { type MemberOptions, toDeliveryMember, toStoredMember } from './delivery-member.ts'
import type { Rerouter, RetryNow } from '../relief/reroute.ts'
import { decideRetry, mayBeMessages, needsOperator } from './retry-policy.ts'

export interface AttemptOptions extends DeliveryOptions {
  /** Called after a sink accepted and before the outcome is written; must not throw. */
  onDelivered?: ((sink: Sink, delivery: Delivery) => Promise<void>) | undefined
  circuit: Circuit
  /** Moves what the retry table gives up to the sink's fallback, and takes messages apart. */
  rerouter: Pick<Rerouter, 'hasFallback' | 'reroute' | 'unfreeze'>
  /** Makes waiting retries due once a circuit has closed; undefined: each waits its own time. */
  retryNow?: Pick<RetryNow, 'retryAll'> | undefined
  standing: Standing
  /** Names this process in histories. */
  replica: string
  clock: Clock
  logger: Logger
  metrics: Metrics
}

interface AttemptContext {
  ledger: AccountLedger
  sink: Sink
  /** Aborts when the process stops or another process holds the claim. */
  signal: AbortSignal
  /** Whether the claim was renewed a short time ago; after a freeze it may be another process's. */
  isHeld: () => boolean
  others: Others
}

/** What the circuit knows of the sink's other messages. */
interface Others {
  /** Whether the sink has accepted others since the message failed before. */
  hasAcceptedSince(message: Message): boolean
  /** How many messages more were made by splits since the sink accepted anything. */
  readonly blindParts: number
}

/**
 * A rejected message goes to the fallback at once, and a summary goes on as its events; if that is
 * interrupted, after this time.
 */
const followUpRetryMs = 10_000

/** Events that a summary may have to go on as its events: as many messages are no flood. */
const maxSummaryParts = 50

/** What a send ends with that this process broke off; anything else the sink had answered by then. */
const cutOffReasons: ReadonlySet<SinkReason> = new Set([
  'unavailable',
  'timeout',
  'connection_lost',
])

/** Wait after a send that this process broke off: another process takes it up. */
const cutOffRetryMs = 5_000

/** A message with an open attempt. */
export type OpenMessage = Message & { attempt: number }

export interface AttemptResult {
  outcome: Outcome
  /** How the sink answered; undefined if nothing could be sent. */
  sinkResult: 'ok' | SinkError | undefined
  /** The sink will never accept the message, and it goes to the sink's fallback. */
  isGivenUp?: boolean
  /** It goes on in parts, so many more: a batch in halves, a summary as its events. */
  newParts?: number
}

/** Another process may hold the message by now: it is due again unless one does. */
const unsent: AttemptResult = { outcome: { outcome: 'unsent' }, sinkResult: undefined }

export async function attemptSend(
  options: AttemptOptions,
  context: AttemptContext,
  message: OpenMessage,
): Promise<AttemptResult> {
  const { metrics, clock } = options
  const { sink, signal, isHeld } = context
  const enterStage = timeStages(options)
  const delivery = await createDelivery(context, message, options)
  // a configuration that was started a moment ago may have the recipient
  if (delivery === 'recipient_removed' && !(await options.standing.checkNewest())) return unsent
  if (typeof delivery === 'string') {
    return { outcome: { outcome: 'dead', reason: delivery }, sinkResult: undefined }
  }
  let isTooLate = !isHeld()
  if (isTooLate) return unsent
  let hasBegun = false
  const mayBegin = (): boolean => {
    isTooLate = !isHeld()
    if (!isTooLate && !hasBegun) enterStage('send')
    hasBegun ||= !isTooLate
    return !isTooLate
  }
  const beganMs = clock.monotonic()
  let receipt: Receipt
  try {
    receipt = await withTimeout(sink.sendTimeoutMs, [signal], (own) =>
      sink.send(delivery, { signal: own, mayBegin }),
    )
  } catch (error) {
    if (isTooLate) return unsent
    const sinkError = asSinkError(error)
    if (signal.aborted && cutOffReasons.has(sinkError.reason))
      return handleCutOff(options, context, message, sinkError)
    const hasFallback = !delivery.isTest && options.rerouter.hasFallback(sink.name)
    return {
      ...handleFailure(options, context, message, { error: sinkError, hasFallback }),
      sinkResult: sinkError,
    }
  } finally {
    enterStage()
    if (hasBegun && message.mayBeRepeat) metrics.possibleDuplicatesTotal.inc({ sink: sink.name })
  }
  metrics.deliveryAttemptsTotal.inc({ sink: sink.name, outcome: 'delivered' })
  logDelivered(options, context, message, clock.monotonic() - beganMs)
  await options.onDelivered?.(sink, delivery)
  return { outcome: { outcome: 'delivered', answer: receipt.answer }, sinkResult: 'ok' }
}

/** Until its first byte an attempt is prepared: rendered, and connected. From there to its answer it is sent. */
function timeStages({ metrics, clock }: AttemptOptions): (next?: 'send') => void {
  let stage: 'prepare' | 'send' = 'prepare'
  let beganMs = clock.monotonic()
  return (next = 'send') => {
    const nowMs = clock.monotonic()
    metrics.deliveryStageSeconds.observe({ stage }, (nowMs - beganMs) / 1000)
    stage = next
    beganMs = nowMs
  }
}

/**
 * This process broke the send off, because it stops or lost the claim. That says nothing of the
 * sink: it counts neither for its circuit nor as a try, only as an answer that may have been lost.
 */
function handleCutOff(
  options: AttemptOptions,
  context: AttemptContext,
  message: OpenMessage,
  error: SinkError,
): AttemptResult {
  const failure = describeFailure(error)
  const outcome: Outcome = { outcome: 'retry', inMs: cutOffRetryMs, counts: false, ...failure }
  options.metrics.deliveryAttemptsTotal.inc({ sink: context.sink.name, outcome: error.reason })
  logFailure(options, context, message, { outcome, error, isGivenUp: false })
  return { outcome, sinkResult: undefined }
}

function handleFailure(
  options: AttemptOptions,
  context: AttemptContext,
  message: OpenMessage,
  { error, hasFallback }: { error: SinkError; hasFallback: boolean },
): Pick<AttemptResult, 'outcome' | 'isGivenUp' | 'newParts'> {
  const outcome = decideOutcome(options, message, { error, others: context.others })
  const isGivenUp = outcome.outcome === 'dead' && hasFallback
  options.metrics.deliveryAttemptsTotal.inc({ sink: context.sink.name, outcome: error.reason })
  logFailure(options, context, message, { outcome, error, isGivenUp })
  const newParts = outcome.outcome === 'split' ? newPartsOf(message) : 0
  if (!isGivenUp && !(newParts > 0 && message.kind === 'summary')) return { outcome, newParts }
  return { outcome: { ...outcome, outcome: 'retry', inMs: followUpRetryMs }, isGivenUp, newParts }
}

function newPartsOf({ kind, total }: Message): number {
  return kind === 'summary' ? total - 1 : 1
}

/** Whoever answers 2xx, and names an error beside it, may have taken the message all the same. */
function describeFailure({
  reason,
  status = 0,
  message: answer,
}: SinkError): Pick<Outcome, 'reason' | 'answer' | 'answerLost'> {
  const isAccepted = status >= 200 && status < 300
  return { reason, answer, answerLost: isAccepted || isAnswerLost(reason) }
}

function decideOutcome(
  { clock }: AttemptOptions,
  message: OpenMessage,
  { error, others }: { error: SinkError; others: Others },
): Outcome {
  const { reason, retryAfterMs } = error
  const decision = decideRetry({
    reason,
    tries: message.tries,
    ageMs: clock.now() - message.createdAtMs,
    retryAfterMs,
    members: message.kind === 'summary' && message.total > maxSummaryParts ? 1 : message.total,
    attempts: message.attempts,
    mayBeMessages: mayBeMessages(error),
    hasAcceptedOthers: others.hasAcceptedSince(message),
    isNewHalf: message.attempts === 0 && message.failedAtMs !== undefined,
    newParts: newPartsOf(message),
    blindParts: others.blindParts,
    random: Math.random(),
  })
  const failure = describeFailure(error)
  if (decision.act !== 'retry') return { outcome: decision.act, ...failure }
  return { outcome: 'retry', inMs: decision.afterMs, counts: decision.counts, ...failure }
}

/** One line per message that a sink took. */
function logDelivered(
  { logger }: AttemptOptions,
  { ledger, sink }: AttemptContext,
  message: OpenMessage,
  ms: number,
): void {
  const { attempt, rank, total: events } = message
  const worst = severities[rank - 1]
  const where = { sink: sink.name, account: ledger.account, id: deliveryIdOf(message) }
  const sent = { ...where, events, worst, attempt }
  logger.info({ ...sent, ms: Math.round(ms) }, 'delivered')
}

const consequences = {
  retry: 'delivery failed: it is retried',
  split: 'delivery failed: it goes on in parts',
  dead: 'delivery failed for good: a dead letter',
} as const

/** Adds the uid of a single event, and of a batch the number of its events. */
function logFailure(
  { logger }: AttemptOptions,
  { ledger, sink }: AttemptContext,
  message: OpenMessage,
  { outcome, error, isGivenUp }: { outcome: Outcome; error: SinkError; isGivenUp: boolean },
): void {
  if (!isFailure(outcome.outcome)) return
  const { attempt, members, total } = message
  const id = deliveryIdOf(message)
  const subject = members.length === 1 ? { uid: members[0]?.uid } : { events: total }
  const waitsForSink = outcome.outcome === 'retry' && needsOperator(error.reason)
  const again =
    outcome.inMs === undefined || waitsForSink ? {} : { againInSeconds: outcome.inMs / 1000 }
  const where = { sink: sink.name, account: ledger.account, id, ...subject }
  const next = waitsForSink
    ? 'delivery failed: it waits for its sink'
    : consequences[outcome.outcome]
  const consequence = isGivenUp ? 'delivery failed for good: to the fallback' : next
  logger.repeated.warn({ ...where, attempt, ...again, err: error }, consequence, {
    cause: `${sink.name} ${error.reason}`,
    list: 'events',
    name: members.length === 1 ? (members[0]?.uid ?? id) : id,
  })
}

function isFailure(word: Outcome['outcome']): word is keyof typeof consequences {
  return Object.hasOwn(consequences, word)
}

export function countSettled(
  { metrics, clock }: AttemptOptions,
  { name: sink, audience }: Sink,
  { message: { members, total }, outcome: { outcome } }: { message: Message; outcome: Outcome },
): void {
  if (outcome === 'retry' || outcome === 'unsent') return
  metrics.deliveriesTotal.inc({ sink, outcome })
  if (outcome === 'split') return
  metrics.itemsSettledTotal.inc({ sink, outcome }, total)
  if (outcome === 'dead') return
  for (const { severity, payload } of members) {
    const waitedMs = clock.now() - (payload?.fetchedAtMs ?? clock.now())
    const seconds = Math.max(0, waitedMs) / 1000
    metrics.eventFetchToDeliverySeconds.observe({ audience, severity }, seconds)
  }
}

/**
 * Sinks throw only SinkErrors. Any other error counts as `connection_lost`: the message may have
 * been sent.
 */
function asSinkError(error: unknown): SinkError {
  if (error instanceof SinkError) return error
  return new SinkError('connection_lost', `the sink broke off: ${errorMessage(error)}`, {
    cause: error,
  })
}

export interface DeliveryOptions extends MemberOptions {
  findLedger: (account: string) => AccountLedger | undefined
  /**
   * Returns the references of the events that a summary's file lists, in one ledger; by default those
   * of the frozen message.
   */
  readListed?: ((ledger: AccountLedger) => Promise<string[]>) | undefined
}

/** What a delivery is made of. */
export type DeliveryParts = Pick<
  OpenMessage,
  'kind' | 'ref' | 'destination' | 'members' | 'about' | 'attempt' | 'mayBeRepeat'
>

/** Why a message can never be sent. */
type Unsendable = 'payload_expired' | 'recipient_removed'

/** The id that the sink shows, the log names and `items show` takes. */
function deliveryIdOf({ kind, ref, members }: Pick<Message, 'kind' | 'ref' | 'members'>): string {
  return kind === 'item' ? (members[0]?.id ?? '') : `b${ref.split(':')[1] ?? ''}`
}

/** Returns the delivery that an attempt sends, or the reason why it can never be sent. */
export async function createDelivery(
  { ledger, sink }: { ledger: AccountLedger; sink: Sink },
  message: DeliveryParts,
  options: DeliveryOptions,
): Promise<Delivery | Unsendable> {
  const destination = sink.destinations.find(({ id }) => id === message.destination)
  if (!destination) return 'recipient_removed'
  const { attempt, mayBeRepeat } = message
  const id = deliveryIdOf(message)
  const common = { id, destination, attempt, mayBeRepeat, timeZone: sink.timeZone }
  if (message.kind === 'summary') {
    const messageId = id.slice(1)
    const request = { sink, messageId, options }
    const { about, members, attachment } = await readSummaryParts(request, message)
    if (about.summary.total > 0 && members.length === 0) return 'payload_expired'
    const { total, kind, divertedFrom, digest, lastAtMs } = about.summary
    const isSole = total === 1 && kind !== 'digest' && divertedFrom === undefined
    // the page knows a message by its events
    const path = messagePath(id, digest?.toMs ?? lastAtMs)
    const pageUrl = total === 0 ? undefined : options.pageAddress(path)
    return {
      ...common,
      members,
      ...(!isSole && { summary: about.summary, ...(pageUrl !== undefined && { pageUrl }) }),
      ...(hasOnlyCanaries(about.summary) && { isTest: true }),
      ...(attachment && { attachment }),
    }
  }
  const members: DeliveryMember[] = []
  for (const member of message.members) {
    const ready = member.made ?? toDeliveryMember(sink, ledger.account, member, options)
    if (!ready) return 'payload_expired'
    members.push(ready)
  }
  return {
    ...common,
    members,
    ...(members.every(isCanary) && { isTest: true }),
  }
}

/**
 * Canaries that were held or moved together share a message. A digest is no test, whatever it holds.
 */
function hasOnlyCanaries({ kind, total, byType, byFeed }: MessageAbout['summary']): boolean {
  return (
    kind !== 'digest' &&
    total > 0 &&
    byType.every(({ name }) => name === 'canary') &&
    byFeed.every(({ name }) => name === ownFeed)
  )
}

interface SummaryRequest {
  sink: Sink
  messageId: string
  options: DeliveryOptions
}

interface SummaryParts {
  about: MessageAbout
  members: DeliveryMember[]
  attachment: Attachment | undefined
}

const readChunk = 300

/** Rows in an attachment: more take seconds to compress. The last line counts the omitted rows. */
const maxRows = 20_000

/**
 * Reads the events that a summary shows and its attachment. Members of accounts that are no longer
 * configured are counted but not shown.
 */
export async function readSummaryParts(
  request: SummaryRequest,
  message: Pick<OpenMessage, 'about'>,
): Promise<SummaryParts> {
  const about = JSON.parse(message.about ?? '{}') as MessageAbout
  if (request.sink.hidesExcerpts === true) untitle(about)
  const found: FoundItem[] = []
  for (const { account, ref } of about.shown) {
    const ledger = request.options.findLedger(account)
    if (ledger) found.push(...(await readItems(ledger, [ref])))
  }
  return {
    about,
    members: found.flatMap((item) => toStoredMember(request.sink, item, request.options) ?? []),
    attachment: await createAttachment(request, about),
  }
}

/** A kept title may quote a text. */
function untitle({ summary: { digest } }: MessageAbout): void {
  for (const one of digest?.undelivered ?? []) one.title = `${typeLabel(one.type)}: uid ${one.uid}`
}

/**
 * Builds a file of all events if the summary stands for more than it shows and the sink can attach
 * files.
 */
async function createAttachment(
  request: SummaryRequest,
  about: MessageAbout,
): Promise<Attachment | undefined> {
  const { summary, accounts, shown } = about
  if (request.sink.canAttach !== true || summary.total <= shown.length) return undefined
  const rows: CsvRow[] = []
  for (const account of accounts) {
    const ledger = request.options.findLedger(account)
    if (ledger) rows.push(...(await readCsvRows(request, ledger, maxRows - rows.length)))
  }
  const day = new Date(summary.digest?.toMs ?? summary.lastAtMs).toISOString().slice(0, 10)
  return buildAttachment(rows, `tocsin-${summary.kind}-${day}`, summary.total)
}

async function readCsvRows(
  request: SummaryRequest,
  ledger: AccountLedger,
  max: number,
): Promise<CsvRow[]> {
  const { sink, messageId, options } = request
  const all = await (options.readListed?.(ledger) ?? readFrozenRefs(ledger, messageId))
  const refs = all.slice(0, max)
  const rows: CsvRow[] = []
  for (let at = 0; at < refs.length; at += readChunk) {
    const found = await readItems(ledger, refs.slice(at, at + readChunk))
    rows.push(...found.flatMap((item) => toStoredMember(sink, item, options) ?? []).map(toCsvRow))
  }
  return rows
}

export interface SendPace {
  /**
   * Takes the sink's next send slot if its time has come. `nextInMs` is the time until the next
   * free slot.
   */
  take(sink: Sink): Promise<{ isTaken: boolean; nextInMs: number }>
}

export function createSendPace(redis: Redis, keys: Keys): SendPace {
  return {
    async take({ name, limitPerSecond }) {
      if (limitPerSecond === undefined) return { isTaken: true, nextInMs: 0 }
      const spacingMs = 1_000 / limitPerSecond
      const answer = await runScript(redis, 'pace-send', [keys.shared('pace', name)], [spacingMs])
      const [taken, nextInMs = 0] = answer as number[]
      return { isTaken: taken === 1, nextInMs }
    },
  }
}
