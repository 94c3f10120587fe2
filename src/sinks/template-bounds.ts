/**
 * What a rendering of a template may cost: every value that a variable or a filter gives is counted,
 * since the library bounds some of them by memory, and none by time.
 */
import type * as Library from 'liquidjs'

/**
 * Steps are parts of a template that are rendered, and rounds of its loops. Work is the size of
 * what variables and filters give, in characters, with `entryWeight` for an entry of a list. Both
 * end a runaway at the same place on each attempt; the processor's time ends what they miss.
 * `maxMemory` counts as the library does: characters and list entries that a rendering makes.
 */
export const templateLimits = {
  maxTemplateBytes: 16 * 1024,
  maxSteps: 10_000,
  maxWork: 4_000_000,
  maxCpuMs: 100,
  maxMemory: 200_000,
  /** Of one value. */
  maxSize: 256 * 1024,
  /** Characters of what a filter looks for, names or formats with: it meets each entry. */
  maxArgument: 200,
  maxOutput: 64 * 1024,
  maxValue: 1000,
} as const

const limits = templateLimits

/** Why a rendering failed, and where; quotes neither values nor the template. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError'
}

/** Counts what one rendering does after another. `step` and `work` throw TemplateError. */
export interface Meter {
  start: () => void
  step: () => void
  work: (size: number) => void
}

/** Asking for the time costs more than most steps. */
const stepsPerLook = 16
const workPerLook = 100_000

export function createMeter(): Meter {
  let [steps, work, nextLook, startedMs] = [0, 0, workPerLook, 0]
  const tooLong = (): never => {
    throw new TemplateError('it takes too long')
  }
  const look = (): void => {
    if (cpuMs() - startedMs > limits.maxCpuMs) tooLong()
  }
  return {
    start() {
      ;[steps, work, nextLook, startedMs] = [0, 0, workPerLook, cpuMs()]
    },
    step() {
      steps += 1
      if (steps > limits.maxSteps) tooLong()
      if (steps % stepsPerLook === 0) look()
    },
    work(size) {
      work += size
      if (work > limits.maxWork) tooLong()
      if (work < nextLook) return
      nextLook = work + workPerLook
      look()
    },
  }
}

/** What an entry costs beside its characters: it is looked at, compared or copied by itself. */
const entryWeight = 16

function sizeOf(value: unknown): number {
  if (typeof value === 'string') return entryWeight + value.length
  if (typeof value !== 'object' || value === null) return entryWeight
  const entries = Array.isArray(value) ? value : Object.entries(value).flat()
  return entries.reduce<number>((sum, entry) => sum + sizeOf(entry), entryWeight)
}

/** Time of the processor; other than a clock it stands still while the process is kept waiting. */
export function cpuMs(): number {
  // Node 22 knows only the time of the whole process.
  const known: Partial<NodeJS.Process> = process
  const { user, system } = known.threadCpuUsage?.() ?? process.cpuUsage()
  return (user + system) / 1000
}

export type FilterHandler = Extract<Library.FilterImplOptions, (...args: never[]) => unknown>

/** The arguments that a filter writes or compares; by the others it looks at every entry. */
const anyLength: Readonly<Record<string, number>> = {
  append: 0,
  prepend: 0,
  default: 0,
  replace: 1,
  replace_first: 1,
  where: 1,
}

/** The library bounds some of its filters by memory, and none by time. */
export function boundFilter(name: string, handler: FilterHandler, meter: Meter): FilterHandler {
  return function* bounded(value: unknown, ...rest: unknown[]): Generator<unknown, unknown> {
    for (const [index, argument] of rest.entries()) {
      if (index !== anyLength[name]) checkArgument(argument)
    }
    const made: unknown = yield handler.call(this, value, ...rest)
    meter.work(measure(made))
    return made
  }
}

export function boundOperators(defaultOperators: Library.Operators): Library.Operators {
  const contains = defaultOperators['contains'] as (...args: unknown[]) => boolean
  return {
    ...defaultOperators,
    contains(whole: unknown, part: unknown, context: unknown) {
      if (!Array.isArray(whole)) checkArgument(part)
      return contains(whole, part, context)
    },
  }
}

function checkArgument(argument: unknown): void {
  if (sizeOf(argument) > limits.maxArgument + entryWeight) {
    throw new TemplateError('it gives too long an argument')
  }
}

function measure(value: unknown): number {
  const size = sizeOf(value)
  if (size > limits.maxSize) throw new TemplateError('it needs too much memory')
  return size
}

export const rangeProblem = 'a range without whole numbers'

/**
 * The library goes through a range by adding 1, which changes no number beyond 2^53, so that it
 * never ends. Changes the prototype, since a filter may parse a text while it is rendered.
 */
export function boundRanges({ Tokenizer, TypeGuards }: typeof Library): void {
  const read = Reflect.get(Tokenizer.prototype, 'readGroupOrRange') as (
    this: Library.Tokenizer,
  ) => ReturnType<Library.Tokenizer['readGroupOrRange']>
  Tokenizer.prototype.readGroupOrRange = function readBounded() {
    const token = read.call(this)
    if (token === undefined || !TypeGuards.isRangeToken(token)) return token
    for (const end of [token.lhs, token.rhs]) {
      const isCountable = TypeGuards.isNumberToken(end) && Number.isSafeInteger(end.content)
      if (!isCountable) throw this.error(rangeProblem, token.begin)
    }
    return token
  }
}

/** Contexts that count what is read of them, by tags and operators too. */
export function meterContexts(
  Context: typeof Library.Context,
  meter: Meter,
): typeof Library.Context {
  return class MeteredContext extends Context {
    override *_getFromScope(...path: Parameters<Library.Context['_getFromScope']>) {
      const value: unknown = yield super._getFromScope(...path)
      meter.work(entryWeight * path[1].length + measure(value))
      return value
    }

    override spawn(scope?: object): Library.Context {
      const { opts, sync, globals, strictVariables, ownPropertyOnly } = this
      const { memoryLimit, renderLimit } = this
      return new MeteredContext(
        scope,
        opts,
        { sync, globals, strictVariables, ownPropertyOnly },
        { memoryLimit, renderLimit, liquid: this.liquid as unknown },
      )
    }
  }
}
