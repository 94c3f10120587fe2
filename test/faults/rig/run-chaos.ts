/**
 * One chaos run: events pour in, lanes of disturbances strike side by side, then everything is healed and
 * whatever is still to be done is waited for; at last the accountant gives his verdict.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { readAccounting, sumPending } from '../../../src/store/accounts.ts'
import { giveVerdict, type Verdict } from './accountant.ts'
import { callOperator } from './operator.ts'
import type { Disturbance } from './disturbance.ts'
import { expectConservation } from '../../support/ledger.ts'
import type { RecoverySample } from './recovery.ts'
import { until } from '../../support/until.ts'
import { proveAllTheWhile } from './prover.ts'
import { inboxesOf, openStage, type Stage, type StageOptions } from './stage.ts'

export interface ChaosPlan extends StageOptions {
  name: string
  perSecond: number
  /** Run side by side; those of a lane one after the other. */
  lanes: readonly (readonly Disturbance[])[]
  /** How long a disturbance that can be of any length takes, ms. */
  strikeMs: number
  /** Until then disturbances are drawn at random; undefined: each strikes once, in order. */
  forMs?: number | undefined
  /** Once everything is healed: how long nothing may move before all is settled, ms. */
  settlePatienceMs: number
}

interface Spread {
  median: number
  most: number
}

export interface Figures {
  name: string
  seed: number
  store: string
  replicas: number
  seconds: number
  events: number
  /** How often each disturbance struck. */
  struck: Record<string, number>
  verdict: Verdict
  recoveryMs: { samples: number; free: Spread; taken: Spread }
  /** From the last healing until everything was settled. */
  settledAfterMs: number
  /** Times that the ledger was compared with itself while all this went on, and what that found wrong. */
  ledgerChecks: { made: number; findings: string[] }
  lateExits: number
  crashes: number
  violations: { rate: number; changedScans: number }
}

export async function runChaos(plan: ChaosPlan): Promise<Figures> {
  const stage = await openStage(plan)
  const beganMs = performance.now()
  try {
    loseAnswers(stage)
    const pouring = pourEvents(stage, plan.perSecond)
    await until('the load flows', () => isFlowing(stage))
    const prover = proveAllTheWhile(stage.ledger)
    const struck = await strikeAll(plan, stage)
    const events = await pouring.stop()
    heal(stage)
    const healedMs = performance.now()
    await settle(stage, plan.settlePatienceMs)
    const settledAfterMs = Math.round(performance.now() - healedMs)
    await expectConservation(stage.ledger)
    const proofs = await prover.stop()
    const inboxes = inboxesOf(stage)
    const uids = knownEvents(stage).map(({ uid }) => uid)
    const { ledger, store } = stage
    const verdict = await giveVerdict({ ledger: ledger, uids, inboxes, lossesMs: store.lossesMs })
    await stage.fleet.stop()
    return {
      name: plan.name,
      seed: plan.seed,
      store: plan.store,
      replicas: plan.replicas,
      seconds: Math.round((performance.now() - beganMs) / 1000),
      events,
      struck,
      verdict,
      recoveryMs: recoveryOf(stage.recovery.samples()),
      settledAfterMs,
      ledgerChecks: proofs,
      lateExits: stage.fleet.lateExits(),
      crashes: stage.fleet.crashes(),
      violations: stage.sandbox.violations(),
    }
  } finally {
    await stage.close()
  }
}

/** What is wrong all the same, one line each; empty: nothing of the harm done is left to be seen. */
export function complaintsOf({
  verdict,
  ledgerChecks: proofs,
  lateExits,
  crashes,
  violations,
}: Figures): string[] {
  const about = (what: string, names: readonly string[]): string[] =>
    names.map((name) => `${what}: ${name}`)
  const counts = { 'late exits': lateExits, crashes, ...violations }
  return [
    ...about('lost', verdict.lost),
    ...about('repeated without an explanation', verdict.unexplained),
    ...about('repeated without saying so', verdict.unmarked),
    ...proofs.findings,
    ...Object.entries(counts).flatMap(([what, count]) =>
      count === 0 ? [] : [`${what}: ${count}`],
    ),
  ]
}

/** Adds events in a steady stream, some of them shown by both groups. */
function pourEvents({ sandbox, random }: Stage, perSecond: number): { stop(): Promise<number> } {
  let isStopped = false
  async function pour(): Promise<void> {
    for (let owed = 0; !isStopped; owed += perSecond / 10) {
      for (; owed >= 1; owed -= 1) {
        const severity = random.chance(0.1) ? 'critical' : 'high'
        const groupIds = random.chance(0.2) ? [1042, 1043] : [1042]
        sandbox.addEvent({ severity, ignoredAtMs: null, groupIds })
      }
      await sleep(100)
    }
  }
  const pouring = pour()
  return {
    async stop() {
      isStopped = true
      await pouring
      return sandbox.events().length
    },
  }
}

/** Whatever else strikes, one message in a hundred is accepted and nobody hears of it. */
function loseAnswers({ sandbox }: Stage): void {
  for (const on of ['/hooks/*', '/slack/*', 'smtp:data']) {
    sandbox.faults.add({ on, effect: 'lose-answer', probability: 0.01 })
  }
}

