/**
 * Opens incidents for people on call through PagerDuty's Events API v2 (docs/api-notes.md,
 * PagerDuty). A send is one `trigger` whose `dedup_key` is the delivery's id, so that a repeat
 * joins the open incident. Only a canary, and the end of Tocsin's own trouble, resolve one.
 * Acceptance is a 2xx that names no error.
 */
import {
  isCanary,
  isKnownSeverity,
  type KnownSeverity,
  ownFeed,
  type Severity,
} from '../../event.ts'
import { hideSecret, secretFromText } from '../../lib/config/secret.ts'
import {
  type Document,
  type DocumentLine,
  documentLinks,
  fit,
  lineRemarks,
} from '../../messages/document.ts'
import { messageLimits } from '../../messages/message.ts'
import { cleanLine, cutText, sanitizeLine } from '../../messages/sanitize.ts'
import { type NameCount, severityLabel, type Summary } from '../../messages/summary.ts'
import type { SinkParts } from '../config.ts'
import {
  classifyStatus,
  type Denial,
  findDenial,
  type HttpAnswer,
  isSuccess,
  readTarget,
} from '../http.ts'
import { createHttpSink } from '../http-sink.ts'
import {
  type Delivery,
  revealSecret,
  type Sink,
  SinkError,
  type SinkReason,
  soleMember,
} from '../sink.ts'
import { createDocumentRenderer, renderDocument } from '../templates/templates.ts'
import { type PagerDutyConfig, routingKeyProblem } from './config.ts'

const headers = { 'content-type': 'application/json', 'user-agent': 'tocsin' }

export function createPagerDutySink(config: PagerDutyConfig, parts: SinkParts): Sink {
  const render = createDocumentRenderer(config, parts)
  const { allowPrivate } = config
  const url = secretFromText(`${new URL(config.url).origin}/v2/enqueue`)
  const { post, ...sink } = createHttpSink(
    config,
    {
      audience: 'people',
      receiver: 'pagerduty',
      concurrency: 4,
      readsAnswer: true,
      readUrl: () => readTarget({ url, allowPrivate }),
      judge: (answer) => judge(answer, readRoutingKey(config)),
      describeAcceptance({ status, body }) {
        const answer = `${status} ${readAnswer(body, readRoutingKey(config))}`
        return cutText(answer.trim(), maxAnswerLength)
      },
      advice,
    },
    parts,
  )
  return {
    ...sink,
    async send(delivery, options) {
      const key = readRoutingKey(config)
      const body = JSON.stringify({ routing_key: key, ...renderIncident(delivery, render) })
      return post({ headers, body }, options)
    },
    async reach(signal) {
      readRoutingKey(config)
      return sink.reach(signal)
    },
    preview(delivery) {
      const body = renderIncident(delivery, render)
      const added = 'routing_key, the key of the integration'
      return { text: JSON.stringify(body, null, 2), body, headers, added }
    },
  }
}

/** Reads the key at each use, so that it can change without a restart. */
function readRoutingKey({ routingKey }: PagerDutyConfig): string {
  const key = revealSecret(routingKey, 'routing_key')
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
    custom_details: Record<string, string | readonly string[]>
  }
  links: { href: string; text: string }[]
}

/** Bytes of a request: 512 KB are documented (docs/api-notes.md, PagerDuty). */
const maxIncidentBytes = 500_000

/** Events that an incident lists; nobody on call reads more. It counts all. */
const maxLines = 25

/** Throws SinkError `invalid` for several events without a summary. */
export function renderIncident(delivery: Delivery, render = renderDocument): Incident {
  return fit(render({ ...delivery, attachment: undefined }), {
    limit: maxIncidentBytes,
    maxLines,
    render: (document) => buildIncident(document, delivery),
    measure: (incident) => Buffer.byteLength(JSON.stringify(incident)),
  })
}

