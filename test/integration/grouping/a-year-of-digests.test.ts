import { expect, test } from 'vitest'
import type { SinkDigest } from '../../../src/grouping/placement.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readDueRefs } from '../../support/due-refs.ts'
import { createSchedule } from '../../../src/lib/cron-schedule.ts'
import { formatLocal } from '../../../src/lib/time-zone.ts'
import { createRandom } from '../../../src/sandbox/options.ts'
import { aGatheringRig, type GatheringRig } from '../../support/grouping.ts'
import { expectConservation, redisForTests, takeIn } from '../../support/ledger.ts'
import { aRehearsedSink, type RehearsedSink } from '../../support/rehearsed-sink.ts'
import { runs } from '../../support/runs.ts'

const given = redisForTests()

const minuteMs = 60_000
const dayMs = 86_400_000
/** The year is walked through by `npm run test:faults`. */
const days = runs({ short: 60, long: 366 })

/** Every zone changes its clocks twice within the year; one of them by half an hour, at an odd time. */
const desks = {
  zurich: { timeZone: 'Europe/Zurich', cron: '0 8,16 * * *', hours: ['08:00', '16:00'] },
  // New York's clocks skip 02:30 in March and show it twice in November
  newyork: { timeZone: 'America/New_York', cron: '30 2 * * *', hours: ['02:30', '03:00'] },
  lordhowe: { timeZone: 'Australia/Lord_Howe', cron: '15 6 * * *', hours: ['06:15'] },
}

function digestOf(desk: keyof typeof desks): SinkDigest {
  const { timeZone, cron } = desks[desk]
  const schedule = createSchedule({ cron, timeZone })
  return { schedule, timeZone, immediate: null, sendsEmpty: true, maxItems: 100 }
}

interface Office {
  ledger: AccountLedger
  sinks: Map<string, RehearsedSink>
  digests: Record<string, SinkDigest>
  /** The daemon of the moment. */
  rig: GatheringRig
  restart(): void
}

async function anOffice(): Promise<Office> {
  const keys = given.keys()
  const ledger = await given.ledger({ keys })
  const names = Object.keys(desks) as (keyof typeof desks)[]
  const sinks = new Map(names.map((name) => [name, aRehearsedSink(name, { type: 'email' })]))
  const digests = Object.fromEntries(names.map((name) => [name, digestOf(name)]))
  const options = {
    redis: given.redis,
    keys,
    ledgers: [ledger],
    sinks: [...sinks.values()],
    digests,
  }
  const office: Office = {
    ledger: ledger,
    sinks,
    digests,
    rig: aGatheringRig(options),
    restart() {
      const { aheadMs } = office.rig.clock
      office.rig = aGatheringRig(options)
      office.rig.clock.aheadMs = aheadMs
    },
  }
  return office
}

/** What a running daemon does within a minute. */
async function work({ rig, ledger, sinks }: Office): Promise<void> {
  await rig.ensureDigests()
  await rig.seal()
  for (const name of sinks.keys()) {
    const refs = await readDueRefs(ledger, name, rig.clock.now(), { offset: 0, count: 10 })
    for (const ref of refs) await rig.deliver(ref)
  }
}

/** The process dies before the n-th script from now on. */
function dieAfter(ledger: AccountLedger, scripts: number): () => void {
  const { run } = ledger
  let left = scripts
  Object.assign(ledger, {
    run: (script: string, ...args: (string | number)[]) =>
      (left -= 1) < 0 ? Promise.reject(new Error('killed')) : run(script, ...args),
  })
  return () => void Object.assign(ledger, { run })
}

test(`${days} days in three zones: no event lost, none twice, each digest at its local hour`, async () => {
  const office = await anOffice()
  const random = createRandom(20_261_121)
  const startMs = office.rig.clock.now()
  const shown = new Set<string>()
  const missed = new Set<number>()
  const setTime = (atMs: number): void => void (office.rig.clock.aheadMs = atMs - Date.now())
  await work(office)
  for (let atMs = startMs; atMs < startMs + days * dayMs;) {
    const uid = `paste/site/${shown.size}`
    shown.add(uid)
    await takeIn(office.ledger, [office.rig.event({ uid }, { sinks: Object.keys(desks) })])
    const nextMs = Math.min(
      ...Object.values(office.digests).map(({ schedule }) => schedule.next(atMs)),
    )
    const isDown = random.next() < 0.02
    atMs = isDown ? nextMs + 3 * dayMs : nextMs
    if (isDown) missed.add(atMs)
    setTime(atMs + 2_000)
    if (random.next() < 0.05) {
      const heal = dieAfter(office.ledger, Math.floor(random.next() * 8))
      await work(office).catch(() => undefined)
      heal()
      office.restart()
      setTime(atMs + 40_000) // what the dead process had in hand is free again
    }
    await work(office)
  }
  setTime(startMs + (days + 4) * dayMs)
  await work(office)
  await work(office)
  const { sinks } = await expectConservation(office.ledger)
  for (const name of Object.keys(desks) as (keyof typeof desks)[]) {
    expect(sinks[name]).toMatchObject({ created: shown.size, delivered: shown.size })
    expectEachOnce(office.sinks.get(name)!, shown)
    expectLocalHours(office.sinks.get(name)!, name)
  }
  expect(missed.size).toBeGreaterThan((3 * days) / 366)
})

function expectEachOnce({ received }: RehearsedSink, shown: ReadonlySet<string>): void {
  const times = new Map<string, number>()
  const byId = new Map(received.map((delivery) => [delivery.id, delivery]))
  for (const { members } of byId.values()) {
    for (const { event } of members) times.set(event.uid, (times.get(event.uid) ?? 0) + 1)
  }
  expect(times.size).toBe(shown.size)
  expect([...times.values()].every((count) => count === 1)).toBe(true)
  const again = received.filter(({ attempt }) => attempt > 1)
  expect(again.every(({ mayBeRepeat }) => mayBeRepeat)).toBe(true)
}

function expectLocalHours({ received }: RehearsedSink, desk: keyof typeof desks): void {
  const { timeZone, hours } = desks[desk]
  const onTime = received.filter(({ summary }) => !summary!.digest!.isLate)
  expect(onTime.length).toBeGreaterThan((250 * days) / 366)
  for (const { summary } of onTime) {
    const local = formatLocal(summary!.digest!.dueAtMs, timeZone)
    expect(hours.some((hour) => local.includes(` ${hour} `))).toBe(true)
    expect(summary!.digest!.toMs - summary!.digest!.dueAtMs).toBeLessThan(15 * minuteMs)
  }
  const byId = new Map(received.map(({ id, summary }) => [id, summary!.digest!]))
  const windows = [...byId.values()]
  expect(windows.slice(1).map(({ fromMs }) => fromMs)).toEqual(
    windows.slice(0, -1).map(({ toMs }) => toMs),
  )
}
