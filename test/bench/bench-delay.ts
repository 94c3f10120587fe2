/**
 * `npm run bench:delay`: how late an event is noticed, in simulated time, by the shipped rule and others. The
 * shares of requests are equal but for `today`, the rule of 0.4.0, which uses what its intervals ask for.
 * `--quick`: few seeds and scenes. Exit 1 where the shipped rule misses a target.
 */
import { parseArgs } from 'node:util'
import { rungIntervals, rungWindows } from '../../src/feeds/rescan-plan.ts'
import { interval, rules, simulate, type Delays, type Scene } from './delay/polling.ts'
import {
  delays,
  dayMs,
  hourMs,
  lateness,
  history,
  planOf,
  simulate as simulateRescans,
  weekMs,
} from './delay/rescans.ts'
import { kinds } from './delay/traffic.ts'

const { values } = parseArgs({ options: { quick: { type: 'boolean' } } })

/** The rule's constants were chosen on seeds 1 to 4; what is printed is of others. */
const seeds = Array.from({ length: values.quick ? 5 : 10 }, (_none, at) => 101 + at)
const counts = values.quick ? [10] : [3, 10, 30, 60, 100, 300]
const plain: Omit<Scene, 'kind' | 'feeds'> = {
  seconds: values.quick ? 4 * 3_600 : 8 * 3_600,
  replicas: 1,
  pausedEverySeconds: Infinity,
  end: 'said',
}

function scenes(): { title: string; scene: Scene }[] {
  const byTraffic = kinds.flatMap((kind) =>
    counts.map((feeds) => ({ title: `${kind}, ${feeds} feeds`, scene: { ...plain, kind, feeds } })),
  )
  const base = { ...plain, kind: 'poisson' as const, feeds: values.quick ? 10 : 60 }
  return [
    ...byTraffic,
    { title: 'an empty page ends a feed', scene: { ...base, end: 'empty page' } },
    { title: 'a 429 every half hour', scene: { ...base, pausedEverySeconds: 1_800 } },
    { title: '2 replicas', scene: { ...base, replicas: 2 } },
    { title: '4 replicas', scene: { ...base, replicas: 4 } },
  ]
}

interface Measured {
  title: string
  scene: Scene
  byRule: Record<(typeof rules)[number], Delays[]>
}

function measure({ title, scene }: { title: string; scene: Scene }): Measured {
  const all = rules.map((rule) => [rule, seeds.map((seed) => simulate(scene, rule, seed))] as const)
  return { title, scene, byRule: Object.fromEntries(all) as Measured['byRule'] }
}

/** Targets of the shipped rule, for ten feeds and more, without pauses. */
function missed({ scene, byRule }: Measured): string[] {
  if (scene.feeds < 10 || scene.pausedEverySeconds < Infinity || scene.replicas > 1) return []
  const most = scene.kind === 'poisson' ? 1.15 : 1.25
  const ofBound = mean(byRule.index, 'mean') / mean(byRule.index, 'bound')
  const longest = Math.max(...byRule.index.map((one) => one.longest / one.round))
  const { mean: more, half } = compare(byRule)
  return [
    ...(scene.kind !== 'session' && scene.kind !== 'diurnal' && ofBound > most
      ? [`mean ${ofBound.toFixed(2)} × D*, more than ${most}`]
      : []),
    ...(longest > 1.6 ? [`longest ${longest.toFixed(2)} × N/R, more than 1.6`] : []),
    ...(more - half > 0 ? ['mean above round robin at the same share'] : []),
  ]
}

function mean(all: readonly Delays[], figure: keyof Delays): number {
  return interval(all.map((one) => one[figure])).mean
}

/** Paired by seed: the shipped rule less round robin, s. */
function compare(byRule: Measured['byRule']): ReturnType<typeof interval> {
  return interval(byRule.index.map((one, at) => one.mean - byRule['round robin'][at]!.mean))
}

function line(measured: Measured): string {
  const { title, byRule } = measured
  const figures = rules.map((rule) => {
    const [average, p99, longest] = (['mean', 'p99', 'longest'] as const).map((figure) =>
      mean(byRule[rule], figure).toFixed(1),
    )
    return `${average} / ${p99} / ${longest}`.padEnd(25)
  })
  const bound = mean(byRule.index, 'bound')
  const { mean: more, half } = compare(byRule)
  const compared = `${more.toFixed(1)} ± ${half.toFixed(1)}`.padEnd(14)
  const ofBound = (mean(byRule.index, 'mean') / bound).toFixed(2)
  return [title.padEnd(27), ...figures, compared, bound.toFixed(1).padEnd(7), ofBound].join('')
}

const heads = [
  'mean / p99 / longest, s'.padEnd(27),
  ...['index rule', 'rule of 0.4.0', 'round robin'].map((head) => head.padEnd(25)),
  'less round r.'.padEnd(14),
  'D*'.padEnd(7),
  'of D*',
]

function pollingReport(): { lines: string[]; isMissed: boolean } {
  const measured = scenes().map(measure)
  const misses = measured.flatMap((one) =>
    missed(one).map((what) => `MISSED: ${one.title}: ${what}`),
  )
  const verdict = misses.length > 0 ? misses : ['PASS: the index rule keeps its targets']
  return {
    lines: [heads.join(''), ...measured.map(line), ...verdict],
    isMissed: misses.length > 0,
  }
}

/** Delay against lateness, and requests against volume; of one feed, and of one among 60. */
function rescanReport(): string[] {
  const volumes = values.quick ? [1_000] : [1_000, 5_000, 20_000]
  return (values.quick ? [1] : [1, 60]).flatMap((feeds) =>
    volumes.map((perWeek) => {
      const { all, probes } = history(perWeek, lateness, perWeek)
      const scene = { perWeek, isMatched: false, feeds }
      const requests = simulateRescans(all, scene) * feeds
      const used = ((100 * requests) / (10 * dayMs)) * 1000
      const found = lateness.map((lateMs, at) => {
        const known = (probes[at] ?? []).filter(({ foundMs }) => foundMs !== undefined)
        const open = (probes[at] ?? []).length - known.length
        if (known.length === 0)
          return `late by ${span(lateMs)}: none found within the simulated time`
        const { meanMs, mostMs } = delays(known)
        const rest = open > 0 ? `, ${open} of 20 not yet` : ''
        return `late by ${span(lateMs)}: ${span(meanMs)}, at most ${span(mostMs)}${rest}`
      })
      const { ladder, wholeEveryMs } = planOf(scene)
      const every = rungIntervals(rungWindows(weekMs), ladder).flatMap((ms) => ms ?? [])
      const rungs = every.length > 0 ? `windows every ${every.map(span).join(', ')}` : 'no windows'
      const head = `${feeds} feed${feeds > 1 ? 's' : ''}, ${perWeek} events a week each: ${used.toFixed(1)} % of 1 request/s, ${rungs}, the whole every ${span(wholeEveryMs)}`
      return [head, ...found.map((one) => `  ${one}`)].join('\n')
    }),
  )
}

function span(ms: number): string {
  if (ms < hourMs) return `${(ms / 60_000).toFixed(1)} min`
  return ms < dayMs ? `${(ms / hourMs).toFixed(1)} h` : `${(ms / dayMs).toFixed(1)} d`
}

const polling = pollingReport()
process.stdout.write(`${[...polling.lines, '', ...rescanReport()].join('\n')}\n`)
process.exitCode = polling.isMissed ? 1 : 0