function buildIncident(document: Document, delivery: Delivery): Incident {
  const { notification, lines } = document
  const { summary, members, isTest = false } = delivery
  // as the feed gave it: cleaned, an unknown word could read as a known one
  const severity = summary ? summary.bySeverity[0]?.severity : members[0]?.event.severity
  return {
    ...findIncident(delivery),
    client: 'Tocsin',
    payload: {
      severity: isTest ? 'info' : toUrgency(severity),
      summary: notification,
      ...(summary === undefined ? describeEvent(delivery) : describeEvents(summary, delivery)),
      custom_details: toDetails(listDetails(document)),
    },
    links: [
      ...documentLinks(document).map(({ text, url }) => ({ href: url, text })),
      ...lines.flatMap(({ link }, index) => {
        return link === null ? [] : [{ href: link, text: `Open event ${index + 1}` }]
      }),
    ],
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

type About = Pick<Incident['payload'], 'source' | 'timestamp' | 'component' | 'group' | 'class'>

function describeEvent(delivery: Delivery): About {
  const { event, feed, account, fetchedAtMs } = soleMember(delivery)
  const clean = (name = ''): string => sanitizeLine(name, messageLimits.name)
  return {
    source: clean(event.identifiers[0]?.name) || clean(feed) || 'tocsin',
    timestamp: new Date(fetchedAtMs).toISOString(),
    component: clean(feed),
    group: clean(account),
    class: sanitizeLine(event.type, messageLimits.typeLabel) || undefined,
  }
}

function describeEvents(summary: Summary, { members }: Delivery): About {
  const { byIdentifier, byFeed, byType, lastAtMs } = summary
  const accounts = new Set(members.map(({ account }) => account))
  const feed = soleName(byFeed)
  return {
    source: soleName(byIdentifier) ?? feed ?? 'tocsin',
    timestamp: new Date(lastAtMs).toISOString(),
    component: feed,
    group: soleName([...accounts].map((name) => ({ name }))),
    class: soleName(byType),
  }
}

/** What all events of a summary have in common; undefined: they differ. */
function soleName(names: readonly Pick<NameCount, 'name'>[]): string | undefined {
  const [first, ...others] = names
  if (first === undefined || others.length > 0) return undefined
  return sanitizeLine(first.name, messageLimits.name) || undefined
}

type Detail = [label: string, value: string | readonly string[]]

function listDetails(document: Document): Detail[] {
  const { typeLabel, title, alarms, notes, body, facts, related, guidance, extract } = document
  const { foot, pageUrl } = document
  const isOne = typeLabel !== null
  return [
    ['Notes', [...alarms, ...notes]],
    ['Text', body],
    ...[...facts, ...related].map(({ label, value }): Detail => [label, value]),
    ...guidance.texts.map(({ label, text }): Detail => [label, text]),
    ...(extract === null ? [] : [[extract.label, extract.text] satisfies Detail]),
    ['Covers', isOne ? '' : title],
    ['Events', document.lines.map(formatLine)],
    ['Not listed', document.more ?? ''],
    ...document.counts.map(({ label, entries }): Detail => [
      label,
      entries.map(({ name, count }) => `${count} ${name}`),
    ]),
    ['Context', document.context],
    ['Uid', foot.uid ?? ''],
    isOne ? ['Routes', foot.routes] : ['Route', foot.routes.join(', ')],
    ['Delivery', foot.deliveryId],
    ['page_url', pageUrl ?? ''],
  ]
}

function formatLine(line: DocumentLine, index: number): string {
  const { severity, title } = line
  return `${index + 1}. ${severityLabel(severity)} ${title} (${lineRemarks(line).join(' · ')})`
}

/** Leaves out what is empty; of labels that are the same, each but the first gets a number. */
function toDetails(details: readonly Detail[]): Incident['payload']['custom_details'] {
  const byLabel = new Map<string, string | readonly string[]>()
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

/**
 * A key that PagerDuty does not know is refused by 400, too. It says nothing of the event, so the
 * event must wait until the operator has mended the key.
 */
function judge({ status, body }: HttpAnswer, routingKey: string): Denial | undefined {
  if (isSuccess(status)) return findDenial(body)
  const word = readAnswer(body, routingKey)
  const isOfKey = status === 400 && /routing[ _]key/i.test(word)
  return {
    reason: isOfKey ? 'unauthorized' : classifyStatus(status),
    word,
    ...(status === 429 && { retryAfter: rateLimitSeconds }),
  }
}

/** `success, dedup_key e4f1c9`; `invalid event: summary is too long`; empty if it says nothing. */
function readAnswer(body: string, routingKey: string): string {
  const { status, message, errors, dedup_key: dedupKey } = parseAnswer(body)
  const reasons = Array.isArray(errors) && errors.length > 0 ? errors : [message]
  const clean = (value: unknown): string =>
    typeof value === 'string'
      ? cleanLine(hideSecret(value, routingKey, fewestHidden), maxAnswerLength)
      : ''
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
