import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createGoneSinks } from '../../../src/delivery/gone-sinks.ts'
import { createRerouter, rerouteAll, type RerouteContext } from '../../../src/delivery/reroute.ts'
import type { Verdict } from '../../../src/routing/suppression.ts'
import { createFlusher } from '../../../src/grouping/flusher.ts'
import { blockedGroup, type SinkDigest } from '../../../src/grouping/placement.ts'
import { createSchedule } from '../../../src/lib/cron-schedule.ts'
import { createMetrics } from '../../../src/lib/metrics.ts'
import type { SinkReason } from '../../../src/sinks/sink.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { sumPending } from '../../../src/store/accounts.ts'
import {
  discardItem,
  groupItems,
  moveItem,
  readDueRefs,
  scanPendingItems,
  resendItem,
  readSinkNames,
  readPendingRefs,
} from '../../../src/store/pending-items.ts'
import { type Item, pendingStates, scanRecords } from '../../../src/store/records.ts'
import { aGatheringRig, type GatheringRig } from '../../support/grouping.ts'
import {
  aStanding,
  expectConservation,
  expectNothingStranded,
  redisForTests,
  silent,
  takeIn,
} from '../../support/ledger.ts'
import { aRehearsedSink, type RehearsedSink } from '../../support/rehearsed-sink.ts'
import { relievedAs } from '../../support/failover.ts'
import { runs } from '../../support/runs.ts'

const given = redisForTests()

/*
 * Any order of pages, timers, mutes, silences, sinks that come and go, answers and crashes, each script
 * possibly executed twice: after every step the ledger is whole; at the end every item is final, nothing
 * that collects is left, and no destination got an item twice without having said that it may be a repeat.
 */

type Rule = 'none' | 'silence' | 'mute'

type Step =
  | { do: 'page'; events: { uid: number; severity: string; to: string[]; place: string }[] }
  | { do: 'wait'; ms: number }
  | { do: 'flush' | 'seal' | 'deliver' | 'orphan' | 'return'; sink: string }
  | { do: 'answer'; sink: string; answer: 'ok' | SinkReason }
  | { do: 'rule'; uid: number; rule: Rule }
  | { do: 'crash'; script: string; nth: number }
  | { do: 'move' | 'discard' | 'resend'; uid: number }
  | { do: 'divert' | 'group'; sink: string }

const sinks = ['soc', 'oncall', 'siem']
const sink = fc.constantFrom(...sinks)
const uid = fc.nat({ max: 11 })

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('page' as const),
      events: fc.array(
        fc.record({
          uid,
          severity: fc.constantFrom('low', 'high', 'critical', 'a new word'),
          to: fc.subarray(sinks, { minLength: 1 }),
          place: fc.constantFrom('group', 'other group', 'backlog', 'single'),
        }),
        { minLength: 1, maxLength: 5 },
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(3_000, 12_000, 40_000, 400_000, 90_000_000),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constantFrom('flush' as const, 'seal' as const), sink }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('deliver' as const), sink }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom('orphan' as const, 'return' as const), sink }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      sink,
      answer: fc.constantFrom<('ok' | SinkReason)[]>('unavailable', 'timeout', 'invalid', 'ok'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('rule' as const),
      uid,
      rule: fc.constantFrom<Rule[]>('none', 'silence', 'mute'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('crash' as const),
      script: fc.constantFrom(
        'claim-timer',
        'freeze-members',
        'close-flush',
        'claim-due',
        'advance-claims',
        'settle-members',
        'drop-message',
        'unfreeze-message',
        'redirect-item',
        'group-items',
      ),
      nth: fc.integer({ min: 1, max: 2 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('move' as const, 'discard' as const, 'resend' as const),
      uid,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('divert' as const, 'group' as const), sink }),
  },
)

const noon: SinkDigest = {
  schedule: createSchedule({ cron: '0 12 * * *', timeZone: 'UTC' }),
  timeZone: 'UTC',
  immediate: 'critical',
  sendsEmpty: false,
  maxItems: 3,
}

interface World {
  rig: GatheringRig
  ledger: AccountLedger
  sinks: Map<string, RehearsedSink>
  rules: Map<string, Rule>
  /** Script and how many more calls until the process dies before it. */
  crash: { script: string; left: number } | undefined
  /** Whether a script is executed twice, its first reply lost. */
  isTwice: () => boolean
  diversion: () => Omit<RerouteContext, 'ledger' | 'sink'>
}

