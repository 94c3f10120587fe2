/** `assets apply`, killed at any of its writes and run again: all is there once, and no policy lapses. */
import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { redisForTests } from '../support/ledger.ts'
import {
  aMonitoringScene,
  configText,
  type MonitoringScene,
} from '../integration/cli/monitoring-scene.ts'
import { startTocsin, tocsin, type Ended } from '../integration/cli/tocsin.ts'
import { startWriteGate, type Moment, type WriteGate } from '../integration/cli/write-gate.ts'

const tests = redisForTests()

const before = `assets:
  bank: { type: keyword, data: { keyword: bank }, search_types: [leaks], policies: [jobs, dumps] }
  old: { type: keyword, data: { keyword: old }, search_types: [leaks], policies: [dumps] }
policies:
  jobs: { excluded_keywords: [careers] }
  dumps: { included_keywords: [dump] }
`
/** One asset is new and one replaced, one left; one policy is new and one replaced. */
const after = `assets:
  bank: { type: keyword, data: { keyword: bank }, search_types: [paste], policies: [jobs, dumps] }
  shop: { type: domain, data: { fqdn: shop.example }, search_types: [leaks, ads], policies: [jobs, logins] }
policies:
  jobs: { excluded_keywords: [careers, vacancy] }
  dumps: { included_keywords: [dump] }
  logins: { cookies: [session] }
`
const writesOfAfter = 8

interface Killable {
  scene: MonitoringScene
  gate: WriteGate
  args: string[]
}

async function aKillableScene(): Promise<Killable> {
  const scene = await aMonitoringScene(tests, before)
  const gate = await startWriteGate(scene.sandbox.url)
  writeFileSync(scene.config[1], configText(gate.url, tests.server.url))
  const args = ['assets', 'apply', '--yes', '-f', scene.file, ...scene.config]
  return { scene, gate, args }
}

/** What an operator does with a doubt: looks at the service, and says what is there. */
async function runToItsEnd({ scene, args }: Killable): Promise<Ended> {
  const ended = await tocsin(...args)
  const [, kind, name] = /^(asset|policy) (\S+): its creation was sent at/m.exec(ended.err) ?? []
  if (kind === undefined || name === undefined) return ended
  const made = madeUnknown(scene, kind)
  const doubt = made === undefined ? ['--create-again', name] : ['--adopt', `${name}=${made}`]
  return tocsin(...args, ...doubt)
}

/** The id of what the sandbox has and the state does not know. */
function madeUnknown(scene: MonitoringScene, kind: string): string | undefined {
  const { assets, policies } = scene.sandbox.monitoring
  const known = JSON.stringify(scene.state())
  const all =
    kind === 'asset'
      ? assets.all().filter(({ id }) => id >= 5000 && !standing.has(id))
      : policies.all().map(({ uuid }) => ({ id: uuid }))
  return all.map(({ id }) => String(id)).find((id) => !new RegExp(`[": ]${id}\\b`).test(known))
}

/** Of the sandbox from its start. */
const standing = new Set([77, 78, 91, 92, 406_285_232_303])

function own({ sandbox }: MonitoringScene): { name: string; isDisabled: boolean; id: number }[] {
  return sandbox.monitoring.assets.all().filter(({ id }) => !standing.has(id))
}

function policiesOf({ sandbox }: MonitoringScene, id: number): string[] {
  const { policies, assignments } = sandbox.monitoring
  return assignments.ofIdentifier(id).map(({ policyUuid }) => policies.get(policyUuid)!.name)
}

const cases = Array.from({ length: writesOfAfter }, (_, write) => write).flatMap(
  (write): [number, Moment][] => [
    [write, 'before'],
    [write, 'after'],
  ],
)

test.each(cases)('at write %i, %s it is done', { timeout: 30_000 }, async (write, moment) => {
  const killable = await aKillableScene()
  const { scene, gate, args } = killable
  expect((await tocsin(...args)).code).toBe(0)
  const { id: bank } = own(scene).find(({ name }) => name === 'bank')!
  const had: string[][] = []
  gate.onWritten(() => void had.push([...new Set(policiesOf(scene, bank))].toSorted()))
  scene.write(after)

  const running = startTocsin(...args)
  await gate.stopAt(write, moment, () => running.child.kill('SIGKILL'))
  expect((await running.ended).code).toBeNull()

  expect(await runToItsEnd(killable)).toMatchObject({ code: 0, err: '' })
  expect(await tocsin(...args)).toEqual({ code: 0, out: 'nothing to do\n', err: '' })
  const assets = own(scene).map(({ name, isDisabled }) => `${name} ${isDisabled ? 'off' : 'on'}`)
  expect(assets.toSorted()).toEqual(['bank on', 'old off', 'shop on'])
  const names = scene.sandbox.monitoring.policies.all().map(({ name }) => name)
  expect(names.toSorted()).toEqual(['dumps', 'jobs', 'logins'])
  const { id: shop } = own(scene).find(({ name }) => name === 'shop')!
  expect(policiesOf(scene, bank).toSorted()).toEqual(['dumps', 'jobs'])
  expect(policiesOf(scene, shop).toSorted()).toEqual(['jobs', 'logins'])
  expect(new Set(had.map(String))).toEqual(new Set(['dumps,jobs']))
})

test('there are no more writes than are tried', async () => {
  const { scene, args } = await aKillableScene()
  await tocsin(...args)
  scene.write(after)
  scene.writes()
  await tocsin(...args)
  expect(scene.writes()).toHaveLength(writesOfAfter)
})
