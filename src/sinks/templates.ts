/**
 * A sink's own templates: its keys in the configuration, and the messages that come of them. A
 * template that fails costs its words and never the message, which then has the built-in look.
 */
import type { z } from 'zod'
import { ownFeed } from '../event.ts'
import { messageFor, refusal, type Refusal, section, text } from '../lib/config-fields.ts'
import { errorMessage } from '../lib/errors.ts'
import { readNamedFile } from '../lib/secret.ts'
import { type Message, messageLimits, renderMessage } from '../messages/message.ts'
import { cutText, sanitizeLine } from '../messages/sanitize.ts'
import { severityLabel } from '../messages/summary.ts'
import { readTemplateValues, type TemplateValues } from './event-data.ts'
import { type Delivery, soleMember } from './sink.ts'
import {
  maxTemplateBytes,
  parseTemplate,
  type Template,
  type TemplateKind,
  templateProblem,
} from './template-engine.ts'

/** The texts of a sink's templates; those of files as they were when the configuration was read. */
export interface MessageTemplates {
  title?: string | undefined
  body?: string | undefined
}

export interface BodyTemplates {
  webhook_body?: string | undefined
}

type Field = z.ZodOptional<z.ZodType<string>>

/** A template's two keys, the text itself and a file of it. */
function templateKeys<const Key extends string>(
  key: Key,
  describe: string,
): Record<Key | `${Key}_file`, Field> {
  return {
    [key]: text(`${describe} A template in Liquid, up to 16 KiB.`).optional(),
    [`${key}_file`]: text(`File that holds ${key}, read when the configuration is.`).optional(),
  } as Record<Key | `${Key}_file`, Field>
}

/** `templates` of a sink for people. */
export const messageTemplatesConfig = section(
  {
    ...templateKeys('title', 'The title of a message about one event.'),
    ...templateKeys('body', 'Its lines, instead of facts and quotation.'),
  },
  { describe: "A sink's own words for messages about one event. Default: the built-in ones." },
).transform((file, context): MessageTemplates => {
  const read = createReader(file, context)
  return { title: read('title', 'lines'), body: read('body', 'lines') }
})

/** `templates` of a webhook. */
export const bodyTemplatesConfig = section(
  templateKeys('webhook_body', 'The body of a request for one event, in JSON.'),
  { describe: "A webhook's own body. Default: the built-in one." },
).transform((file, context): BodyTemplates => {
  const read = createReader(file, context)
  return { webhook_body: read('webhook_body', 'json') }
})

type ReadTemplate = (key: string, kind: TemplateKind) => string | undefined

function createReader(
  file: Readonly<Record<string, unknown>>,
  context: z.core.$RefinementCtx,
): ReadTemplate {
  return (key, kind) => {
    const found = readTemplate(file, key)
    if (found === undefined) return undefined
    const problem = typeof found === 'string' ? checkTemplate(found, kind) : found
    if (problem === undefined) return found as string
    const path = [file[key] === undefined ? `${key}_file` : key]
    context.addIssue({ code: 'custom', path, message: messageFor(problem) })
    return undefined
  }
}

function readTemplate(
  file: Readonly<Record<string, unknown>>,
  key: string,
): string | Refusal | undefined {
  const [inline, path] = [file[key], file[`${key}_file`]]
  if (inline !== undefined && path !== undefined) {
    return refusal(`given beside ${key}_file`, `keep either ${key} or ${key}_file`)
  }
  if (typeof inline === 'string') return inline
  return typeof path === 'string' ? readNamedFile(path, { maxBytes: maxTemplateBytes }) : undefined
}

function checkTemplate(template: string, kind: TemplateKind): Refusal | undefined {
  return templateProblem(template, kind) ?? (kind === 'json' ? jsonProblem(template) : undefined)
}

/** A body that is no JSON for an ordinary event would be none for all. */
function jsonProblem(template: string): Refusal | undefined {
  try {
    renderJson(parseTemplate(template, { kind: 'json' }), sampleValues)
    return undefined
  } catch (error) {
    const problem = `fails for an ordinary event: ${sanitizeLine(errorMessage(error), 120)}`
    const remedy =
      'write values without quotes around them, as in {"title": {{ title }}}, and commas between them only'
    return refusal(problem, remedy)
  }
}

const sampleMoment = '2026-11-01T12:00:00.000Z'
const sampleValues: TemplateValues = {
  id: 'e1',
  title: 'Stealer log: joe@acme[.]com',
  summary: 'HIGH Stealer log: joe@acme[.]com',
  uid: 'stealer_log/stealer_logs/1',
  kind: 'event',
  type: 'stealer_log',
  source: 'stealer_logs',
  severity: 'high',
  original_severity: null,
  account: 'main',
  tenant_id: null,
  feed: 'brand',
  labels: { team: 'brand' },
  routes: ['urgent'],
  identifiers: [{ id: 1, name: 'acme.com' }],
  tags: ['sample'],
  notes: null,
  next_step: 'Reset the password.',
  url: 'https://app.example.com/#/uid?uid=1',
  link: 'https://app.example.com/#/uid?uid=1',
  created_at: sampleMoment,
  matched_at: sampleMoment,
  fetched_at: sampleMoment,
  highlights: {},
  detail: null,
  facts: [{ label: 'Login', value: 'joe@acme[.]com' }],
}

