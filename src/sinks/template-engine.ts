/**
 * Templates in Liquid, bounded in size, work, memory and output, without files, clock or chance: the
 * same values give the same text. Only tags and filters of the two lists exist, so that a new version
 * of the library adds none unseen.
 */
import { createRequire } from 'node:module'
import type * as Library from 'liquidjs'
import { refusal, type Refusal } from '../lib/config-fields.ts'
import { errorMessage, suggestion } from '../lib/errors.ts'
import { findUnknownConversion, formatAs, timeConversions } from '../lib/strftime.ts'
import { isTimeZone } from '../lib/time-zone.ts'
import { sanitizeLine } from '../messages/sanitize.ts'
import {
  boundFilter,
  boundOperators,
  boundRanges,
  createMeter,
  type FilterHandler,
  type Meter,
  meterContexts,
  rangeProblem,
  TemplateError,
  templateLimits as limits,
} from './template-bounds.ts'

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
  /** Default: with the limits above. */
  meter?: Meter | undefined
}

/** Throws an Error that says line and column, and may quote the template. */
export function parseTemplate(text: string, options: TemplateOptions): Template {
  const { Context, toValueSync } = loadLibrary()
  const { meter = createMeter() } = options
  const engine = createEngine({ ...options, meter })
  const MeteredContext = meterContexts(Context, meter)
  const parsed = engine.parse(text)
  return {
    render(values) {
      // Values pass through JSON, so that none has a method or a prototype of its own.
      const plain: unknown = JSON.parse(JSON.stringify(values), readable)
      const context = new MeteredContext(plain as object, engine.options, { sync: true })
      context.renderLimit.check = meter.step
      meter.start()
      const emitter = createEmitter()
      try {
        toValueSync(engine.renderer.renderTemplates(parsed, context, emitter))
      } catch (error) {
        throw new TemplateError(describeFailure(error))
      }
      return emitter.buffer
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
  const engine = createEngine({ kind, meter: createMeter() })
  try {
    const parsed = engine.parse(text)
    const { globals } = engine.analyzeSync(parsed)
    const unknown = Object.keys(globals).find((name) => !variables.includes(name))
    if (unknown !== undefined) return variableRefusal(unknown, globals[unknown], variables)
    return conversionProblem(parsed)
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

/** Formats that are written in the template, in branches too that no sample takes. */
function conversionProblem(parsed: Library.Template[]): Refusal | undefined {
  for (const { name, args, token } of listFilters(parsed)) {
    const [format] = args
    if (name !== 'date' || format === undefined || !('content' in format)) continue
    const unknown = findUnknownConversion(String(format.content))
    if (unknown === undefined) continue
    const [line, column] = token.getPosition()
    const place = formatPlace(line, column)
    const remedy = `conversions here: ${timeConversions.map((letter) => `%${letter}`).join(' ')}`
    return refusal(`${describeConversion(unknown)}${place}`, remedy)
  }
  return undefined
}

type ParsedFilter = Pick<Library.Filter, 'name' | 'args'> & { token: Library.Token }

function* listFilters(parsed: readonly Library.Template[]): Generator<ParsedFilter> {
  const { Value, toValueSync } = loadLibrary()
  for (const template of parsed) {
    for (const part of template.arguments?.() ?? []) {
      if (part instanceof Value) yield* part.filters as unknown as ParsedFilter[]
    }
    const children = template.children?.(false, true)
    if (children !== undefined) yield* listFilters(toValueSync(children) as Library.Template[])
  }
}

/** A format may hold words of a feed, so no more than a letter of it is shown. */
function describeConversion(unknown: string): string {
  const shown = /^%[A-Za-z+]$/.test(unknown) ? ` ${unknown}` : ''
  return `unknown conversion${shown} of a date`
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
  if (message.startsWith(rangeProblem)) {
    return refusal(`${rangeProblem}${place}`, 'write its ends as numbers, such as (1..5)')
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
  return errorMessage(error).startsWith('memory alloc limit')
    ? 'it needs too much memory'
    : 'it cannot be rendered'
}

let library: typeof Library | undefined

/** Takes 25 ms, which a command without templates need not wait for. */
function loadLibrary(): typeof Library {
  if (library !== undefined) return library
  library = createRequire(import.meta.url)('liquidjs') as typeof Library
  boundRanges(library)
  return library
}

interface EngineOptions extends TemplateOptions {
  meter: Meter
}

function createEngine({ kind, timeZone = 'UTC', meter }: EngineOptions): Library.Liquid {
  const { defaultOperators, Liquid } = loadLibrary()
  const engine = new Liquid({
    templates: {},
    relativeReference: false,
    dynamicPartials: false,
    ownPropertyOnly: true,
    strictVariables: false,
    strictFilters: true,
    parseLimit: limits.maxTemplateBytes,
    memoryLimit: limits.maxMemory,
    operators: boundOperators(defaultOperators),
    outputEscape: boundFilter('', kind === 'json' ? toJson : toLine, meter),
  })
  keepOnly(engine.tags, templateTags)
  keepOnly(engine.filters, templateFilters)
  const own = { date: createDateFilter(timeZone, meter), json: toJson }
  for (const [name, filter] of Object.entries({ ...engine.filters, ...own })) {
    if (typeof filter !== 'function') throw new Error(`the library has no filter ${name}`)
    const raw = name === 'json' && kind === 'json'
    engine.registerFilter(name, { handler: boundFilter(name, filter, meter), raw })
  }
  return engine
}

function keepOnly(entries: Record<string, unknown>, names: readonly string[]): void {
  for (const name of Object.keys(entries)) if (!names.includes(name)) delete entries[name]
}

const dateWork = 5_000
/** The abbreviation of a zone is asked for in five languages. */
const zoneWork = 20_000

/** The library's own is an hour off near a change of the clock of the process, and slow. */
function createDateFilter(defaultZone: string, meter: Meter): FilterHandler {
  return (value: unknown, format: unknown, zone: unknown = defaultZone) => {
    const given = plain(value)
    if (given === 'now' || given === 'today') {
      throw new TemplateError('the present time is not known')
    }
    const atMs = readTime(given)
    if (atMs === undefined) return given
    const asked = toText(format) || '%Y-%m-%d %H:%M'
    meter.work(dateWork + zoneWork * (asked.split('Z').length - 1))
    const unknown = findUnknownConversion(asked)
    if (unknown !== undefined) {
      throw new TemplateError(`it has an ${describeConversion(unknown)}`)
    }
    if (typeof zone !== 'string' || !isTimeZone(zone)) {
      throw new TemplateError('it names no time zone')
    }
    return formatAs(asked, atMs, zone) ?? given
  }
}

/** Seconds since 1970, or ISO 8601, in UTC if it says no zone. */
function readTime(value: unknown): number | undefined {
  if (typeof value === 'number') return value * 1000
  if (typeof value !== 'string') return undefined
  if (/^\d{1,12}$/.test(value)) return Number(value) * 1000
  const [, day, time = '00:00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(Z|[+-]\d\d:\d\d)?)?$/.exec(value) ??
    []
  const atMs = day === undefined ? NaN : Date.parse(`${day}T${time}${zone}`)
  return Number.isNaN(atMs) ? undefined : atMs
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

/** Ends a rendering that writes too much before the text is made. */
function createEmitter(): { buffer: string; write(text: unknown): void } {
  return {
    buffer: '',
    write(text) {
      const more = toText(text)
      if (this.buffer.length + more.length > limits.maxOutput)
        throw new TemplateError('it writes too much')
      this.buffer += more
    },
  }
}