/** Every attempt that was cut off counts as dead at once. */
const neverLong = { sendTimeoutMs: -60_000 }

const paging = { mayContinue: () => Promise.resolve(true), alive: () => undefined }

class Killed extends Error {}

async function aWorld(isTwice: () => boolean): Promise<World> {
  const keys = given.keys()
  const ledger = await given.ledger({ keys })
  const rules = new Map<string, Rule>()
  const made = new Map([
    ['soc', aRehearsedSink('soc', { type: 'slack' })],
    ['oncall', aRehearsedSink('oncall', { type: 'email' })],
    ['siem', aRehearsedSink('siem')],
  ])
  const untilMs = (): number => rig.clock.now() + 50_000
  const verdict = (about: string): Verdict => {
    const rule = rules.get(about) ?? 'none'
    if (rule === 'silence') return { act: 'suppress', reason: 'silence', rule: 's1' }
    return rule === 'mute' ? { act: 'hold', rule: 'night', untilMs: untilMs() } : { act: 'send' }
  }
  const relieved = relievedAs(
    [...made.values()].map((one) => ({ ...one, ...neverLong })),
    { fallbacks: { soc: 'oncall', siem: 'oncall' } },
  )
  const diverter = createRerouter({
    sinks: relieved,
    ledgers: [ledger],
    drains: { announceChanges: () => Promise.resolve() },
    metrics: createMetrics(),
  })
  const rig: GatheringRig = aGatheringRig({
    rerouter: diverter,
    redis: given.redis,
    keys,
    ledgers: [ledger],
    sinks: [...made.values()],
    digests: { oncall: noon },
    gate: verdict,
  })
  const diversion = () => ({ rerouter: diverter, nowMs: rig.clock.now() })
  const world: World = {
    rig,
    ledger: ledger,
    sinks: made,
    rules,
    crash: undefined,
    isTwice,
    diversion,
  }
  const run = ledger.run.bind(ledger)
  const disturbed: AccountLedger['run'] = async (script, ...args) => {
    if (world.crash?.script === script && (world.crash.left -= 1) === 0) {
      world.crash = undefined
      throw new Killed(script)
    }
    if (world.isTwice()) await run(script, ...args)
    return run(script, ...args)
  }
  Object.assign(ledger, {
    run: disturbed,
    runJson: async (script: string, ...args: (string | number)[]) =>
      JSON.parse(String(await disturbed(script, ...args))) as unknown,
  })
  return world
}

async function alive(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof Killed)) throw error
  }
}

function nameOf(n: number): string {
  return `paste/site/${n}`
}

/** What workers would do: everything that is due to a sink, once. */
async function deliverDue({ rig, ledger }: World, name: string): Promise<void> {
  const refs = await readDueRefs(ledger, name, rig.clock.now(), { offset: 0, count: 50 })
  for (const ref of refs) if (!ref.startsWith('c:')) await rig.deliver(ref)
}

async function take(world: World, doing: Step): Promise<void> {
  const { rig, ledger } = world
  switch (doing.do) {
    case 'page': {
      const grouping = (place: string) => ({
        waitMs: place === 'single' ? 0 : 10_000,
        labels: { place },
      })
      const events = doing.events.map(({ uid: n, severity, to, place }) =>
        rig.event(
          { uid: nameOf(n), severity },
          { sinks: to, grouping: grouping(place), isBacklog: place === 'backlog' },
        ),
      )
      return void (await takeIn(ledger, events))
    }
    case 'wait':
      return void (rig.clock.aheadMs += doing.ms)
    case 'flush':
    case 'seal':
      return void (await (doing.do === 'flush' ? rig.flush() : rig.seal()))
    case 'deliver':
      return deliverDue(world, doing.sink)
    case 'answer':
      return world.sinks.get(doing.sink)!.next(doing.answer)
    case 'rule':
      return void world.rules.set(nameOf(doing.uid), doing.rule)
    case 'crash':
      world.crash = { script: doing.script, left: doing.nth }
      return
    case 'orphan':
    case 'return':
      return comeAndGo(world, doing)
    case 'divert':
      return void (await rerouteAll(
        { ledger: ledger, sink: doing.sink, ...world.diversion() },
        paging,
      ))
    case 'group': {
      const refs = await readPendingRefs(ledger, doing.sink, { offset: 0, count: 100 })
      const singles = refs.filter((ref) => ref.startsWith('i:'))
      const isForPeople = doing.sink !== 'siem'
      const places = isForPeople ? { [doing.sink]: blockedGroup(doing.sink) } : {}
      return void (await groupItems(ledger, singles, places))
    }
    case 'move':
    case 'discard':
    case 'resend':
      return redirect(world, doing)
  }
}

