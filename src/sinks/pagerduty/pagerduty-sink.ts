/**
 * Opens incidents for people on call through PagerDuty's Events API v2 (docs/api-notes.md,
 * PagerDuty). A send is one `trigger` whose `dedup_key` is the delivery's id, so that a repeat joins
 * the open incident; only a canary, and the end of Tocsin's own trouble, resolve one. Acceptance is a 2xx that
 * names no error.
 */
import {
  isCanary,
  isKnownSeverity,
  type KnownSeverity,
  ownFeed,
  type Severity,
} from '../../event.ts'
import { errorMessage } from '../../lib/errors.ts'
import { secretFromText } from '../../lib/secret.ts'
import { guidanceTexts, type MessageGuidance } from '../../messages/guidance.ts'
import { type Message, messageLimits } from '../../messages/message.ts'
import { cleanLine, cutText, sanitizeLine } from '../../messages/sanitize.ts'
import {
  formatRemainder,
  listCommand,
  renderSummary,
  type SummaryLine,
  type SummaryMessage,
} from '../../messages/summary-message.ts'
import { type NameCount, severityLabel, type Summary } from '../../messages/summary.ts'
import type { SinkParts } from '../config.ts'
import { listDestinations } from '../destinations.ts'
import {
  classifyStatus,
  createHttpTransport,
  type Denial,
  errorFromAnswer,
  findDenial,
  type HttpAnswer,
  isSuccess,
  readTarget,
} from '../http.ts'
import {
  arrangeFacts,
  type Delivery,
  formatContext,
  type Receipt,
  type SendOptions,
  type Sink,
  SinkError,
  type SinkReason,
  soleMember,
} from '../sink.ts'
import { createEventRenderer, type RenderEvent, renderEventMessage } from '../templates.ts'
import { type PagerDutyConfig, routingKeyProblem } from './config.ts'

const sendTimeoutMs = 15_000
const concurrency = 4
const receiver = 'pagerduty'
const headers = { 'content-type': 'application/json', 'user-agent': 'tocsin' }

/** Reads the routing key at each send, so that it can change without a restart. */
export function createPagerDutySink(config: PagerDutyConfig, parts: SinkParts): Sink {
  const { logger, clock } = parts
  const render = createEventRenderer(config, parts)
  const { name, limitPerSecond, allowPrivate } = config
  const url = secretFromText(`${new URL(config.url).origin}/v2/enqueue`)
  const transport = createHttpTransport({
    allowPrivate,
    outbound: config,
    maxConnections: concurrency,
    receiver,
    readsAnswer: true,
  })

  async function send(delivery: Delivery, options: SendOptions): Promise<Receipt> {
    const routingKey = readRoutingKey(config)
    const body = JSON.stringify({ routing_key: routingKey, ...renderIncident(delivery, render) })
    const answer = await transport.post(
      readTarget({ url, allowPrivate }),
      { headers, body },
      options,
    )
    const { status } = answer
    logger.debug({ sink: name, delivery: delivery.id, status }, 'pagerduty answered')
    const denial = isSuccess(status) ? findDenial(answer.body) : classifyAnswer(answer, routingKey)
    if (denial) throw refusalError(answer, denial, clock.now())
    return {
      answer: cutText(`${status} ${readAnswer(answer.body, routingKey)}`.trim(), maxAnswerLength),
    }
  }

  return {
    name,
    type: 'pagerduty',
    audience: 'people',
    timeZone: config.timeZone,
    destinations: listDestinations(config),
    limitPerSecond,
    concurrency,
    sendTimeoutMs,
    send,
    async reach(signal) {
      readRoutingKey(config)
      return transport.reach(readTarget({ url, allowPrivate }), signal)
    },
    preview(delivery) {
      const body = renderIncident(delivery, render)
      const added = 'routing_key, the key of the integration'
      return { text: JSON.stringify(body, null, 2), body, headers, added }
    },
    close: () => transport.close(),
  }
}

function readRoutingKey({ routingKey }: PagerDutyConfig): string {
  let key: string
  try {
    key = routingKey.reveal()
  } catch (error) {
    throw new SinkError('misconfigured', `routing_key cannot be read: ${errorMessage(error)}`)
  }
  const problem = routingKeyProblem(key)
  if (problem === undefined) return key
  throw new SinkError('misconfigured', `routing_key: ${problem.problem}; ${problem.remedy}`)
}

/** An event of the Events API, without its routing key. */
interface Incident {
  event_action: 'trigger' | 'resolve'
  dedup_key: string
  client: string
  payload: {
    summary: string
    source: string
    severity: 'critical' | 'error' | 'warning' | 'info'
    /** ISO 8601 UTC: when Tocsin found it. */
    timestamp: string
    component?: string | undefined
    group?: string | undefined
    class?: string | undefined
    custom_details: Record<string, string | string[]>
  }
  links: { href: string; text: string }[]
}

