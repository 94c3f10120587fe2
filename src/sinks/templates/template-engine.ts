/**
 * Templates in Liquid, bounded by the library's limits, without files, clock or chance: the same
 * values give the same text. Only tags and filters of the two lists exist, so that a new version of
 * the library adds none unseen.
 */
import { createRequire } from 'node:module'
import type * as Library from 'liquidjs'
import { refusal, type Refusal } from '../../lib/config/config-fields.ts'
import { errorMessage, suggestion } from '../../lib/errors.ts'
import { sanitizeLine } from '../../messages/sanitize.ts'

/** `maxMemory` counts as the library does: characters and list entries that a rendering makes. */
export const templateLimits = {
  maxTemplateBytes: 16 * 1024,
  /** A machine that is kept waiting must not fail what is cheap. */
  maxMs: 500,
  maxMemory: 200_000,
  maxOutput: 64 * 1024,
  maxValue: 1000,
} as const

const limits = templateLimits

/** Why a rendering failed, and where; quotes neither values nor the template. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError'
}

export const templateTags = 'assign break case comment continue for if raw unless #'.split(' ')

export const templateFilters = [
  'append capitalize compact date default divided_by downcase first join json last map minus modulo plus',
  'prepend remove replace replace_first reverse round size slice sort split strip times truncate uniq upcase',
  'url_encode where',
].flatMap((names) => names.split(' '))

/**
 * `lines`: each value is one sanitized line, so that only the template itself begins lines. `json`:
 * each value is JSON, quotes included, so that none of them ends a string or begins a key.
 */
export type TemplateKind = 'lines' | 'json'

export interface Template {
  /** Throws TemplateError if it fails or a limit is reached. */
  render(values: object): string
}

interface TemplateOptions {
  kind: TemplateKind
  /** Zone of `date`. Default: UTC. */
  timeZone?: string | undefined
}

/** Throws an Error that says line and column, and may quote the template. */
export function parseTemplate(text: string, options: TemplateOptions): Template {
  const engine = createEngine(options)
  const parsed = engine.parse(text)
  return {
    render(values) {
      // Values pass through JSON, so that none has a method or a prototype of its own.
      const plain: unknown = JSON.parse(JSON.stringify(values), readable)
      let text: string
      try {
        text = engine.renderSync(parsed, plain as object) as string
      } catch (error) {
        throw new TemplateError(describeFailure(error))
      }
      if (text.length > limits.maxOutput) throw new TemplateError('it writes too much')
      return text
    },
  }
}

/**
 * What is wrong with a template before any event is rendered; quotes nothing but names of tags,
 * filters and variables. `variables`: the names that it may use.
 */
export function templateProblem(
  text: string,
  kind: TemplateKind,
  variables: readonly string[],
): Refusal | undefined {
  if (Buffer.byteLength(text) > limits.maxTemplateBytes) {
    return refusal('longer than 16 KiB', 'write a shorter template')
  }
  if (hasOpenRange(text)) {
    return refusal('a range without whole numbers', 'write its ends as numbers, such as (1..5)')
  }
  const engine = createEngine({ kind })
  try {
    const parsed = engine.parse(text)
    const { globals } = engine.analyzeSync(parsed)
    const unknown = Object.keys(globals).find((name) => !variables.includes(name))
    if (unknown !== undefined) return variableRefusal(unknown, globals[unknown], variables)
    return undefined
  } catch (error) {
    return syntaxRefusal(errorMessage(error))
  }
}

function variableRefusal(
  name: string,
  [first]: readonly Library.Variable[] = [],
  variables: readonly string[],
): Refusal {
  const place = first === undefined ? '' : formatPlace(first.location.row, first.location.col)
  const shown = /^\w{1,40}$/.test(name) ? `no variable "${name}"` : 'a variable that does not exist'
  return refusal(`${shown}${place}`, suggestion(name, variables, 'variables here'))
}

/**
 * The library goes through a range by adding 1, which changes no number beyond 2^53. One whose ends
 * come from an event could go on for ever.
 */
function hasOpenRange(text: string): boolean {
  return [...text.matchAll(/\{\{.*?\}\}|\{%.*?%\}/gs)].some(([part]) => {
    const words = part.replaceAll(/"[^"]*"|'[^']*'/g, '')
    return words.replaceAll(/\(\s*\d{1,9}\s*\.\.\s*\d{1,9}\s*\)/g, '').includes('..')
  })
}

