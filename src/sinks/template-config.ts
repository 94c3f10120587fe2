/**
 * The keys of a sink's templates. What is wrong with one is found when the configuration is read: each
 * is rendered for an event with every field.
 */
import type { z } from 'zod'
import { messageFor, refusal, type Refusal, section, text } from '../lib/config/config-fields.ts'
import { errorMessage } from '../lib/errors.ts'
import { readNamedFile } from '../lib/config/secret.ts'
import type { TemplateValues } from './event-data.ts'
import {
  parseTemplate,
  type Template,
  TemplateError,
  type TemplateKind,
  templateLimits,
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
  if (typeof path !== 'string') return undefined
  const content = readNamedFile(path, { maxBytes: templateLimits.maxTemplateBytes })
  const isGarbled = typeof content === 'string' && content.includes('\uFFFD')
  return isGarbled ? refusal('is not UTF-8', 'save the file as UTF-8') : content
}

function checkTemplate(content: string, kind: TemplateKind): Refusal | undefined {
  if (content.trim() === '') return refusal('is empty', 'write a template, or remove the line')
  const problem = templateProblem(content, kind, templateVariables)
  if (problem !== undefined) return problem
  return sampleProblem(parseTemplate(content, { kind }), kind)
}

function sampleProblem(template: Template, kind: TemplateKind): Refusal | undefined {
  try {
    if (kind === 'json') renderJson(template, fullSample)
    else template.render(fullSample)
    return undefined
  } catch (error) {
    return refusal(`fails for an event: ${errorMessage(error)}`, remedies[kind])
  }
}

const remedies: Readonly<Record<TemplateKind, string>> = {
  lines: 'docs/templates.md says what a template may do',
  json: 'write values without quotes around them, as in {"title": {{ title }}}, and commas between them only',
}

/** Throws TemplateError, for what is no JSON without the parser's error, which quotes it. */
export function renderJson(template: Template, values: TemplateValues): string {
  const written = template.render(values)
  try {
    return JSON.stringify(JSON.parse(written))
  } catch {
    throw new TemplateError('it gives no JSON')
  }
}

const moment = '2026-11-21T07:59:30.000Z'

/** Every field of an event for templates; docs/templates.md shows it. */
export const fullSample: Required<TemplateValues> = {
  id: 'e4f1c9d2a7b305861b7e0a95c3d286f4e',
  title: 'Stealer log: joe@acme[.]com at sso[.]acme[.]com',
  summary: 'CRITICAL Stealer log: joe@acme[.]com at sso[.]acme[.]com',
  uid: 'stealer_log/stealer_logs/12345',
  kind: 'event',
  type: 'stealer_log',
  source: 'stealer_logs',
  severity: 'critical',
  original_severity: 'high',
  account: 'main',
  tenant_id: 42,
  feed: 'brand',
  labels: { team: 'brand' },
  routes: ['urgent'],
  identifiers: [{ id: 77, name: 'acme.com' }],
  tags: ['seen-twice'],
  notes: 'Known to the help desk.',
  next_step: 'Reset the passwords of these accounts.',
  url: 'https://app.example.com/#/uid?uid=stealer_log/stealer_logs/12345',
  link: 'https://app.example.com/#/uid?uid=stealer_log/stealer_logs/12345',
  page_url: 'https://tocsin.example.net/events/main/5f2c9a1b7d3e4f6a8b0c1d2e',
  unverified_link: 'hxxps://evil[.]com/a',
  created_at: '2026-11-21T07:58:00.000Z',
  matched_at: moment,
  fetched_at: '2026-11-21T08:00:04.000Z',
  ignored_at: moment,
  remediated_at: moment,
  raised_from: 'low',
  leaked_secret: 'hunter2',
  highlights: { 'victim_information.username': ['joe'] },
  detail: { ip: '192.0.2.7' },
  detail_unavailable: true,
  unread_fields: ['tags'],
  facts: [
    { label: 'Account', value: 'joe@acme[.]com' },
    { label: 'Login', value: 'sso[.]acme[.]com' },
  ],
  test: true,
  truncated: true,
}

/** What a template may name. */
const templateVariables = Object.keys(fullSample)

export function listTemplates(templates: object | undefined): string[] {
  return Object.entries(templates ?? {})
    .filter(([, template]) => template !== undefined)
    .map(([name]) => name)
}
