import { TocsinError } from '../runtime/errors.ts'

/** One thing that the operator must change. Quotes no secret. */
export interface Mistake {
  /** As the operator named it. */
  file: string
  /** From 1; 0 where the mistake stands on no line. */
  line: number
  column: number
  /** Where in the configuration, e.g. `route.routes[0].sinks[1]`; empty: the file as a whole. */
  path: string
  problem: string
  /** What to write instead. */
  remedy: string
}

/** The operator's mistakes, all of them, in the order of the file. */
export class ConfigError extends TocsinError {
  override readonly name = 'ConfigError'
  readonly code = 'TOCSIN_CONFIG'
  readonly mistakes: readonly Mistake[]

  constructor(mistakes: readonly Mistake[], options: { cause?: unknown } = {}) {
    const count = mistakes.length === 1 ? '1 mistake' : `${mistakes.length} mistakes`
    const lines = mistakes.map((mistake) => `  ${formatMistake(mistake)}`)
    super([`the configuration has ${count}:`, ...lines].join('\n'), options)
    this.mistakes = mistakes
  }
}

/** `tocsin.yaml:14:5 feeds.brand.evry: unknown key; did you mean "every"?` */
export function formatMistake({ file, line, column, path, problem, remedy }: Mistake): string {
  const place = line === 0 ? file : `${file}:${line}:${column}`
  return `${place}${path === '' ? '' : ` ${path}`}: ${problem}; ${remedy}`
}
