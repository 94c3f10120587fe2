/** `deliveries resend`: what a sink accepted goes out again under its ids. */
import { expect, test, vi } from 'vitest'
import { createAddressHasher } from '../../../src/daemon/sinks.ts'
import { createCircuit } from '../../../src/delivery/circuit.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { readItems, readRecord } from '../../../src/store/records.ts'
import { readAccounting } from '../../../src/store/accounts.ts'
import { rerouteItem, moveItem } from '../../../src/store/pending-items.ts'
import { aGatheringRig } from '../../support/grouping.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { aSocScene, type SocScene } from './soc-scene.ts'
import { tocsin } from './tocsin.ts'

const tests = redisForTests()

async function aDeliveredScene(sink = 'lake'): Promise<SocScene> {
  const scene = await aSocScene(tests)
  await scene.show([sink], [{ uid: 'leak/x/1' }, { uid: 'leak/x/2', severity: 'critical' }])
  await scene.attempt(sink, { outcome: 'delivered' })
  return scene
}

async function idOf(ledger: AccountLedger, uid: string): Promise<string | undefined> {
  return (await readRecord(ledger, ledger.fingerprints.recordId(uid)))?.items[0]?.id
}

test('resent items go out again under their ids, and stay counted', async () => {
  const { ledger, keys, config } = await aDeliveredScene()
  const { code, out } = await tocsin(
    'deliveries',
    'resend',
    '--sink=lake',
    '--since=1h',
    '--yes',
    ...config,
  )
  expect({ code, out }).toEqual({
    code: 0,
    out: '2 items queued; a running daemon sends them again within seconds\n',
  })
  const lake = aRehearsedSink('lake')
  const rig = aGatheringRig({ redis: ledger.redis, keys, ledgers: [ledger], sinks: [lake] })
  const refs = await ledger.redis.zrange(ledger.key('due', 'lake'), '0', '-1')
  for (const ref of refs) await rig.deliver(ref)
  expect(new Set(lake.received.map(({ id }) => id))).toEqual(
    new Set([await idOf(ledger, 'leak/x/2'), await idOf(ledger, 'leak/x/1')]),
  )
  expect(lake.received).toHaveLength(2)
  const { sinks } = await expectConservation(ledger)
  expect(sinks['lake']).toMatchObject({ created: 2, replayed: 2, delivered: 4 })
})

test('resending asks first, and says what repeated ids mean', async () => {
  const { ledger, config } = await aDeliveredScene()
  const { code, err } = await tocsin('deliveries', 'resend', '--sink=lake', '--since=1h', ...config)
  expect(code).toBe(2)
  expect(err).toMatch(
    /^2 items \(1 critical, 1 high\) that lake accepted since \S+ \S+ UTC will be sent again, each in a message of its own\. Their ids stay: a receiver that drops repeated ids drops these\. Nobody is there to ask; say --yes\n$/,
  )
  expect((await expectConservation(ledger)).sinks['lake']).toMatchObject({ replayed: 0 })
})

test('a sink that batches gets them in batches, the worst first', async () => {
  const { ledger, config } = await aDeliveredScene('siem')
  const args = ['deliveries', 'resend', '--sink=siem', '--since=1h', ...config]
  await ledger.redis.del(ledger.key('due', 'siem'))
  expect((await tocsin(...args)).err).toContain('will be sent again, in batches.')
  await tocsin(...args, '--yes')
  const refs = await ledger.redis.zrange(ledger.key('collect', 'siem'), '0', '-1')
  expect(refs.map((ref) => ref.split(':')[1])).toEqual([
    ledger.fingerprints.recordId('leak/x/2'),
    ledger.fingerprints.recordId('leak/x/1'),
  ])
})

test('what went to the fallback of the sink is sent to it again; what was moved by hand is not', async () => {
  const scene = await aSocScene(tests)
  const { ledger, config } = scene
  await scene.show(['siem'], [{ uid: 'leak/x/1' }, { uid: 'leak/x/2' }])
  const targets = [{ sink: 'lake', destination: 'lake', batchWaitMs: undefined }]
  for (const [n, uid] of ['leak/x/1', 'leak/x/2'].entries()) {
    const [found] = await readItems(ledger, [`i:${ledger.fingerprints.recordId(uid)}:0:siem`])
    if (n === 0) await rerouteItem(ledger, found!, { to: 'lake', targets, staleMs: 0 })
    else await moveItem(ledger, found!, targets, 'to lake, by ann')
  }
  const args = ['deliveries', 'resend', '--sink=siem', '--since=1h', ...config]
  expect((await tocsin(...args)).err).toMatch(
    /^1 item \(1 \w+\) that siem did not get but its fallback did since /,
  )
  expect((await tocsin(...args, '--yes')).out).toContain('1 item queued')
  const { sinks } = await expectConservation(ledger)
  expect(sinks['siem']).toMatchObject({ diverted: 2, replayed: 1, pending: { queued: 1 } })
})

