/** `items list|resend|move|discard` against ledgers that the daemon's own scripts filled. */
import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readAccounting } from '../../../src/store/accounts.ts'
import { moveItem, rerouteItem } from '../../../src/store/pending-items.ts'
import { readItems } from '../../../src/store/records.ts'
import { aGatheringRig } from '../../support/grouping.ts'
import {
  expectConservation,
  pastThisMillisecond,
  redisForTests,
  takeIn,
} from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { aSocScene, type SocScene } from './soc-scene.ts'
import { type Ended, tocsin } from './tocsin.ts'

const tests = redisForTests()

function items({ config }: Pick<SocScene, 'config'>, command: string): Promise<Ended> {
  return tocsin('items', ...command.split(' '), ...config)
}

interface Listed {
  items: Record<string, unknown>[]
  next: string | null
}

async function list(scene: Pick<SocScene, 'config'>, options = ''): Promise<Listed> {
  const { out } = await items(scene, `list --output=json ${options}`.trim())
  return JSON.parse(out) as Listed
}

const uidsOf = ({ items: rows }: Listed): unknown[] => rows.map(({ uid }) => uid)

function uids(count: number, severity = 'high'): { uid: string; severity: string }[] {
  return Array.from({ length: count }, (_, i) => ({ uid: `leak/${severity}/${i}`, severity }))
}

async function pendingOf(ledger: AccountLedger, sink: string): Promise<Record<string, number>> {
  const states = (await readAccounting(ledger)).sinks[sink]?.pending ?? {}
  return Object.fromEntries(Object.entries(states).filter(([, count]) => count !== 0))
}

const problem = 'metadata.severity: not a string'
const malformed = (name: string, uid: string | null = `a/b/${name}`) => ({
  uid,
  problem,
  raw: `{"bad":"${name}"}`,
})

/** One dead, one delivered, one that waits, one that is suppressed by nobody, one malformed. */
async function aScene(): Promise<SocScene> {
  const scene = await aSocScene(tests)
  const { ledger, second } = scene
  const step = () => pastThisMillisecond(tests.redis)
  await scene.show(['lake'], [{ uid: 'a/dead/1', severity: 'low', type: 'paste' }])
  await scene.attempt('lake', { outcome: 'dead', reason: 'gone', answer: 'HTTP 410' })
  await step()
  await scene.show(['siem'], [{ uid: 'a/sent/2', severity: 'critical' }])
  await ledger.redis.del(ledger.key('collect', 'siem'))
  await step()
  await scene.show(['lake'], [{ uid: 'a/sent/3' }])
  await scene.attempt('lake', { outcome: 'delivered' })
  await step()
  await scene.show(['old'], [{ uid: 'a/held/4', severity: 'medium' }])
  await step()
  await takeIn(second, [], { feed: 'staff', malformed: [malformed('5')] })
  await step()
  await scene.show(['lake'], [{ uid: 'a/wait/6' }], second)
  return scene
}

test.each([
  ['--state delivered', ['a/sent/3']],
  ['--state delivered,dead', ['a/sent/3', 'a/dead/1']],
  ['--state pending', ['a/sent/2', 'a/held/4', 'a/wait/6']],
  ['--state pending --account second', ['a/wait/6']],
  ['--state pending --severity critical', ['a/sent/2']],
  ['--state pending --severity high', ['a/sent/2', 'a/wait/6']],
  ['--state quarantined,queued --limit 1', ['a/wait/6']],
  ['--sink lake', ['a/dead/1']],
  ['--feed staff', ['a/b/5']],
  ['--state dead --until 1h', []],
  ['--state dead --since 1h', ['a/dead/1']],
])('items list %s has only those, in their order', async (options, expected) => {
  expect(uidsOf(await list(await aScene(), options))).toEqual(expected)
})

test.each([
  ['delivered', 'lake', '--until', ['a/b/4', 'a/b/3', 'a/b/2', 'a/b/1']],
  ['queued', 'lake', '--since', ['a/b/1', 'a/b/2', 'a/b/3', 'a/b/4']],
])('a list of what is %s goes on where it ended', async (state, sink, option, expected) => {
  const scene = await aSocScene(tests)
  for (const n of [1, 2, 3, 4]) {
    await pastThisMillisecond(tests.redis)
    await scene.show([sink], [{ uid: `a/b/${n}` }])
    if (state === 'delivered') await scene.attempt(sink, { outcome: 'delivered' })
  }
  const first = await list(scene, `--state ${state} --limit 2`)
  const rest = await list(scene, `--state ${state} ${option} ${first.next}`)
  expect(uidsOf(first)).toEqual(expected.slice(0, 2))
  expect(uidsOf(rest)).toEqual(expected.slice(1))
})