/** Whoever has no such sink notes it as gone, or takes it back. */
async function comeAndGo(
  { ledger, rig }: World,
  doing: { do: string; sink: string },
): Promise<void> {
  const goneSinks = createGoneSinks({
    ledgers: [ledger],
    blockedGroups: (name) => (name === 'siem' ? {} : { [name]: blockedGroup(name) }),
    standing: aStanding(),
    logger: silent,
  })
  if (doing.do === 'return') return void (await goneSinks.takeBack(ledger, doing.sink))
  await goneSinks.note(ledger, doing.sink)
  const others = [...rig.options.sinks].filter(([name]) => name !== doing.sink)
  const without = createFlusher({ ...rig.options, sinks: new Map(others) })
  await without.flushDigestsOnce()
  await without.flushGroupsOnce()
}

async function redirect({ ledger }: World, doing: { do: string; uid: number }): Promise<void> {
  if (doing.do === 'resend') {
    const record = ledger.fingerprints.recordId(nameOf(doing.uid))
    for (const name of sinks) {
      await resendItem(ledger, `i:${record}:0:${name}`, { batchWaitMs: undefined, by: 'test' })
    }
    return
  }
  for await (const placed of scanPendingItems(ledger, 'soc')) {
    if (placed.record.uid !== nameOf(doing.uid)) continue
    const to = [{ sink: 'siem', destination: 'siem', batchWaitMs: undefined }]
    if (doing.do === 'discard') await discardItem(ledger, placed.ref, 'test')
    else await moveItem(ledger, placed, to, 'test')
  }
}

/** Time passes and nothing disturbs any more. */
async function settleAll(world: World): Promise<void> {
  const { rig, ledger } = world
  world.crash = undefined
  world.isTwice = () => false
  world.rules.clear()
  for (let round = 0; round < 12; round += 1) {
    rig.clock.aheadMs += 90_000_000
    // Redis' own clock does not go with it: how many messages a destination may get now
    await given.redis.del(...sinks.map((name) => ledger.key('flushes', name)))
    await given.redis.del(ledger.key('gone'))
    await rig.seal()
    for (const name of await readSinkNames(ledger)) await deliverDue(world, name)
  }
}

/** What should not be there any more, or should not have been sent. */
async function leftovers({ ledger, sinks: all }: World): Promise<string[]> {
  const { sinks: accounts } = await expectConservation(ledger)
  const pending = Object.entries(accounts).filter(([, account]) => sumPending(account) > 0)
  const names = await given.redis.keys(`${ledger.key()}:*`)
  const items: string[] = []
  for await (const record of scanRecords(ledger)) {
    items.push(...record.items.filter(isPending).map(({ state }) => `${record.uid} ${state}`))
  }
  return [
    ...pending.map(([name]) => `pending for ${name}`),
    ...names.filter((name) => /:(collect|sealed|batch|due):/.test(name)),
    ...items,
    ...[...all.values()].flatMap(unsaidRepeats),
  ]
}

function isPending({ state }: Item): boolean {
  return (pendingStates as readonly string[]).includes(state)
}

/** A message is never sent again as if for the first time; single ones may be, where an operator asked. */
function unsaidRepeats({ received }: RehearsedSink): string[] {
  const first = received.filter(({ mayBeRepeat, attempt }) => !mayBeRepeat && attempt === 1)
  const ids = first.map(({ id }) => id).filter((id) => !id.startsWith('e'))
  return ids.filter((id, at) => ids.indexOf(id) !== at)
}

test('whatever is collected, kept back, cut off or moved, the ledger stays whole and all of it ends', async () => {
  const history = fc.record({
    steps: fc.array(step, { minLength: 5, maxLength: 40 }),
    twice: fc.infiniteStream(fc.boolean()),
    isRough: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(history, async ({ steps, twice, isRough }) => {
      const world = await aWorld(() => isRough && twice.next().value)
      for (const doing of steps) {
        await alive(() => take(world, doing))
        await expectConservation(world.ledger)
      }
      await expectNothingStranded(world.ledger)
      await settleAll(world)
      expect(await leftovers(world)).toEqual([])
    }),
    { numRuns: runs({ short: 12, long: 40 }) },
  )
})
