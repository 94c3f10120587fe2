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
import { fullPlan, mostBytesPerUid, quickPlan } from './plan.ts'
import { renderReport, type Report } from './report.ts'
import { withRig, type Rig } from './rig.ts'

const { values } = parseArgs({
  options: { quick: { type: 'boolean' }, json: { type: 'boolean' } },
})

async function bench(rig: Rig): Promise<Report> {
  const plan = values.quick ? quickPlan : fullPlan
  say('delivery')
  const delivery = await measureDelivery(rig, plan)
  say('intake')
  const intake = await measureIntake(rig, plan)
  say('memory')
  const memory = await measureMemory(rig, plan)
  const perUid = memory.find(({ key }) => key === 'uid')?.figures.bytes ?? Infinity
  const redis = /^redis_version:(\S+)/m.exec(await rig.redis.info('server'))?.[1] ?? ''
  return {
    machine: { node: process.version, redis, cores: availableParallelism() },
    rows: [...delivery, ...intake, ...memory],
    keepsPromise: perUid <= mostBytesPerUid,
  }
}

function say(part: string): void {
  if (process.stderr.isTTY) process.stderr.write(`measuring ${part}\n`)
}

const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())

const report = await withRig(stopping.signal, bench)
// a daemon that was being measured ends with the process
if (report === 'stopped') process.exit(130)
process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : renderReport(report))
process.exitCode = report.keepsPromise ? 0 : 1