function formatPlace(line: unknown, column: unknown): string {
  return ` (line ${String(line)}, column ${String(column)} of the template)`
}

function syntaxRefusal(message: string): Refusal {
  const place = readPlace(message)
  const [, tag] = /^tag "(\w{1,20})" not found/.exec(message) ?? []
  if (tag !== undefined) {
    return refusal(`no tag "${tag}"${place}`, `tags here: ${templateTags.join(', ')}`)
  }
  const [, filter] = /^undefined filter: (\w{1,20})/.exec(message) ?? []
  if (filter !== undefined) {
    return refusal(`no filter "${filter}"${place}`, `filters here: ${templateFilters.join(', ')}`)
  }
  const remedy = 'close every {{, {% and block, and look at the examples in docs/templates.md'
  return refusal(`not a template in Liquid${place}`, remedy)
}

/** Where the library's error says that it happened. */
function readPlace(message: string): string {
  const [, line, column] = /, line:(\d+), col:(\d+)$/.exec(message) ?? []
  return line === undefined ? '' : formatPlace(line, column)
}

/** The library's own words may quote a value. */
function describeFailure(error: unknown): string {
  const inner = error instanceof Error && 'originalError' in error ? error.originalError : error
  return `${describeCause(inner)}${readPlace(errorMessage(error))}`
}

function describeCause(error: unknown): string {
  if (error instanceof TemplateError) return error.message
  const message = errorMessage(error)
  if (message.startsWith('memory alloc limit')) return 'it needs too much memory'
  return message.startsWith('template render limit') ? 'it takes too long' : 'it cannot be rendered'
}

let library: typeof Library | undefined

/** Takes 25 ms, which a command without templates need not wait for. */
function loadLibrary(): typeof Library {
  library ??= createRequire(import.meta.url)('liquidjs') as typeof Library
  return library
}

type FilterHandler = Extract<Library.FilterImplOptions, (...args: never[]) => unknown>

function createEngine({ kind, timeZone = 'UTC' }: TemplateOptions): Library.Liquid {
  const { Liquid } = loadLibrary()
  const engine = new Liquid({
    templates: {},
    relativeReference: false,
    dynamicPartials: false,
    ownPropertyOnly: true,
    strictVariables: false,
    strictFilters: true,
    parseLimit: limits.maxTemplateBytes,
    renderLimit: limits.maxMs,
    memoryLimit: limits.maxMemory,
    timezoneOffset: timeZone as unknown as number, // the library takes names of zones too
    dateFormat: '%Y-%m-%d %H:%M',
    locale: 'en-US',
    outputEscape: kind === 'json' ? toJson : toLine,
  })
  keepOnly(engine.tags, templateTags)
  keepOnly(engine.filters, templateFilters)
  engine.registerFilter('date', createDateFilter(engine.filters['date'] as FilterHandler))
  const json = engine.filters['json'] as FilterHandler
  engine.registerFilter('json', {
    raw: kind === 'json',
    handler(value: unknown): unknown {
      return json.call(this, plain(value) ?? null)
    },
  })
  return engine
}

function keepOnly(entries: Record<string, unknown>, names: readonly string[]): void {
  for (const name of Object.keys(entries)) if (!names.includes(name)) delete entries[name]
}

/** Each attempt to send says the same, so no rendering knows the time. */
function createDateFilter(shown: FilterHandler): FilterHandler {
  return function date(value: unknown, ...rest: unknown[]): unknown {
    if (value === 'now' || value === 'today') {
      throw new TemplateError('the present time is not known')
    }
    return shown.call(this, value, ...rest)
  }
}

/** `nil` and `empty` are objects of the library. */
function plain(value: unknown): unknown {
  return loadLibrary().toValue(value) as unknown
}

function toJson(value: unknown): string {
  return JSON.stringify(plain(value) ?? null)
}

function toLine(value: unknown): string {
  return sanitizeLine(toText(value), limits.maxValue)
}

function toText(given: unknown): string {
  const value = plain(given)
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return value.map(toText).join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Lets filters for text take every object: one that has a key `toString` could not be told as text. */
function readable(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.defineProperty(value, Symbol.toPrimitive, { value: () => JSON.stringify(value) })
}