/** Throws SinkError `invalid` for several events without a summary. */
export function renderIncident(
  delivery: Delivery,
  render: RenderEvent = renderEventMessage,
): Incident {
  const { summary, isTest = false } = delivery
  const { severity, ...rendered } =
    summary === undefined ? renderEvent(delivery, render) : renderEvents(delivery, summary)
  return {
    ...findIncident(delivery),
    client: 'Tocsin',
    payload: { severity: isTest ? 'info' : toUrgency(severity), ...rendered.payload },
    links: rendered.links,
  }
}

/** The end of one of Tocsin's own troubles resolves the incident that its begin opened. */
function findIncident(delivery: Delivery): Pick<Incident, 'event_action' | 'dedup_key'> {
  const { id, members, summary, isTest = false } = delivery
  const [own] = members.filter(({ feed, event }) => feed === ownFeed && event.type === 'notice')
  const [, trouble, edge] = /^(\S{1,255})-(begin|end)$/.exec(own?.event.uid ?? '') ?? []
  if (summary === undefined && trouble !== undefined) {
    return { event_action: edge === 'end' ? 'resolve' : 'trigger', dedup_key: trouble }
  }
  // A canary must page nobody: PagerDuty accepts the end of an incident that never began, and drops it.
  const isTrigger = !isTest || !members.every(isCanary)
  return { event_action: isTrigger ? 'trigger' : 'resolve', dedup_key: id }
}

const urgencies: Readonly<Record<KnownSeverity, Incident['payload']['severity']>> = {
  critical: 'critical',
  high: 'error',
  medium: 'warning',
  low: 'info',
  info: 'info',
}

/** An unknown severity counts as critical, as everywhere; undefined: there is no event. */
function toUrgency(severity: Severity | undefined): Incident['payload']['severity'] {
  if (severity === undefined) return 'info'
  return isKnownSeverity(severity) ? urgencies[severity] : 'critical'
}

interface Rendered {
  /** The gravest. */
  severity: Severity | undefined
  payload: Omit<Incident['payload'], 'severity'>
  links: Incident['links']
}

function renderEvent(delivery: Delivery, render: RenderEvent): Rendered {
  const member = soleMember(delivery)
  const message = render(delivery)
  const { link } = message
  return {
    severity: member.event.severity,
    payload: {
      summary: message.summary,
      source: message.identifiers[0] || message.feed || 'tocsin',
      timestamp: new Date(message.fetchedAtMs).toISOString(),
      component: message.feed,
      group: message.account,
      class: sanitizeLine(member.event.type, messageLimits.typeLabel) || undefined,
      custom_details: toDetails(eventDetails(message, delivery.id)),
    },
    links: [
      ...(link === null ? [] : [{ href: link, text: 'Open event' }]),
      ...runbookLinks(message.guidance),
    ],
  }
}

function runbookLinks({ runbookUrls }: MessageGuidance): Incident['links'] {
  return runbookUrls.map((href) => ({ href, text: 'Open runbook' }))
}

function guidanceDetails(guidance: MessageGuidance): Detail[] {
  return guidanceTexts(guidance).map(({ label, text }) => [label, text])
}

type Detail = [label: string, value: string | string[]]

function eventDetails(message: Message, deliveryId: string): Detail[] {
  const { notes, extract, uid, routes } = message
  return [
    ['Notes', notes],
    ['Text', [...(message.body ?? [])]],
    ...arrangeFacts(message).first.map(({ label, value }): Detail => [label, value]),
    ...guidanceDetails(message.guidance),
    ...(extract === null ? [] : [[extract.label || 'Extract', extract.text] satisfies Detail]),
    ['Context', formatContext(message)],
    ['Uid', uid],
    ['Routes', routes],
    ['Delivery', deliveryId],
  ]
}

/** Events that an incident lists; nobody on call reads more. It counts all. */
const maxLines = 25

function renderEvents(delivery: Delivery, summary: Summary): Rendered {
  const message = renderSummary({ ...delivery, summary, attachment: undefined })
  const { byIdentifier, byFeed, byType, bySeverity, lastAtMs } = summary
  const feed = soleName(byFeed)
  const accounts = new Set(delivery.members.map(({ account }) => account))
  return {
    severity: bySeverity[0]?.severity,
    payload: {
      summary: message.subject,
      source: soleName(byIdentifier) ?? feed ?? 'tocsin',
      timestamp: new Date(lastAtMs).toISOString(),
      component: feed,
      group: soleName([...accounts].map((name) => ({ name }))),
      class: soleName(byType),
      custom_details: toDetails(summaryDetails(message, delivery.id)),
    },
    links: [
      ...runbookLinks(message.guidance),
      ...message.lines.slice(0, maxLines).flatMap(({ link }, index) => {
        return link === null ? [] : [{ href: link, text: `Open event ${index + 1}` }]
      }),
    ],
  }
}

