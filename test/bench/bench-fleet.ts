/**
 * `npm run bench:fleet`: many organizations, and one with many tenants, on one and on two replicas; what they
 * cost while nothing happens, how soon each is told, and whether those that fail delay the others.
 * `--organizations 20 --for 20s` for a small run; 0 leaves a shape out. Exit 1 where something could not be
 * measured; a missed target is only said.
 */
import { parseArgs } from 'node:util'
import { duration } from '../../src/lib/config-fields.ts'
import {
  measureDelays,
  measureStanding,
  type Delays,
  type FleetDelays,
  type FleetPlan,
} from './fleet.ts'
import { aligned, describeMachine, judged, standingRows, type Standing } from './report.ts'
import { redisVersion, withRig, type Rig } from './rig.ts'

export interface FleetReport {
  plan: FleetPlan
  standing?: Standing
  delays?: FleetDelays | undefined
  failure?: string
}

const { values } = parseArgs({
  options: {
    organizations: { type: 'string', default: '1000' },
    tenants: { type: 'string' },
    replicas: { type: 'string', multiple: true, default: ['1', '2'] },
    for: { type: 'string', default: '60s' },
    every: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})

const organizations = Number(values.organizations)
const tenants = Number(values.tenants ?? Math.round(organizations / 2))
const forSeconds = duration('').parse(values.for) / 1000
const everySeconds = duration('').parse(values.every ?? '60s') / 1000
/** What has not come after twice the interval of its feed is late in any case. */
const patienceSeconds = 60 + 2 * everySeconds
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())

const plans = [
  { shape: 'organizations' as const, size: organizations },
  { shape: 'tenants' as const, size: tenants },
]
  .filter(({ size }) => size > 0)
  .flatMap(({ shape, size }) =>
    values.replicas.map((replicas): FleetPlan => ({
      shape,
      size,
      replicas: Number(replicas),
      idleSeconds: everySeconds,
      every: values.every,
    })),
  )

async function measure(rig: Rig, plan: FleetPlan): Promise<FleetReport> {
  let delays: FleetDelays | undefined
  try {
    const standing = await measureStanding(rig, plan, async (fleet) => {
      delays = await measureDelays(fleet, { forSeconds, patienceSeconds, seed: 1 })
    })
    return { plan, standing, delays }
  } catch (error) {
    await rig.endDaemons()
    return { plan, delays, failure: error instanceof Error ? error.message : String(error) }
  }
}

function render({ plan, standing, delays, failure }: FleetReport): string {
  const { shape, size, replicas } = plan
  const what =
    shape === 'organizations'
      ? `${size.toLocaleString('en')} organizations, 5 feeds and a sink each`
      : `one organization of ${size} tenants, a feed and a sink each`
  const lines = [
    ...(standing ? standingRows.map((row) => [row.what, ...judged(row, standing[row.key])]) : []),
    ...(delays ? delayLines(delays) : []),
  ]
  return [
    `${what}; replicas: ${replicas}`,
    ...(failure === undefined ? [] : [`  not measured: ${failure}`]),
    ...(lines.length === 0 ? [] : aligned(lines).map((line) => `  ${line}`)),
    '',
    '',
  ].join('\n')
}

function delayLines({ calm, disturbed, difference, struck, bound }: FleetDelays): string[][] {
  const line = (what: string, delays: Delays, target = '', verdict = ''): string[] => {
    const { events, untold } = delays
    const told = `mean ${figure(delays.mean)} s, 99 % ${figure(delays.p99)} s, longest ${figure(delays.longest)} s`
    const left = untold === 0 ? '' : `, ${untold} never`
    return [what, `${told} (${events} events${left})`, target, verdict]
  }
  if (bound !== undefined) {
    const verdict = calm.longest <= bound ? 'met' : 'missed'
    return [line('delay', calm, `longest ≤ ${figure(bound)} s`, verdict)]
  }
  if (!disturbed || !difference) return [line('delay', calm)]
  const { mean, low, high } = difference
  return [
    line('delay of those that will not fail', calm),
    line('  while 10 % of the others fail, one is slow', disturbed),
    [
      '  difference, paired by account',
      `${figure(mean)} s (95 %: ${figure(low)} to ${figure(high)} s)`,
      'none',
      low <= 0 ? 'met' : 'missed',
    ],
    [
      '  requests struck meanwhile',
      Object.entries(struck ?? {})
        .map(([effect, times]) => `${times} ${effect}`)
        .join(', '),
      '',
      '',
    ],
  ]
}

function figure(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: value < 100 ? 1 : 0 })
}

const ran = await withRig(stopping.signal, async (rig) => {
  const reports: FleetReport[] = []
  const machine = describeMachine(await redisVersion(rig.redis))
  if (!values.json) process.stdout.write(`${machine}\n\n`)
  for (const plan of plans) {
    const report = await measure(rig, plan)
    reports.push(report)
    if (!values.json) process.stdout.write(render(report))
  }
  return reports
})
// what was being measured ends with the process
if (ran === 'stopped') process.exit(130)
if (values.json) process.stdout.write(`${JSON.stringify(ran)}\n`)
process.exitCode = ran.every(({ failure }) => failure === undefined) ? 0 : 1
