/**
 * Which blocks of our sources have run, by V8's own counters. Asking takes some milliseconds, whatever
 * ran meanwhile, so inputs are run in batches and looked at one by one only where a batch reached more.
 */
import { Session, type Profiler } from 'node:inspector'

export interface Coverage {
  /** Blocks that ran since the last call and never before; these count as known from now on. */
  takeNew(): number
  /** As above, but they stay unknown. */
  hasNew(): boolean
  covered(): number
  /** Addresses of the sources that are watched and loaded. */
  sources(): readonly string[]
}

/** `prefixes`: addresses (file:…) of the folders and files that are watched. */
export function startCoverage(prefixes: readonly string[]): Coverage {
  const session = new Session()
  session.connect()
  post(session, 'Profiler.enable')
  post(session, 'Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  const known = new Set<string>()
  /** V8 leaves out a block that ran as often as the one around it, so places once seen are remembered. */
  const places = new Map<string, Map<string, Profiler.CoverageRange>>()
  const urls = new Set<string>()

  function take(): string[] {
    const { result } = post(session, 'Profiler.takePreciseCoverage')
    const watched = result.filter(({ url }) => prefixes.some((prefix) => url.startsWith(prefix)))
    return watched.flatMap(({ url, functions }) => {
      urls.add(url)
      return functions.flatMap((one) => blocksOf(url, one))
    })
  }

  function blocksOf(url: string, { ranges }: Profiler.FunctionCoverage): string[] {
    const [whole] = ranges
    if (whole === undefined || whole.count === 0) return []
    const name = `${url}:${nameOf(whole)}`
    const seen = places.get(name) ?? new Map<string, Profiler.CoverageRange>()
    places.set(name, seen)
    for (const range of ranges) seen.set(nameOf(range), range)
    return [...seen]
      .filter(([, place]) => innermost(ranges, place).count > 0)
      .map(([place]) => `${name}:${place}`)
  }

  return {
    takeNew() {
      const fresh = take().filter((block) => !known.has(block))
      for (const block of fresh) known.add(block)
      return fresh.length
    },
    hasNew: () => take().some((block) => !known.has(block)),
    covered: () => known.size,
    sources: () => [...urls],
  }
}

function nameOf({ startOffset, endOffset }: Profiler.CoverageRange): string {
  return `${startOffset}-${endOffset}`
}

/** Ranges come outer before inner. */
function innermost(
  ranges: readonly Profiler.CoverageRange[],
  place: Profiler.CoverageRange,
): Profiler.CoverageRange {
  const around = ranges.findLast(
    ({ startOffset, endOffset }) =>
      startOffset <= place.startOffset && endOffset >= place.endOffset,
  )
  return around ?? place
}

interface Calls {
  'Profiler.enable': [undefined, object]
  'Profiler.startPreciseCoverage': [Profiler.StartPreciseCoverageParameterType, object]
  'Profiler.takePreciseCoverage': [undefined, Profiler.TakePreciseCoverageReturnType]
}

/** In the same process the answer is there when the call returns. */
function post<Method extends keyof Calls>(
  session: Session,
  method: Method,
  parameters?: Calls[Method][0],
): Calls[Method][1] {
  let answer: Calls[Method][1] | undefined
  session.post(method, parameters as object, (error: Error | null, result?: object) => {
    if (error) throw error
    answer = result as Calls[Method][1]
  })
  if (answer === undefined) throw new Error(`${method} did not answer`)
  return answer
}