/** What all events of a summary have in common; undefined: they differ. */
function soleName(names: readonly Pick<NameCount, 'name'>[]): string | undefined {
  const [first, ...others] = names
  if (first === undefined || others.length > 0) return undefined
  return sanitizeLine(first.name, messageLimits.name) || undefined
}

function summaryDetails(message: SummaryMessage, deliveryId: string): Detail[] {
  const lines = message.lines.slice(0, maxLines)
  return [
    ['Notes', [...message.alarms, ...message.notes]],
    ...guidanceDetails(message.guidance),
    ['Covers', message.title],
    ['Events', lines.map(formatLine)],
    ['Not listed', formatRemainder(message, lines.length, deliveryId) ?? ''],
    ...message.counts.map(({ label, entries }): Detail => [
      label,
      entries.map(({ name, count }) => `${count} ${name}`),
    ]),
    ['Route', message.route ?? ''],
    ['Delivery', deliveryId],
    ['All events', listCommand(message, deliveryId) ?? ''],
  ]
}

function formatLine(
  { severity, title, identifier, remark, time }: SummaryLine,
  index: number,
): string {
  const margin = [identifier, remark, time].filter((part) => part !== null).join(' · ')
  return `${index + 1}. ${severityLabel(severity)} ${title} (${margin})`
}

/** Leaves out what is empty; of labels that are the same, each but the first gets a number. */
function toDetails(details: readonly Detail[]): Record<string, string | string[]> {
  const byLabel = new Map<string, string | string[]>()
  for (const [label, value] of details.filter(([, { length }]) => length > 0)) {
    let name = label
    for (let count = 2; byLabel.has(name); count += 1) name = `${label} (${count})`
    byLabel.set(name, value)
  }
  return Object.fromEntries(byLabel)
}

const maxAnswerLength = 200

/** PagerDuty asks for "a backoff of a few minutes"; it does not document `Retry-After`. */
const rateLimitSeconds = '180'

const advice: Partial<Record<SinkReason, string>> = {
  unauthorized: '; put the integration key of an "Events API v2" integration into routing_key',
  redirected: '; url is not the Events API',
  rejected: '; check that url is the Events API',
}

function refusalError(answer: HttpAnswer, denial: Denial, nowMs: number): SinkError {
  const { status, retryAfter } = answer
  return errorFromAnswer(
    status === 429 ? { ...answer, retryAfter: retryAfter ?? rateLimitSeconds } : answer,
    { nowMs, ...denial, receiver, advice },
  )
}

/**
 * A key that PagerDuty does not know is refused by 400, too. It says nothing of the event, so the
 * event must wait until the operator has mended the key.
 */
function classifyAnswer({ status, body }: HttpAnswer, routingKey: string): Denial {
  const word = readAnswer(body, routingKey)
  const isOfKey = status === 400 && /routing[ _]key/i.test(word)
  return { reason: isOfKey ? 'unauthorized' : classifyStatus(status), word }
}

/** `success, dedup_key e4f1c9`; `invalid event: summary is too long`; empty if it says nothing. */
function readAnswer(body: string, routingKey: string): string {
  const { status, message, errors, dedup_key: dedupKey } = parseAnswer(body)
  const reasons = Array.isArray(errors) && errors.length > 0 ? errors : [message]
  const clean = (value: unknown): string =>
    typeof value === 'string' ? cleanLine(hideKey(value, routingKey), maxAnswerLength) : ''
  const said =
    dedupKey === undefined
      ? [clean(status), reasons.map(clean).filter(Boolean).join('; ')].filter(Boolean).join(': ')
      : `${clean(status)}, dedup_key ${clean(dedupKey)}`
  return cutText(said, maxAnswerLength)
}

function parseAnswer(body: string): Record<string, unknown> {
  try {
    const answer: unknown = JSON.parse(body)
    return typeof answer === 'object' && answer !== null ? { ...answer } : {}
  } catch {
    return {}
  }
}

/** Characters of a key that no message shows in a row. */
const fewestHidden = 6

/** An answer may quote the routing key that it refuses, or a part of it. */
function hideKey(text: string, routingKey: string): string {
  const key = routingKey.toLowerCase()
  const sharesPart = (run: string): boolean =>
    Array.from(run, (_, at) => run.slice(at, at + fewestHidden)).some(
      (part) => part.length === fewestHidden && key.includes(part.toLowerCase()),
    )
  return text.replace(/[A-Za-z0-9]+/g, (run) => (sharesPart(run) ? '<secret>' : run))
}
