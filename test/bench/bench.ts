/**
 * `npm run bench`: how fast, how much CPU, how many bytes; against a Redis and a sandbox of its own, on
 * loopback, gone afterwards. `--quick` is a short run that says little of speed, `--json` for machines.
 * Exit 1 where a remembered uid takes more bytes than promised.
 */
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { measureDelivery } from './measure-delivery.ts'
import { measureIntake } from './measure-intake.ts'
import { measureMemory } from './measure-memory.ts'
import { measurePolling } from './measure-polling.ts'
import { measureSweep } from './measure-sweep.ts'
import { fullPlan, mostBytesPerUid, quickPlan } from './plan.ts'
import { renderReport, type Report } from './report.ts'
import { withRig, type Rig } from './rig.ts'
import type { Figure, Row } from './row.ts'

const { values } = parseArgs({
  options: { quick: { type: 'boolean' }, json: { type: 'boolean' } },
})

const plan = values.quick ? quickPlan : fullPlan
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())

async function bench(): Promise<Report> {
  const { machine, delivery, intake, memory } = await onRig(measureDaemon)
  say('polling')
  const ceiling = figureOf(delivery, 'fetch', 'eventsPerSecond')
  const polling = await onRig((rig) => measurePolling(rig, plan, ceiling))
  say('sweep')
  const sweep = await onRig((rig) => measureSweep(rig, plan))
  return {
    machine,
    rows: [...delivery, ...polling, ...sweep, ...intake, ...memory],
    keepsPromise: figureOf(memory, 'uid', 'bytes') <= mostBytesPerUid,
  }
}

/** On a Redis and a sandbox that hold nothing of what was measured before. */
async function onRig<T>(measure: (rig: Rig) => Promise<T>): Promise<T> {
  const measured = await withRig(stopping.signal, measure)
  // what was being measured ends with the process
  if (measured === 'stopped') process.exit(130)
  return measured
}

async function measureDaemon(rig: Rig) {
  say('delivery')
  const delivery = await measureDelivery(rig, plan)
  say('intake')
  const intake = await measureIntake(rig, plan)
  say('memory')
  const memory = await measureMemory(rig, plan)
  const redis = /^redis_version:(\S+)/m.exec(await rig.redis.info('server'))?.[1] ?? ''
  const machine = { node: process.version, redis, cores: availableParallelism() }
  return { machine, delivery, intake, memory }
}

function figureOf(rows: readonly Row[], key: string, figure: Figure): number {
  const value = rows.find((row) => row.key === key)?.figures[figure]
  if (value === undefined) throw new Error(`${key} has no ${figure}`)
  return value
}

function say(part: string): void {
  if (process.stderr.isTTY) process.stderr.write(`measuring ${part}\n`)
}

const report = await bench()
process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : renderReport(report))
process.exitCode = report.keepsPromise ? 0 : 1
