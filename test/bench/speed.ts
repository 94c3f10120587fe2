/**
 * Events a second and CPU an event, of the daemon and of a pipeline that somebody would write in its place: the
 * same service, the same receiver, an empty Redis, signed. Each run has processes of its own and is warmed up.
 */
import { Agent } from 'undici'
import {
  apiKey,
  configOfOne,
  deliveredBy,
  openAccount,
  sandboxOfOne,
  takenInBy,
  untilCounted,
  writeMarks,
} from './one-account.ts'
import type { ProcessUse } from './called-process.ts'
import { median, type Figures } from './report.ts'
import {
  redisUse,
  webhookSink,
  type Hook,
  type ReceiverProcess,
  type Rig,
  type SandboxProcess,
} from './rig.ts'
import { openServiceFeed, post, readPages } from './service-client.ts'

export interface SpeedPlan {
  /** Each figure is the median of so many; every second one goes through the runs backwards. */
  rounds: number
  /** Taken in, or delivered, before anything is measured. */
  warmUpEvents: number
  events: number
  /** Of those with full events. */
  fullEvents: number
  /** Fingerprints in each week of the ledger. */
  marksPerWeek: number
}

interface Run {
  engine: typeof startDaemon
  /** Nothing is sent, so what is measured is the taking in. */
  isHeld?: true
  batch?: object
  /** Weeks of fingerprints that the ledger holds. */
  weeks?: number
  /** What the feed asks full events of; all events are high. */
  detail?: string[]
}

const batch = { max: 50, wait: '250ms' }

/** What is compared stands side by side. */
const runs = {
  intake: { engine: startDaemon, isHeld: true },
  pipelineIntake: { engine: startPipeline, isHeld: true },
  pipeline: { engine: startPipeline },
  single: { engine: startDaemon },
  batched: { engine: startDaemon, batch },
  batched13: { engine: startDaemon, batch, weeks: 13 }, // `dedupe.horizon` of 90 days
  full: { engine: startDaemon, detail: ['high'] },
  withoutFull: { engine: startDaemon, detail: [] },
} as const satisfies Record<string, Run>

/** Of an event. */
interface Cost {
  perSecond: number
  nodeUs: number
  redisUs: number
}

type Round = Record<keyof typeof runs, Cost> & { plain: number }

export async function measureSpeed(rig: Rig, plan: SpeedPlan): Promise<Figures> {
  const rounds: Round[] = []
  for (let at = 0; at < plan.rounds; at += 1) {
    const names = Object.keys(runs) as (keyof typeof runs)[]
    const round = { plain: await measurePlain(rig, plan) } as Round
    for (const name of at % 2 === 0 ? names : names.toReversed()) {
      round[name] = await measureRun(rig, plan, runs[name])
    }
    rounds.push(round)
  }
  return figuresOf((of) => median(rounds.map(of)))
}

function figuresOf(middle: (of: (round: Round) => number) => number): Figures {
  return {
    plain: middle(({ plain }) => plain),
    pipeline: middle(({ pipeline }) => pipeline.perSecond),
    'pipeline-node': middle(({ pipeline }) => pipeline.nodeUs),
    'pipeline-redis': middle(({ pipeline }) => pipeline.redisUs),
    single: middle(({ single, pipeline }) => single.perSecond / pipeline.perSecond),
    batched: middle(({ batched, pipeline }) => batched.perSecond / pipeline.perSecond),
    intake: middle(({ intake, pipelineIntake }) => intake.perSecond / pipelineIntake.perSecond),
    'cpu-node': middle(({ batched }) => batched.nodeUs),
    'cpu-node-single': middle(({ single }) => single.nodeUs),
    'cpu-redis': middle(({ batched }) => batched.redisUs),
    'cpu-redis-single': middle(({ single }) => single.redisUs),
    'cpu-redis-13': middle(({ batched13, batched }) => batched13.redisUs - batched.redisUs),
    'full-event-node': middle(({ full, withoutFull }) => full.nodeUs - withoutFull.nodeUs),
    'full-event-redis': middle(({ full, withoutFull }) => full.redisUs - withoutFull.redisUs),
  }
}

/** A daemon or a pipeline. */
interface Engine {
  use(): Promise<ProcessUse>
  /** So many events are taken in or, unless nothing is sent, delivered and noted as such. */
  until(events: number): Promise<void>
  stop(): Promise<unknown>
}

interface Place {
  rig: Rig
  plan: SpeedPlan
  sandbox: SandboxProcess
  hook: Hook
  groupId: number
}

