/** `accounts list|discard` against a ledger that the daemon's own scripts filled. */
import { expect, test } from 'vitest'
import { type AccountLedger, claimLead } from '../../../src/store/account-ledger.ts'
import {
  noteConfigured,
  noteDiscarding,
  readAccounting,
  readAccounts,
} from '../../../src/store/accounts.ts'
import { readRecord } from '../../../src/store/records.ts'
import { beginAttempt, sealBatch, settleAttempt } from '../../support/attempts.ts'
import { aDigestRig } from '../../support/digest-rig.ts'
import { expectConservation, redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aSocScene, type SocScene } from './soc-scene.ts'
import { tocsin } from './tocsin.ts'

const tests = redisForTests()

interface Scene extends SocScene {
  umbrella: AccountLedger
}

/** Besides the accounts of the configuration one that left it: five items that wait, each in another way. */
async function aScene(): Promise<Scene> {
  const scene = await aSocScene(tests)
  const umbrella = await tests.ledger({ keys: scene.keys, account: 'umbrella' })
  await scene.show(['lake'], [{ uid: 'a/b/1' }], umbrella)
  await scene.show(['oncall'], [{ uid: 'a/b/3', severity: 'low' }], umbrella) // two recipients
  await scene.show(['gone'], [{ uid: 'a/b/4' }], umbrella)
  await takeIn(umbrella, [], { malformed: [{ uid: 'a/b/9', problem: 'not an event', raw: '{}' }] })
  await takeIn(umbrella, [routed({ uid: 'a/b/2' }, ['siem'])], { batchWaitMs: 1 })
  const collected = await umbrella.redis.zrange(umbrella.key('collect', 'siem'), '0', '-1')
  await sealBatch(umbrella, { sink: 'siem', destination: 'siem', waitMs: 1 }, collected)
  return { ...scene, umbrella }
}

function refsOf(ledger: AccountLedger, sink: string): Promise<string[]> {
  return ledger.redis.zrange(ledger.key('due', sink), '0', '-1')
}

const keysOf = (ledger: AccountLedger): Promise<string[]> => ledger.redis.keys(`${ledger.key()}*`)

test('discard gives up all that an account holds and removes its ledger, and no other’s', async () => {
  const scene = await aScene()
  const { config, keys, umbrella, ledger, second } = scene
  await scene.show(['lake'], [{ uid: 'a/b/1' }], ledger)
  await scene.show(['lake'], [{ uid: 'a/b/1' }], second)
  const asked = await tocsin('accounts', 'discard', 'umbrella', ...config)
  expect(asked.err).toContain(
    '5 items, 0 dead letters and 1 quarantined item of umbrella will be given up and never sent. Its ledger is removed',
  )
  expect(asked.err).toContain('say --yes')
  expect(asked.code).toBe(2)
  await expectConservation(umbrella)

  const { code, out } = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(out).toBe(
    'discarded 5 items, 0 dead letters and 1 quarantined item of umbrella; its ledger is removed\n',
  )
  expect(code).toBe(0)
  expect(await keysOf(umbrella)).toEqual([])
  const names = (await readAccounts({ redis: ledger.redis, keys })).map(({ name }) => name)
  expect(names).toEqual(['main', 'second'])
  for (const other of [ledger, second]) {
    const { sinks } = await expectConservation(other)
    expect(sinks['lake']).toMatchObject({ created: 1, pending: { queued: 1 } })
  }
  const again = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(again.err).toContain('no account without configuration "umbrella"; there is none')
  expect(again.code).toBe(2)
})

test('an account that the file or a running daemon has is not discarded', async () => {
  const { config, keys, umbrella } = await aScene()
  const here = await tocsin('accounts', 'discard', 'main', '--yes', ...config)
  expect(here.err).toContain(
    'account "main" is configured; take accounts.main and its feeds out of the file and reload first',
  )
  expect(here.code).toBe(2)
  await noteConfigured({ redis: umbrella.redis, keys }, ['umbrella'])
  const there = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(there.err).toMatch(
    /a running daemon had account "umbrella" in its configuration \d s ago; reload it without the account/,
  )
  expect(there.code).toBe(1)
  const unknown = await tocsin('accounts', 'discard', 'umbrela', '--yes', ...config)
  expect(unknown.err).toContain(
    'no account without configuration "umbrela"; did you mean "umbrella"?',
  )
  const { sinks } = await expectConservation(umbrella)
  expect(sinks['lake']).toMatchObject({ created: 1, dead: 0 })
})

