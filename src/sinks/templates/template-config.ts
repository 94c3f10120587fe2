/**
 * The keys of a sink's templates. What is wrong with one is found when the configuration is read: each
 * is rendered for an event with every field.
 */
import type { z } from 'zod'
import { messageFor, refusal, type Refusal, section, text } from '../../lib/config/config-fields.ts'
import { errorMessage } from '../../lib/errors.ts'
import { readNamedFile } from '../../lib/config/secret.ts'
import { fullSample, type TemplateValues } from './event-fields.ts'
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

/** One rendering that failed; the message has the built-in look. */
export interface TemplateFailure {
  sink: string
  template: keyof (MessageTemplates & BodyTemplates)
  /** Why and where in the template; quotes no value. */
  problem: string
}

export interface TemplateParts {
  /** Called for each message that goes without a template of its sink. */
  onTemplateFailure?: ((failure: TemplateFailure) => void) | undefined
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

/** What a template may name. */
const templateVariables = Object.keys(fullSample)

export function listTemplates(templates: object | undefined): string[] {
  return Object.entries(templates ?? {})
    .filter(([, template]) => template !== undefined)
    .map(([name]) => name)
}
