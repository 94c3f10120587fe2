/** `accounts discard` against a ledger that the daemon's own scripts filled. */
import { expect, test } from 'vitest'
import { type AccountLedger, claimLead } from '../../../src/store/account-ledger.ts'
import { noteConfigured, noteDiscarding, readAccounts } from '../../../src/store/accounts.ts'
import { beginAttempt, settleAttempt } from '../../support/attempts.ts'
import { aDigestRig } from '../../support/digest-rig.ts'
import { expectConservation, redisForTests, takeIn } from '../../support/ledger.ts'
import { aSocScene, type SocScene } from './soc-scene.ts'
import { tocsin } from './tocsin.ts'

const tests = redisForTests()

interface Scene extends SocScene {
  umbrella: AccountLedger
}

/** Besides the accounts of the configuration one that left: an item waits, another is quarantined. */
async function aScene(): Promise<Scene> {
  const scene = await aSocScene(tests)
  const umbrella = await tests.ledger({ keys: scene.keys, account: 'umbrella' })
  await scene.show(['lake'], [{ uid: 'a/b/1' }], umbrella)
  await takeIn(umbrella, [], { malformed: [{ uid: 'a/b/9', problem: 'not an event', raw: '{}' }] })
  return { ...scene, umbrella }
}

/** Ends what waits for the account that left. */
async function deadLetter(umbrella: AccountLedger): Promise<void> {
  const [ref = ''] = await umbrella.redis.zrange(umbrella.key('due', 'lake'), '0', '-1')
  await beginAttempt(umbrella, ref, 't', 30_000)
  const attempt = { ref, token: 't', replica: 'r1' }
  await settleAttempt(umbrella, attempt, { outcome: 'dead', reason: 'invalid' })
}

const keysOf = (ledger: AccountLedger): Promise<string[]> => ledger.redis.keys(`${ledger.key()}*`)

test('discard refuses an account while items wait, then removes its ledger, and no other’s', async () => {
  const scene = await aScene()
  const { config, keys, umbrella, ledger } = scene
  await scene.show(['lake'], [{ uid: 'a/b/1' }], ledger)
  const early = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(early.err).toContain('1 item of umbrella still wait; first: tocsin items discard')
  expect(early.code).toBe(1)
  expect((await expectConservation(umbrella)).sinks['lake']).toMatchObject({
    pending: { queued: 1 },
  })

  await deadLetter(umbrella)
  const asked = await tocsin('accounts', 'discard', 'umbrella', ...config)
  expect(asked.err).toContain('1 dead letter and 1 quarantined item of umbrella will be gone')
  expect(asked.code).toBe(2)
  const { code } = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(code).toBe(0)
  expect(await keysOf(umbrella)).toEqual([])
  const names = (await readAccounts({ redis: ledger.redis, keys })).map(({ name }) => name)
  expect(names).toEqual(['main', 'second'])
  const { sinks } = await expectConservation(ledger)
  expect(sinks['lake']).toMatchObject({ created: 1, pending: { queued: 1 } })
})

test('an account that a running daemon has is not discarded', async () => {
  const { config, keys, umbrella } = await aScene()
  await noteConfigured({ redis: umbrella.redis, keys }, ['umbrella'])
  const there = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(there.err).toContain('a running daemon had account "umbrella" in its configuration')
  expect(there.code).toBe(1)
  const { sinks } = await expectConservation(umbrella)
  expect(sinks['lake']).toMatchObject({ created: 1, dead: 0 })
})

test('a discard that was broken off is seen, its rest is nobody’s, and the same command ends it', async () => {
  const { config, keys, umbrella } = await aScene()
  const store = { redis: umbrella.redis, keys }
  await noteDiscarding(store, 'umbrella', 'ann')
  const name = keys.shared('accounts')
  const note = (await umbrella.redis.hget(name, 'umbrella|discarding'))!
  const removing = JSON.stringify({ ...(JSON.parse(note) as object), isRemoving: true })
  await umbrella.redis.hset(name, 'umbrella|discarding', removing)
  await umbrella.redis.del(umbrella.key('records')) // some of its keys are gone
  const listed = await tocsin('accounts', 'list', ...config)
  expect(listed.out).toMatch(/^umbrella +being discarded .*\n {2}warning {2}.* by ann; end it/m)
  const sinks = await tocsin('sinks', 'list', '--output=json', ...config)
  expect(sinks.out).not.toContain('"queued"')
  const { code } = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(code).toBe(0)
  expect(await keysOf(umbrella)).toEqual([])
})

test('an account that leads a message of others stays until that is settled; its windows of digests move', async () => {
  const { config, keys, umbrella, ledger } = await aScene()
  const ledgers = [umbrella, ledger]
  await claimLead({ redis: ledger.redis, keys }, ledgers)
  const rig = await aDigestRig(tests, { keys, ledgers })
  await rig.show(ledger, { uid: 'a/b/21', severity: 'low' })
  rig.toMorning(1)
  const [ref = ''] = (await rig.seal()).filter((one) => one.endsWith(':oncall'))
  await deadLetter(umbrella)
  const early = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(early.err).toContain('a message with items of other accounts is on its way')
  expect(early.code).toBe(1)

  await rig.deliver(ref)
  const { code } = await tocsin('accounts', 'discard', 'umbrella', '--yes', ...config)
  expect(code).toBe(0)
  expect(await keysOf(umbrella)).toEqual([])
  expect((await expectConservation(ledger)).sinks['oncall']).toMatchObject({ delivered: 1 })
  expect(await ledger.redis.get(keys.shared('lead'))).toBe('main')
  expect(await ledger.redis.zcard(ledger.key('timers'))).toBeGreaterThan(0)
})