/** For `tocsin check`: `, templates: title, body`. */
export function describeTemplates(templates: object | undefined): string {
  const names = listTemplates(templates)
  return names.length === 0 ? '' : `, templates: ${names.join(', ')}`
}

export function listTemplates(templates: object | undefined): string[] {
  return Object.entries(templates ?? {})
    .filter(([, template]) => template !== undefined)
    .map(([name]) => name)
}

/** One rendering that failed; the message went out with the built-in look. */
export interface TemplateFailure {
  sink: string
  template: string
  /** Quotes no value. */
  problem: string
}

export interface TemplateParts {
  /** Called for each rendering that fails. */
  onTemplateFailure?: ((failure: TemplateFailure) => void) | undefined
}

/** The message about the one event of a delivery. Throws SinkError `invalid` for several. */
export type RenderEvent = (delivery: Delivery) => Message

/** With the built-in look. */
export const renderEventMessage: RenderEvent = (delivery) =>
  renderMessage(soleMember(delivery), delivery)

interface TemplatedSink<Templates> {
  name: string
  templates?: Templates | undefined
  timeZone?: string | undefined
}

const maxBodyLines = 25

/** What Tocsin tells of itself keeps its look: a template written for events would hide it. */
export function createEventRenderer(
  { name, templates = {}, timeZone }: TemplatedSink<MessageTemplates>,
  { onTemplateFailure }: TemplateParts,
): RenderEvent {
  if (listTemplates(templates).length === 0) return renderEventMessage
  const options = { kind: 'lines', timeZone } as const
  const parsed = Object.entries(templates).flatMap(([template, content]: [string, unknown]) =>
    typeof content === 'string' ? [{ template, engine: parseTemplate(content, options) }] : [],
  )
  return (delivery) => {
    const message = renderEventMessage(delivery)
    const member = soleMember(delivery)
    if (member.feed === ownFeed) return message
    const values = readTemplateValues(member, delivery)
    let own = message
    for (const { template, engine } of parsed) {
      try {
        const written = engine.render(values)
        own = template === 'title' ? withTitle(own, written, delivery) : withBody(own, written)
      } catch (error) {
        onTemplateFailure?.({ sink: name, template, problem: errorMessage(error) })
      }
    }
    return own
  }
}

/** As untrusted as the title that it replaces: it may consist of a feed's words alone. */
function withTitle(message: Message, written: string, { isTest = false }: Delivery): Message {
  const words = sanitizeLine(written, messageLimits.title)
  if (words === '') throw new Error('the title is empty')
  const isMarked = !isTest || words.startsWith('TEST ')
  const title = cutText(isMarked ? words : `TEST ${words}`, messageLimits.title)
  const summary = cutText(`${severityLabel(message.severity)} ${title}`, messageLimits.summary)
  return { ...message, title, summary }
}

function withBody(message: Message, written: string): Message {
  const lines = written.split('\n').map((line) => sanitizeLine(line, messageLimits.factValue))
  const body = lines.filter((line) => line !== '').slice(0, maxBodyLines)
  return { ...message, facts: [], extract: null, body }
}

/**
 * The body of a request for one event, whatever the attempt. Throws SinkError `invalid` for several,
 * so that a batch of an earlier configuration is split; undefined: there is no template, or it
 * failed.
 */
export function createBodyRenderer(
  { name, templates = {} }: TemplatedSink<BodyTemplates>,
  { onTemplateFailure }: TemplateParts,
): (delivery: Delivery) => string | undefined {
  const { webhook_body: content } = templates
  if (content === undefined) return () => undefined
  const engine = parseTemplate(content, { kind: 'json' })
  return (delivery) => {
    const { isTest } = delivery
    const values = readTemplateValues(soleMember(delivery), { isTest })
    try {
      return renderJson(engine, values)
    } catch (error) {
      const problem = errorMessage(error)
      onTemplateFailure?.({ sink: name, template: 'webhook_body', problem })
      return undefined
    }
  }
}

/** Throws an Error, also for what is no JSON, without the parser's error, which quotes it. */
function renderJson(template: Template, values: TemplateValues): string {
  const written = template.render(values)
  try {
    return JSON.stringify(JSON.parse(written))
  } catch {
    throw new Error('it gives no JSON')
  }
}

/** For people who look at a message before it is sent. */
export function formatTemplateFailure({ template, problem }: TemplateFailure): string {
  return `the template ${template} failed (${sanitizeLine(problem, 200)}); the built-in look is used`
}
