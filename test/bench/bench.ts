/**
 * `npm run bench`: every row of docs/testing.md's table, with its target and whether it is met; on a Redis, a
 * sandbox and a build of its own, on loopback, gone afterwards. `--only <row or part>` for some, `--quick`
 * for a short run that says little of speed, `--json` for machines, `--loaded` on a machine that others use.
 * Exit 1 where something could not be measured; a missed target is only said.
 */
import { cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { measureDelay, type DelayPlan } from './delay.ts'
import { measureAlertmanager } from './alertmanager.ts'
import { measureCommands, type CommandPlan } from './commands.ts'
import { measureFleet, type FleetPlan } from './fleet.ts'
import { measurePage, type PagePlan } from './page.ts'
import { measurePostDelay, type PostDelayPlan } from './post-delay.ts'
import {
  chosenRows,
  describeMachine,
  parts,
  renderReport,
  type Figures,
  type Part,
  type Report,
} from './report.ts'
import { redisVersion, withRig, type Rig } from './rig.ts'
import {
  measureEmptyPoll,
  measureMemory,
  measureRecords,
  measureUids,
  type SizePlan,
} from './size.ts'
import { measureSpeed, type SpeedPlan } from './speed.ts'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    loaded: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
  },
})

interface Plan {
  speed: SpeedPlan
  postDelay: PostDelayPlan
  commands: CommandPlan
  size: SizePlan
  /** Of a fleet's accounts so many are left in a short run. */
  fleetShare: number
  fleet: Pick<FleetPlan, 'idleSeconds' | 'every'>
  delay: DelayPlan
  page: PagePlan
}

const fullPlan: Plan = {
  speed: {
    rounds: 4,
    warmUpEvents: 5_000,
    events: 8_000,
    fullEvents: 3_000,
    marksPerWeek: 50_000,
  },
  postDelay: { rounds: 5 },
  commands: { sizes: [1, 300], times: 5 },
  size: {
    settleSeconds: 5,
    idleSeconds: 15,
    loadSeconds: 20,
    loadPerSecond: 800,
    records: 2_000,
  },
  fleetShare: 1,
  fleet: { idleSeconds: 60 },
  delay: { seeds: 10, feeds: [10, 60, 300], seconds: 8 * 3_600 },
  page: { records: 100_000, requests: 100 },
}

const quickPlan: Plan = {
  speed: { rounds: 1, warmUpEvents: 20, events: 100, fullEvents: 50, marksPerWeek: 1_000 },
  postDelay: { rounds: 1 },
  commands: { sizes: [1, 300], times: 1 },
  size: {
    settleSeconds: 0,
    idleSeconds: 6,
    loadSeconds: 1,
    loadPerSecond: 100,
    records: 200,
  },
  fleetShare: 0.02,
  fleet: { idleSeconds: 5, every: '5s' },
  delay: { seeds: 2, feeds: [10], seconds: 2 * 3_600 },
  page: { records: 2_000, requests: 2 },
}

const plan = values.quick ? quickPlan : fullPlan

async function fleetOf(rig: Rig, part: Part, given: Pick<FleetPlan, 'shape' | 'size'>) {
  const size = Math.round(given.size * plan.fleetShare)
  const figures = await measureFleet(rig, { ...given, size, ...plan.fleet })
  return Object.fromEntries(
    Object.entries(figures).map(([key, value]) => [`${part}-${key}`, value]),
  )
}

const tables: NonNullable<Report['tables']> = {}

const measures: Record<Part, (rig: Rig, part: Part) => Promise<Figures> | Figures> = {
  speed: (rig) => measureSpeed(rig, plan.speed),
  alertmanager: (rig) => measureAlertmanager(rig, plan.speed),
  'poll-post': (rig) => measurePostDelay(rig, plan.postDelay),
  'command-ledger': (rig) => measureCommands(rig, plan.commands),
  'empty-poll': (rig) => measureEmptyPoll(rig, plan.size),
  memory: (rig) => measureMemory(rig, plan.size),
  uids: measureUids,
  records: (rig) => measureRecords(rig, plan.size),
  'fleet-1000': (rig, part) => fleetOf(rig, part, { shape: 'organizations', size: 1_000 }),
  'fleet-tenants': (rig, part) => fleetOf(rig, part, { shape: 'tenants', size: 500 }),
  delay: () => measureDelay(plan.delay),
  page: (rig) => measurePage(rig, plan.page, (table) => (tables.page = table)),
}

const chosen = chosenRows(values.only)
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())

async function measureAll(rig: Rig): Promise<Report> {
  const short = ' A quick run: fleets of a fiftieth, and figures that say little.'
  const machine = `${describeMachine(await redisVersion(rig.redis), load)}${values.quick ? short : ''}`
  const report: Report = { machine, figures: {}, failures: {}, tables }
  for (const part of parts) {
    if (!chosen.some((row) => row.part === part)) continue
    if (process.stderr.isTTY) process.stderr.write(`measuring ${part}\n`)
    try {
      Object.assign(report.figures, await measures[part](rig, part))
    } catch (error) {
      report.failures[part] = error instanceof Error ? error.message : String(error)
      await rig.endProcesses()
    }
  }
  return report
}

/** The share of this machine that is used while the bench sleeps, 0 to 1. */
async function measureLoad(): Promise<number> {
  const busyMs = (): number =>
    cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0)
  const [before, beganMs] = [busyMs(), performance.now()]
  await sleep(2_000)
  return (busyMs() - before) / (performance.now() - beganMs) / cpus().length
}

const load = await measureLoad()
if (load > 0.15 && !values.loaded && !values.quick) {
  const share = `${(100 * load).toFixed(0)} %`
  process.stderr.write(`others use ${share} of this machine: wait for them, or add --loaded\n`)
  process.exit(1)
}
const report = await withRig(stopping.signal, measureAll)
// what was being measured ends with the process
if (report === 'stopped') process.exit(130)
process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : renderReport(report, chosen))
process.exitCode = Object.keys(report.failures).length === 0 ? 0 : 1