async function startDaemon(place: Place, run: Run): Promise<Engine> {
  const { rig, plan, sandbox, hook, groupId } = place
  const ledger = await openAccount(rig)
  for (let ago = (run.weeks ?? 1) - 1; ago >= 0; ago -= 1) {
    await writeMarks(ledger, plan.marksPerWeek, ago)
  }
  const sinks = { siem: webhookSink(hook, 'siem', run.batch && { batch: run.batch }) }
  const feed = { rescan: false, detail: run.detail ?? [] }
  const config = configOfOne(sandbox, [groupId], sinks, { feed })
  if (run.isHeld) await rig.runCommand(config, 'sinks', 'pause', 'siem', '--reason', 'measured')
  const daemon = await rig.startDaemon(config)
  const countBy = run.isHeld ? takenInBy : deliveredBy
  return { ...daemon, until: (events) => untilCounted(ledger, (now) => countBy(now) >= events) }
}

async function startPipeline(place: Place, { isHeld }: Run): Promise<Engine> {
  const { rig, sandbox, hook, groupId } = place
  const service = { url: sandbox.url, apiKey, groupId }
  const pipeline = await rig.startPipeline({ ...service, hook, hasWorker: !isHeld })
  const what = isHeld ? 'taken' : 'delivered'
  return {
    use: () => pipeline.call('use'),
    until: (events) => pipeline.call('until', what, events),
    stop: pipeline.close,
  }
}

/**
 * Time runs from the first search that finds the events to the last of them at the receiver, or taken in. CPU
 * runs on until all is noted as delivered.
 */
async function measureRun(rig: Rig, plan: SpeedPlan, run: Run): Promise<Cost> {
  await rig.redis.flushall()
  const { groupIds, ...options } = sandboxOfOne(1)
  const groupId = groupIds[0]!
  const sandbox = await rig.startSandbox(options)
  const receiver = await rig.startReceiver()
  const engine = await run.engine({ rig, plan, sandbox, hook: receiver, groupId }, run)
  const given = { groupIds, ...(run.detail && { severity: 'high' as const }) }
  await sandbox.call('addEvents', plan.warmUpEvents, given)
  await engine.until(plan.warmUpEvents)

  const events = run.detail ? plan.fullEvents : plan.events
  const beganMs = await sandbox.call('addAndAwaitSearch', events, given)
  const [node, redis] = await Promise.all([engine.use(), redisUse(rig.redis)])
  const all = plan.warmUpEvents + events
  const receivedMs = run.isHeld ? undefined : await receiver.call('until', all)
  await engine.until(all)
  const endedMs = receivedMs ?? Date.now()
  const [nodeAfter, redisAfter] = await Promise.all([engine.use(), redisUse(rig.redis)])

  await engine.stop()
  await expectReceived(receiver, run.isHeld ? 0 : all)
  await receiver.close()
  return {
    perSecond: (1000 * events) / (endedMs - beganMs),
    nodeUs: (1e6 * (nodeAfter.cpuSeconds - node.cpuSeconds)) / events,
    redisUs: (1e6 * (redisAfter.cpuSeconds - redis.cpuSeconds)) / events,
  }
}

/** Each event once. */
async function expectReceived(receiver: ReceiverProcess, all: number): Promise<void> {
  const { events, repeats } = await receiver.call('counts')
  if (events === all && repeats === 0) return
  throw new Error(`${events} events were received, ${repeats} of them again, and not ${all} once`)
}

/** What a script that keeps nothing does: a page, then a POST for each event, one after the other. */
async function measurePlain(rig: Rig, { events }: SpeedPlan): Promise<number> {
  const { groupIds, ...options } = sandboxOfOne(1)
  const sandbox = await rig.startSandbox(options)
  const receiver = await rig.startReceiver()
  await sandbox.call('addEvents', events, { groupIds })
  const dispatcher = new Agent()
  const service = { url: sandbox.url, apiKey, groupId: groupIds[0]! }
  const readPage = await openServiceFeed(dispatcher, service)
  const beganMs = performance.now()
  for await (const items of readPages(readPage)) {
    for (const item of items) {
      await post(dispatcher, { url: `${receiver.url}/plain`, body: JSON.stringify(item) })
    }
  }
  const seconds = (performance.now() - beganMs) / 1000
  await dispatcher.destroy()
  await expectReceived(receiver, events)
  await receiver.close()
  return events / seconds
}