async function strikeAll(plan: ChaosPlan, stage: Stage): Promise<Record<string, number>> {
  const struck: Record<string, number> = {}
  const strike = async (disturbance: Disturbance): Promise<void> => {
    await disturbance.strike(stage, plan.strikeMs)
    struck[disturbance.name] = (struck[disturbance.name] ?? 0) + 1
  }
  const endMs = performance.now() + (plan.forMs ?? 0)
  const runLane = async (lane: readonly Disturbance[]): Promise<void> => {
    if (plan.forMs === undefined) for (const disturbance of lane) await strike(disturbance)
    else while (performance.now() < endMs) await strike(draw(lane, stage))
  }
  const fits = ({ stores }: Disturbance): boolean => stores?.includes(plan.store) ?? true
  await Promise.all(plan.lanes.map((lane) => runLane(lane.filter(fits))))
  return struck
}

function draw(lane: readonly Disturbance[], { random }: Stage): Disturbance {
  const weights = lane.map(({ weight = 1 }) => weight)
  let left = random.next() * weights.reduce((sum, weight) => sum + weight, 0)
  const found = lane.find((_, i) => (left -= weights[i] ?? 0) < 0)
  return (found ?? lane[0])!
}

function heal({ sandbox, skew }: Stage): void {
  sandbox.faults.clear()
  skew.ms = 0
}

/** Those that a page can show as an event. */
function knownEvents({ sandbox }: Stage): { uid: string; groupIds: number[] }[] {
  return sandbox.events().filter(({ uid }) => !uid.startsWith('raw/'))
}

function isFlowing({ sandbox, fleet }: Stage): boolean {
  if (fleet.crashes() > 0) throw new Error('a replica ended by itself; its log (--log) says why')
  return sandbox.received.webhook.length > 20
}

/**
 * Meanwhile an operator does what operators do. Throws once nothing has moved for `patienceMs`: after
 * many answers 429 a feed has a twentieth of its requests, and a long backlog takes its time.
 */
async function settle(stage: Stage, patienceMs: number): Promise<void> {
  const operator = callOperator(stage)
  let before = ''
  let endMs = Infinity
  for (;;) {
    await operator.act()
    const left = (await leftToDo(stage)).join(', ')
    if (left === '') break
    if (left !== before) endMs = performance.now() + patienceMs
    if (performance.now() > endMs) throw new Error(`not settled: ${left}`)
    before = left
    await sleep(1_000)
  }
}

/** What is not taken in, or not settled. */
async function leftToDo(stage: Stage): Promise<string[]> {
  const { feeds, sinks } = await readAccounting(stage.ledger)
  const events = knownEvents(stage)
  const left: string[] = []
  for (const [feed, group] of [
    ['brand', 1042],
    ['suppliers', 1043],
  ] as const) {
    const shown = events.filter(({ groupIds }) => groupIds.includes(group)).length
    const taken = feeds[feed]?.new ?? 0
    if (taken !== shown) left.push(`feed ${feed} took in ${taken} of ${shown} events`)
  }
  for (const [sink, account] of Object.entries(sinks)) {
    if (sumPending(account) > 0) left.push(`sink ${sink}: ${JSON.stringify(account.pending)}`)
  }
  return left
}

function recoveryOf(samples: readonly RecoverySample[]): Figures['recoveryMs'] {
  return {
    samples: samples.length,
    free: spreadOf(samples.map(({ freeMs }) => freeMs)),
    taken: spreadOf(samples.map(({ takenMs }) => takenMs)),
  }
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0
  return { median: at(0.5), most: at(1) }
}

/** What a run found, for a terminal. */
export function renderFigures(figures: Figures): string {
  const { verdict, recoveryMs, struck } = figures
  const complaints = complaintsOf(figures)
  const strikes = Object.entries(struck).map(([name, times]) => `  ${times} × ${name}`)
  return `${[
    `${figures.name}: ${figures.replicas} replicas, Redis ${figures.store}, seed ${figures.seed}, ${figures.seconds} s`,
    ...strikes,
    `  events ${figures.events}, deliveries due ${verdict.expected}, received ${verdict.received}`,
    `  lost ${verdict.lost.length}, repeated ${verdict.repeated}, explained ${verdict.explained}, unexplained ${verdict.unexplained.length}`,
    `  work of killed replicas (${recoveryMs.samples} pieces) free again after ${inWords(recoveryMs.free)}, taken up after ${inWords(recoveryMs.taken)}`,
    `  all settled ${inSeconds(figures.settledAfterMs)} after the last disturbance; late exits ${figures.lateExits}, crashes ${figures.crashes}`,
    `  the ledger compared with itself ${figures.ledgerChecks.made} times meanwhile, findings ${figures.ledgerChecks.findings.length}`,
    ...complaints.slice(0, 30).map((line) => `  ${line}`),
  ].join('\n')}\n`
}

export function sayFigures(figures: Figures): void {
  process.stdout.write(renderFigures(figures))
}

function inSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

/** As `11.0 s (median), at most 13.6 s`. */
function inWords({ median, most }: Spread): string {
  return `${inSeconds(median)} (median), at most ${inSeconds(most)}`
}
