/** Which sink a notice goes through; pure. */
import type { SinkHealth } from './conditions.ts'
import type { NoticesConfig } from './config.ts'

/** What of a configured sink decides whether it is fit for notices. */
interface WaySink {
  name: string
  type: string
  fallback?: string | undefined
}

/**
 * The sinks that may be told, the first choice first: as the file says; where it names no second, the
 * sink's fallback, then people's before machines', and people's of another type before more of the same:
 * what fails is often all of one type.
 */
export function orderWays({ sink, or }: NoticesConfig, sinks: readonly WaySink[]): string[] {
  if (or !== undefined) return [sink, or]
  const first = sinks.find(({ name }) => name === sink)
  const isMachine = ({ type }: WaySink): boolean => type === 'webhook'
  const rank = (one: WaySink): number => (isMachine(one) ? 2 : Number(one.type === first?.type))
  const others = sinks.toSorted((left, right) => rank(left) - rank(right)).map(({ name }) => name)
  const fallback = first?.fallback === undefined ? [] : [first.fallback]
  return [...new Set([sink, ...fallback, ...others])]
}

/**
 * The first that takes messages, and is not what the notice is about. Where none does, `about` itself
 * if it takes messages after all, and else one where the notice waits; null: there is none.
 */
export function chooseWay(
  order: readonly string[],
  sinks: readonly SinkHealth[],
  about: string | null,
): string | null {
  const takes = (sink: string): boolean => takesMessages(sinks, sink)
  const others = order.filter((sink) => sink !== about)
  const itself = order.filter((sink) => sink === about)
  return others.find(takes) ?? itself.find(takes) ?? others[0] ?? null
}

/** Whether what is sent to it now arrives, as far as is known. */
export function takesMessages(sinks: readonly SinkHealth[], sink: string): boolean {
  const health = sinks.find(({ name }) => name === sink)
  return health === undefined || (health.circuit === 'closed' && health.paused === undefined)
}