test('with --diverted what the sink itself accepted is left alone', async () => {
  const { ledger, config } = await aDeliveredScene()
  const args = ['deliveries', 'resend', '--sink=lake', '--since=1h', '--diverted', ...config]
  expect((await tocsin(...args, '--yes')).out).toContain('accepted nothing in that time')
  expect((await readAccounting(ledger)).sinks['lake']).toMatchObject({ replayed: 0 })
})

test('nothing is sent again to a sink that takes nothing, from which its fallback would get it again', async () => {
  const scene = await aSocScene(tests, (text) => text.replace('siem: {', 'siem: { fallback: lake,'))
  const { ledger, keys, config, parsed } = scene
  await scene.show(['siem'], [{ uid: 'leak/x/1' }])
  const targets = [{ sink: 'lake', destination: 'lake', batchWaitMs: undefined }]
  const [item] = await readItems(ledger, [`i:${ledger.fingerprints.recordId('leak/x/1')}:0:siem`])
  await rerouteItem(ledger, item!, { to: 'lake', targets, staleMs: 0 })
  const circuit = createCircuit(ledger.redis, keys, createAddressHasher(parsed))
  const resend = () =>
    tocsin('deliveries', 'resend', '--sink=siem', '--since=1h', '--diverted', '--yes', ...config)
  for (const [word, why] of [
    ['broken', 'has its circuit open'],
    ['gone', 'is disabled: its address is no more'],
  ] as const) {
    await circuit.report('siem', word)
    const { code, err } = await resend()
    expect({ code, err }).toEqual({
      code: 2,
      err: `siem ${why}: what is sent again goes to its fallback lake again; tocsin sinks test siem; once it is mended: tocsin sinks resume siem\n`,
    })
  }
  expect((await readAccounting(ledger)).sinks['siem']).toMatchObject({ replayed: 0 })
  await circuit.pause('siem', undefined)
  expect((await resend()).out).toContain('1 item queued')
})

test('one event alone is named as it stands in a message', async () => {
  const { ledger, config } = await aDeliveredScene()
  const uid = ['--uid', 'leak/x[.]y/1']
  const args = ['deliveries', 'resend', '--sink=lake', '--since=1h', '--yes', '--output=json']
  const none = await tocsin(...args, ...uid, ...config)
  expect(JSON.parse(none.out)).toMatchObject({ resent: 0 })
  const one = await tocsin(...args, '--uid=leak/x/1', ...config)
  expect(JSON.parse(one.out)).toEqual({ sink: 'lake', resent: 1, no_payload: 0, no_recipient: 0 })
  expect((await expectConservation(ledger)).sinks['lake']).toMatchObject({ replayed: 1 })
})

test('what was delivered before that time is left alone', async () => {
  const { config } = await aDeliveredScene()
  const deliveredMs = Date.now()
  await vi.waitUntil(() => Date.now() > deliveredMs + 5, { timeout: 45_000 })
  const args = ['deliveries', 'resend', '--sink=lake', '--yes', ...config]
  const { code, out } = await tocsin(...args, '--since=1ms')
  expect({ code, out }).toEqual({
    code: 0,
    out: 'lake accepted nothing in that time that the ledger still knows of\n',
  })
})

test('what can no longer be sent is left, counted and said', async () => {
  const { ledger, config } = await aDeliveredScene()
  await ledger.redis.del(ledger.key('pay', ledger.fingerprints.recordId('leak/x/1')))
  const { code, out } = await tocsin(
    'deliveries',
    'resend',
    '--sink=lake',
    '--since=1h',
    '--yes',
    ...config,
  )
  expect(out).toBe(
    '1 item queued; a running daemon sends them again within seconds\n1 item left: the content is no longer kept (retention.payload)\n',
  )
  expect(code).toBe(1)
})

test('a recipient who is no longer configured gets nothing again', async () => {
  const scene = await aSocScene(tests)
  await scene.show(['oncall'], [{ uid: 'leak/x/1', severity: 'critical' }])
  await scene.attempt('oncall', { outcome: 'delivered' })
  const prefix = `prefix: ${scene.parsed.redis.prefix}`
  const fewer = await aSocScene(tests, (text) =>
    text.replace('ann@example.com, ', '').replace(/prefix: \w+/, prefix),
  )
  const args = ['deliveries', 'resend', '--sink=oncall', '--since=1h', '--yes', ...fewer.config]
  const { code, out } = await tocsin(...args)
  expect(out).toBe(
    '1 item queued; a running daemon sends them again within seconds\n1 item left: the recipient is no longer configured\n',
  )
  expect(code).toBe(1)
})

test.each([
  [['--since=1h'], "required option '--sink <name>' not specified"],
  [['--sink=lake'], "required option '--since <time>' not specified"],
  [['--sink=lkae', '--since=1h'], 'there is no sink "lkae"; did you mean "lake"?'],
  [['--sink=lake', '--since=soon'], '"soon" is neither a time nor a duration'],
  [['--sink=lake', '--since=2999-01-01'], 'lies in the future; name a time that has passed'],
])('deliveries resend refuses %j', async (args, said) => {
  const { config } = await aSocScene(tests)
  const { code, err } = await tocsin('deliveries', 'resend', ...args, ...config)
  expect(err).toContain(said)
  expect(code).toBe(2)
})