test('a message on its way is not cut off: nothing is removed, and the same command later ends it', async () => {
  const { config, umbrella } = await aScene()
  const [single = ''] = await refsOf(umbrella, 'lake')
  await beginAttempt(umbrella, single, 't', 30_000)
  const first = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(first.out).toBe(
    'discarded 4 items of umbrella; left 1 item in messages on their way just now\nnothing is removed yet: "tocsin accounts discard umbrella" again in a minute\n',
  )
  expect(first.code).toBe(1)
  const { sinks } = await expectConservation(umbrella)
  expect(sinks['oncall']).toMatchObject({ created: 2, dead: 2 })
  await settleAttempt(
    umbrella,
    { ref: single, token: 't', replica: 'r1' },
    { outcome: 'delivered' },
  )
  const { out, code } = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect([code, out]).toEqual([0, expect.stringContaining('its ledger is removed')])
  expect(await keysOf(umbrella)).toEqual([])
})

test('a discard that was broken off is seen, its rest is nobody’s, and the same command ends it', async () => {
  const { config, keys, umbrella } = await aScene()
  await noteDiscarding({ redis: umbrella.redis, keys }, 'umbrella', 'ann')
  await umbrella.redis.del(umbrella.key('mark-key'), umbrella.key('counters'))
  const listed = await tocsin('accounts', 'list', ...config)
  expect(listed.out).toMatch(
    /^umbrella +being discarded .*\n {2}warning {2}being discarded since .* by ann; end it: tocsin accounts discard umbrella$/m,
  )
  const sinks = await tocsin('sinks', 'list', '--output=json', ...config)
  expect(sinks.out).not.toContain('"queued"')
  const { code } = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(code).toBe(0)
  expect(await keysOf(umbrella)).toEqual([])
})

test('what others have in a message that the account leads is not lost with it, nor the windows of digests', async () => {
  const { config, keys, umbrella, ledger } = await aScene()
  const ledgers = [umbrella, ledger]
  await claimLead({ redis: ledger.redis, keys }, ledgers)
  const rig = await aDigestRig(tests, { keys, ledgers: ledgers })
  await rig.show(umbrella, { uid: 'a/b/20', severity: 'low' })
  await rig.show(ledger, { uid: 'a/b/21', severity: 'low' })
  rig.toMorning(1)
  const messages = await rig.seal()
  const [ref = ''] = messages.filter((one) => one.endsWith(':oncall'))
  expect((await readAccounting(ledger)).sinks['oncall']?.pending).toMatchObject({ batch: 1 })
  await beginAttempt(umbrella, ref, 't', 30_000)
  const busy = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(busy.out).toContain('in messages on their way just now')
  await stale(umbrella, ref)

  const { code } = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(code).toBe(0)
  expect(await keysOf(umbrella)).toEqual([])
  expect((await readAccounting(ledger)).sinks['oncall']?.pending).toMatchObject({ held: 1 })
  const released = await readRecord(ledger, ledger.fingerprints.recordId('a/b/21'))
  expect(released?.items.find(({ sink }) => sink === 'oncall')).toMatchObject({ repeatRisks: 1 })
  const audit = await tocsin('audit', '--ledger', ...config)
  expect([audit.code, audit.out]).toEqual([0, expect.not.stringContaining('stranded')])
  expect(await ledger.redis.get(keys.shared('lead'))).toBe('main')
  expect(await ledger.redis.zcard(ledger.key('timers'))).toBeGreaterThan(0)
})

/** As if the process that sends the message had died long ago. */
async function stale(ledger: AccountLedger, ref: string): Promise<void> {
  const name = ledger.key('batch', ref.split(':')[1] ?? '')
  const head = JSON.parse((await ledger.redis.get(name)) ?? '') as { at: number }
  await ledger.redis.set(name, JSON.stringify({ ...head, at: head.at - 120_000 }))
}