test('what was sent again goes out under its id, stays counted, and says who asked', async () => {
  const scene = await aSocScene(tests)
  const { ledger, keys } = scene
  await scene.show(['lake'], [{ uid: 'leak/x/1' }, { uid: 'leak/x/2', severity: 'critical' }])
  await scene.attempt('lake', { outcome: 'dead', reason: 'gone' })
  const before = (await list(scene, '--state dead')).items.map(({ id }) => String(id))
  expect((await items(scene, 'resend --sink lake --yes --by ann')).code).toBe(0)
  expect((await list(scene, '--state queued')).items).toMatchObject([
    { rule: 'resent by ann', replays: 1 },
    { rule: 'resent by ann', replays: 1 },
  ])
  const lake = aRehearsedSink('lake')
  const rig = aGatheringRig({ redis: ledger.redis, keys, ledgers: [ledger], sinks: [lake] })
  const refs = await ledger.redis.zrange(ledger.key('due', 'lake'), '0', '-1')
  for (const ref of refs) await rig.deliver(ref)
  expect(new Set(lake.received.map(({ id }) => id))).toEqual(new Set(before))
  const { sinks } = await expectConservation(ledger)
  expect(sinks['lake']).toMatchObject({ created: 2, replayed: 2, dead: 2, delivered: 2 })
})

test('what went to the fallback of the sink is sent to it again; what was moved by hand is not', async () => {
  const scene = await aSocScene(tests)
  const { ledger } = scene
  await scene.show(['siem'], [{ uid: 'leak/x/1' }, { uid: 'leak/x/2' }])
  const targets = [{ sink: 'lake', destination: 'lake', batchWaitMs: undefined }]
  for (const [n, uid] of ['leak/x/1', 'leak/x/2'].entries()) {
    const [found] = await readItems(ledger, [`i:${ledger.fingerprints.recordId(uid)}:0:siem`])
    if (n === 0) await rerouteItem(ledger, found!, { to: 'lake', targets, staleMs: 0 })
    else await moveItem(ledger, found!, targets, 'to lake, by ann')
  }
  const { out } = await items(scene, 'resend --sink siem --state diverted --since 1h --yes')
  expect(out).toBe(
    '1 item queued again; a running daemon goes on within seconds\nleft as they are: 1 diverted\n',
  )
  const { sinks } = await expectConservation(ledger)
  expect(sinks['siem']).toMatchObject({ diverted: 2, replayed: 1, pending: { queued: 1 } })
})

test('what can no longer be sent is left, counted and said', async () => {
  const scene = await aSocScene(tests)
  const { ledger } = scene
  await scene.show(['lake', 'oncall'], [{ uid: 'leak/x/1', severity: 'critical' }])
  await scene.show(['lake'], [{ uid: 'leak/x/2' }])
  for (const sink of ['lake', 'oncall']) await scene.attempt(sink, { outcome: 'dead' })
  await ledger.redis.del(ledger.key('pay', ledger.fingerprints.recordId('leak/x/2')))
  const prefix = `prefix: ${scene.parsed.redis.prefix}`
  const fewer = await aSocScene(tests, (text) =>
    text.replace('ann@example.com, ', '').replace(/prefix: \w+/, prefix),
  )
  const { code, out } = await items(fewer, 'resend --state dead --yes')
  expect(out).toBe(
    [
      '2 items queued again; a running daemon goes on within seconds',
      '1 item left: the content is no longer kept (retention.payload)',
      '1 item left: the recipient is no longer configured',
      '',
    ].join('\n'),
  )
  expect(code).toBe(1)
})

test('moving to a machine takes every item there by itself, the worst first', async () => {
  const scene = await aSocScene(tests)
  const { ledger } = scene
  const severities = ['low', 'critical', 'info', 'high', 'medium']
  await scene.show(
    ['old'],
    severities.flatMap((severity) => uids(1, severity)),
  )
  expect((await items(scene, 'move --sink old --to siem --yes')).code).toBe(0)
  const refs = await ledger.redis.zrange(ledger.key('collect', 'siem'), '0', '-1')
  const worstFirst = ['critical', 'high', 'medium', 'low', 'info']
  expect(refs.map((ref) => ref.split(':')[1])).toEqual(
    worstFirst.map((severity) => ledger.fingerprints.recordId(`leak/${severity}/0`)),
  )
  const { sinks } = await expectConservation(ledger)
  expect(sinks['old']).toMatchObject({ diverted: 5, created: 5 })
})

test('moving to people makes one message, and a digest takes it into its window', async () => {
  const scene = await aSocScene(tests)
  const { ledger, keys } = scene
  await scene.show(['old'], uids(3))
  await items(scene, 'move --sink old --to soc --yes')
  expect(await pendingOf(ledger, 'soc')).toEqual({ group: 3 })
  const soc = aRehearsedSink('soc', { type: 'slack' })
  const rig = aGatheringRig({ redis: ledger.redis, keys, ledgers: [ledger], sinks: [soc] })
  rig.clock.aheadMs = 16_000
  expect(await rig.flush()).toBe(1)
  expect(soc.received[0]?.summary).toMatchObject({ total: 3, labels: { 'moved from': 'old' } })
  await scene.show(['older'], [...uids(2, 'low'), { uid: 'leak/c/1', severity: 'critical' }])
  await items(scene, 'move --sink older --to oncall --yes')
  expect(await pendingOf(ledger, 'oncall')).toEqual({ digest: 4, group: 2 })
  await expectConservation(ledger)
})
