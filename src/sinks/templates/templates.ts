/**
 * Messages and bodies of a sink's own templates. A template that fails costs its words. The message
 * goes with the built-in look, which people can read and the receiver of a webhook may refuse.
 */
import { ownFeed } from '../../event.ts'
import type { Document } from '../../messages/document.ts'
import { messageLimits, renderMessage, testMark } from '../../messages/message.ts'
import { cutText, sanitizeLine } from '../../messages/sanitize.ts'
import { renderSummary } from '../../messages/summary-message.ts'
import { readTemplateValues } from './event-data.ts'
import type { TemplateValues } from './event-fields.ts'
import { type Delivery, soleMember } from '../sink.ts'
import {
  type BodyTemplates,
  listTemplates,
  type MessageTemplates,
  renderJson,
  type TemplateFailure,
  type TemplateParts,
} from './template-config.ts'
import { parseTemplate, TemplateError } from './template-engine.ts'

/** What an operator does about a failure. */
export const templateRemedy =
  'tocsin render <uid> --sink <sink> shows what fails; mend the template and reload'

/** The parts of a delivery's message. Throws SinkError `invalid` for several events without a summary. */
export type RenderDocument = (delivery: Delivery) => Document

/** With the built-in words. */
export const renderDocument: RenderDocument = (delivery) => {
  const { summary } = delivery
  return summary === undefined
    ? renderMessage(soleMember(delivery), delivery)
    : renderSummary({ ...delivery, summary })
}

interface TemplatedSink<Templates> {
  name: string
  templates?: Templates | undefined
  timeZone?: string | undefined
}

/**
 * Words that a template does not give stay the built-in ones. So does what Tocsin tells of itself: a
 * template written for events would hide it.
 */
export function createDocumentRenderer(
  { name, templates = {}, timeZone }: TemplatedSink<MessageTemplates>,
  parts: TemplateParts,
): RenderDocument {
  if (listTemplates(templates).length === 0) return renderDocument
  const prepare = <Words>(key: keyof MessageTemplates, read: ReadWords<Words>) => {
    const text = templates[key]
    if (text === undefined) return undefined
    const template = parseTemplate(text, { kind: 'lines', timeZone })
    const guard = createGuard({ sink: name, template: key }, parts)
    return (values: TemplateValues, delivery: Delivery): Words | undefined =>
      guard(() => read(template.render(values), delivery))
  }
  const [title, body] = [prepare('title', readTitle), prepare('body', readBody)]
  return (delivery) => {
    if (delivery.summary !== undefined) return renderDocument(delivery)
    const member = soleMember(delivery)
    if (member.feed === ownFeed) return renderDocument(delivery)
    const values = readTemplateValues(member, delivery)
    const own = { title: title?.(values, delivery), body: body?.(values, delivery) }
    return renderMessage(member, { ...delivery, own })
  }
}

/** undefined: there are none. */
type ReadWords<Words> = (written: string, delivery: Pick<Delivery, 'isTest'>) => Words | undefined

/** As untrusted as the title that it replaces: it may consist of a feed's words alone. */
const readTitle: ReadWords<string> = (written, delivery) => {
  const words = sanitizeLine(written, messageLimits.title)
  if (words === '') return undefined
  const mark = testMark(delivery)
  return cutText(words.startsWith(mark) ? words : `${mark}${words}`, messageLimits.title)
}

const maxBodyLines = 25

const readBody: ReadWords<string[]> = (written) => {
  const lines = written
    .split('\n')
    .map((line) => sanitizeLine(line, messageLimits.factValue))
    .filter((line) => line !== '')
  if (lines.length === 0) return undefined
  if (lines.length <= maxBodyLines) return lines
  const shown = lines.slice(0, maxBodyLines - 1)
  return [...shown, `… and ${lines.length - shown.length} more lines`]
}

/**
 * The body of a request for one event, whatever the attempt; undefined: there is no template, or it
 * failed. Throws SinkError `invalid` for several, so that a batch of an earlier configuration is split.
 */
export function createBodyRenderer(
  { name, templates = {} }: TemplatedSink<BodyTemplates>,
  parts: TemplateParts,
): (delivery: Delivery) => string | undefined {
  const { webhook_body: text } = templates
  if (text === undefined) return () => undefined
  const template = parseTemplate(text, { kind: 'json' })
  const guard = createGuard({ sink: name, template: 'webhook_body' }, parts)
  return (delivery) => {
    const { isTest } = delivery
    const values = readTemplateValues(soleMember(delivery), { isTest })
    return guard(() => renderJson(template, values))
  }
}

/** Calls `render`; undefined: there are no words, or it failed. */
type Guard = <Words>(render: () => Words | undefined) => Words | undefined

function createGuard(
  named: Pick<TemplateFailure, 'sink' | 'template'>,
  { onTemplateFailure }: TemplateParts,
): Guard {
  return (render) => {
    try {
      return render()
    } catch (error) {
      const problem = error instanceof TemplateError ? error.message : 'it cannot be rendered'
      onTemplateFailure?.({ ...named, problem })
      return undefined
    }
  }
}

/** For people who look at a message before it is sent. */
export function formatTemplateFailure({ template, problem }: TemplateFailure): string {
  return `the template ${template} failed: ${problem}; the built-in look is used`
}
