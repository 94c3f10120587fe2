/**
 * Templates in Liquid, bounded in size, time, memory and output, without files, clock or chance: the
 * same values give the same text. Only tags and filters of the two lists exist, so that a new version
 * of the library adds none unseen.
 */
import { createRequire } from 'node:module'
import type * as Library from 'liquidjs'
import { refusal, type Refusal } from '../lib/config-fields.ts'
import { errorMessage, suggestion } from '../lib/errors.ts'
import { sanitizeLine } from '../messages/sanitize.ts'

/**
 * Steps are parts of a template that are rendered, and rounds of its loops. They end a runaway at
 * the same place on each attempt; the processor's time ends what is costly within few steps.
 * `maxMemory` counts as the library does: characters and list entries that a rendering makes.
 */
const limits = {
  maxTemplateBytes: 16 * 1024,
  maxSteps: 10_000,
  maxCpuMs: 100,
  maxMemory: 200_000,
  maxOutput: 64 * 1024,
  maxValue: 1000,
} as const

export const { maxTemplateBytes } = limits

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

/** Why a rendering failed, and where; quotes neither values nor the template. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError'
}

interface TemplateOptions {
  kind: TemplateKind
  /** Zone of `date`. Default: UTC. */
  timeZone?: string | undefined
}

/** Throws an Error that says line and column, and may quote the template. */
export function parseTemplate(text: string, options: TemplateOptions): Template {
  const { Context, toValueSync } = loadLibrary()
  const engine = createEngine(options)
  const parsed = engine.parse(text)
  return {
    render(values) {
      // Values pass through JSON, so that none has a method or a prototype of its own.
      const plain: unknown = JSON.parse(JSON.stringify(values))
      const context = new Context(plain as object, engine.options, { sync: true })
      context.renderLimit.check = createStepLimit()
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
  if (Buffer.byteLength(text) > maxTemplateBytes) {
    return refusal('longer than 16 KiB', 'write a shorter template')
  }
  const engine = createEngine({ kind })
  try {
    const { globals } = engine.analyzeSync(engine.parse(text))
    const unknown = Object.keys(globals).find((name) => !variables.includes(name))
    return unknown === undefined ? undefined : variableRefusal(unknown, globals[unknown], variables)
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
  return errorMessage(error).startsWith('memory alloc limit')
    ? 'it needs too much memory'
    : 'it cannot be rendered'
}

/** Asking for the time costs more than most steps. */
const stepsPerLook = 16

/** A step's own time is bounded by what a template and its memory may hold. */
function createStepLimit(): () => void {
  let steps = 0
  const startedMs = cpuMs()
  return () => {
    steps += 1
    const isLate = steps % stepsPerLook === 0 && cpuMs() - startedMs > limits.maxCpuMs
    if (isLate || steps > limits.maxSteps) {
      throw new TemplateError('it takes too long')
    }
  }
}

/** Time of the processor; other than a clock it stands still while the process is kept waiting. */
export function cpuMs(): number {
  // Node 22 knows only the time of the whole process.
  const known: Partial<NodeJS.Process> = process
  const { user, system } = known.threadCpuUsage?.() ?? process.cpuUsage()
  return (user + system) / 1000
}

let library: typeof Library | undefined

/** Takes 25 ms, which a command without templates need not wait for. */
function loadLibrary(): typeof Library {
  library ??= createRequire(import.meta.url)('liquidjs') as typeof Library
  return library
}

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
    memoryLimit: limits.maxMemory,
    outputEscape: kind === 'json' ? toJson : toLine,
    timezoneOffset: timeZone,
    locale: 'en-US',
    dateFormat: '%Y-%m-%d %H:%M',
  })
  keepOnly(engine.tags, templateTags)
  keepOnly(engine.filters, templateFilters)
  const { date } = engine.filters
  if (typeof date !== 'function') throw new Error('the library has no filter of dates')
  engine.registerFilter('date', withoutClock(date))
  engine.registerFilter('json', { handler: toJson, raw: kind === 'json' })
  return engine
}

function keepOnly(entries: Record<string, unknown>, names: readonly string[]): void {
  for (const name of Object.keys(entries)) if (!names.includes(name)) delete entries[name]
}

type DateFilter = Extract<Library.FilterImplOptions, (...args: never[]) => unknown>

/** A body that says the time of its rendering would differ from attempt to attempt. */
function withoutClock(date: DateFilter): DateFilter {
  return function atGivenTime(value: unknown, ...rest: unknown[]) {
    if (value === 'now' || value === 'today')
      throw new TemplateError('the present time is not known')
    return date.call(this, value, ...rest) as unknown
  }
}

function toJson(value: unknown): string {
  return JSON.stringify(value ?? null)
}

function toLine(value: unknown): string {
  return sanitizeLine(toText(value), limits.maxValue)
}

function toText(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return value.map(toText).join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
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
