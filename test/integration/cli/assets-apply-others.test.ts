/** `assets apply` where others have changed things by hand, or have a share in them; and how it says so. */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aMonitoringScene, type MonitoringScene } from './monitoring-scene.ts'

const tests = redisForTests()

const bank = `assets:
  bank:
    type: keyword
    data: { keyword: example bank }
    search_types: [leaks]
    policies: [p]
policies:
  p: { excluded_keywords: [careers] }
`

interface KnownState {
  assets: Record<string, { id: number; disabled: boolean }>
  policies: Record<string, { uuid: string }>
}

const stateOf = (scene: MonitoringScene): KnownState => scene.state() as unknown as KnownState

const loses =
  'whatever has it and is not of this file loses it, and the server does not tell what that is'

/** The state after a first run, and p assigned to 77 and 78 by hand. */
async function aSharedPolicy(
  options: { undescribed?: boolean } = {},
): Promise<{ scene: MonitoringScene; uuid: string; id: number }> {
  const scene = await aMonitoringScene(tests, bank, options)
  await scene.apply()
  scene.writes()
  const { assets, policies } = stateOf(scene)
  const { uuid } = policies['p']!
  scene.sandbox.monitoring.assignments.assign(uuid, [77, 78], true)
  return { scene, uuid, id: assets['bank']!.id }
}

/** Who has it, by the sandbox. */
function holders({ sandbox }: MonitoringScene, uuid: string): number[] {
  const all = sandbox.monitoring.assignments.all()
  return all.filter((one) => one.policyUuid === uuid).map((one) => one.identifierId)
}

describe('a policy that assets outside the file have', () => {
  test('is replaced with words where the server does not tell who has it', async () => {
    const { scene, uuid } = await aSharedPolicy()
    scene.write(bank.replace('[careers]', '[vacancy]'))
    expect((await scene.apply('--plan')).out).toContain(
      `- policy p (${uuid}): delete, its successor is there; ${loses}\n`,
    )
    expect((await scene.apply()).err).toBe(
      `1 policy deleted. Policy p: ${loses}. Nobody is there to ask; say --yes\n`,
    )
    const plan = JSON.parse((await scene.apply('--plan', '--output=json')).out) as {
      steps: object[]
    }
    expect(plan.steps.at(-1)).toMatchObject({ do: 'delete policy', losers: null })
  })

  test('goes over to its successor where the server tells, past events untouched', async () => {
    const { scene, uuid, id } = await aSharedPolicy({ undescribed: true })
    scene.write(
      `${bank.replace('excluded_keywords: [careers]', 'query: careers')}clean_past_events: true\n`,
    )
    const { out, code } = await scene.apply('--yes')
    expect(code).toBe(0)
    expect(out).toContain(
      '+ policy p: assign to 77, 78 too, not of this file, which have the one before it\n',
    )
    expect(out).toContain(`- policy p (${uuid}): delete, its successor is there\n`)
    expect(scene.writes()).toEqual([
      'POST /firework/v4/matching_policies',
      'POST /firework/v4/matching_policies/<uuid>/assignments',
      'POST /firework/v4/matching_policies/<uuid>/assignments',
      'DELETE /firework/v4/matching_policies/<uuid>',
    ])
    const bodies = scene.sandbox.requests.flatMap(({ path, method, body }) =>
      method === 'POST' && path.endsWith('/assignments') ? [body] : [],
    )
    expect(bodies.slice(-2)).toEqual([
      { identifier_ids: [id], clean_past_events: true },
      { identifier_ids: [77, 78], clean_past_events: false },
    ])
    const { uuid: successor } = stateOf(scene).policies['p']!
    expect(new Set(holders(scene, successor))).toEqual(new Set([77, 78, id]))
    expect((await scene.apply()).out).toBe('nothing to do\n')
  })

  test('is told with its name when it leaves the file, by whoever has it', async () => {
    const { scene, uuid } = await aSharedPolicy({ undescribed: true })
    scene.write(bank.replace(/ {4}policies: \[p\]\n[\s\S]*/, ''))
    expect((await scene.apply('--plan')).out).toContain(
      `- policy p (${uuid}): delete, it left the file; 77, 78, not of this file, lose it\n`,
    )
    expect((await scene.apply()).err).toContain('Policy p: 77, 78, not of this file, lose it.')
  })

  test('is changed in its place where the server can, and they are named', async () => {
    const { scene, uuid } = await aSharedPolicy({ undescribed: true })
    scene.write(bank.replace('[careers]', '[vacancy]'))
    expect((await scene.apply('--plan')).out).toContain(
      `~ policy p (${uuid}): update; it has changed in the file; 77, 78, not of this file, have it too\n`,
    )
    expect((await scene.apply('--yes')).code).toBe(0)
    expect(holders(scene, uuid)).toEqual(expect.arrayContaining([77, 78]))
  })

  test('has all of its many holders read, page by page', async () => {
    const identifiers = Array.from({ length: 60 }, (_, index) => ({
      id: 100 + index,
      name: `asset ${index}`,
    }))
    const groups = [{ id: 1042, name: 'Many', tenantId: 42, identifiers }]
    const scene = await aMonitoringScene(tests, bank, {
      groups,
      undescribed: true,
      endMode: 'echo',
    })
    await scene.apply()
    const { uuid } = stateOf(scene).policies['p']!
    const ids = identifiers.map(({ id }) => id)
    scene.sandbox.monitoring.assignments.assign(uuid, ids, false)
    scene.write(bank.replace('excluded_keywords: [careers]', 'query: careers'))
    expect((await scene.apply('--plan')).out).toMatch(/assign to (\d+, ){19}\d+ and 40 more too, /)
    expect((await scene.apply('--yes')).code).toBe(0)
    const { uuid: successor } = stateOf(scene).policies['p']!
    expect(holders(scene, successor)).toHaveLength(61)
  })
})

describe('an asset that others have disabled, of which the file does not say whether it is enabled', () => {
  async function aDisabledAsset(): Promise<{ scene: MonitoringScene; id: number }> {
    const scene = await aMonitoringScene(tests, bank)
    await scene.apply()
    const state = stateOf(scene)
    const { id } = state.assets['bank']!
    scene.sandbox.monitoring.assets.change(id, { isDisabled: true })
    // as an answer has shown it since
    state.assets['bank']!.disabled = true
    writeFileSync(scene.statePath, JSON.stringify(state))
    scene.writes()
    return { scene, id }
  }

  test('stays disabled, through a replacement too', async () => {
    const { scene, id } = await aDisabledAsset()
    scene.write(bank.replace('    type:', '    name: Example Bank\n    type:'))
    const { code, out } = await scene.apply('--yes')
    expect(code).toBe(0)
    expect(out).toContain(
      `asset bank (${id}) is disabled, and not by this file: left as it is; "enabled: true" enables it\n`,
    )
    expect(scene.writes()).toEqual([`PUT /firework/v2/assets/${id}`])
    expect(scene.sandbox.monitoring.assets.get(id)).toMatchObject({
      name: 'Example Bank',
      isDisabled: true,
    })
  })

  test('is enabled as soon as the file says so', async () => {
    const { scene, id } = await aDisabledAsset()
    scene.write(bank.replace('    type:', '    enabled: true\n    type:'))
    await scene.apply('--yes')
    expect(scene.writes()).toEqual([`POST /firework/v2/assets/${id}/toggle`])
    expect(scene.sandbox.monitoring.assets.get(id)).toMatchObject({ isDisabled: false })
  })
})

test('what the file has disabled is enabled when the file no longer says so', async () => {
  const disabled = bank.replace('    type:', '    enabled: false\n    type:')
  const scene = await aMonitoringScene(tests, disabled)
  await scene.apply()
  const { id } = stateOf(scene).assets['bank']!
  expect(scene.sandbox.monitoring.assets.get(id)).toMatchObject({ isDisabled: true })
  scene.write(bank)
  expect((await scene.apply()).out).toContain(`+ asset bank (${id}): enable\n`)
  expect(scene.sandbox.monitoring.assets.get(id)).toMatchObject({ isDisabled: false })
})

test('names that every object knows are names like any other', async () => {
  const named = bank.replaceAll('bank:', 'constructor:').replace('[p]', '[constructor]')
  const scene = await aMonitoringScene(tests, named.replace('  p:', '  constructor:'))
  expect((await scene.apply()).out).toContain('+ asset constructor: create, type keyword\n')
  expect((await scene.apply()).out).toBe('nothing to do\n')
  expect((await scene.apply('--create-again=constructor')).code).toBe(2)
})

describe('the words', () => {
  test('of a mistake name the file', async () => {
    const scene = await aMonitoringScene(tests, bank.replace('type: keyword', 'type: word'))
    const { code, err } = await scene.apply()
    expect(code).toBe(2)
    expect(err).toMatch(/^monitoring\.yaml has 1 mistake:\n {2}\/\S+monitoring\.yaml:3:5 assets\./)
    expect(err).not.toContain('configuration')
  })

  test('of a mistake name standard input', async () => {
    const scene = await aMonitoringScene(tests, bank)
    const wrong = bank.replace('[p]', '[q]')
    const { code, err } = await scene.applyGiven(wrong, `--state=${scene.statePath}`)
    expect({ code, err }).toEqual({
      code: 2,
      err: 'standard input has 1 mistake:\n  standard input:6:16 assets.bank.policies[0]: no such policy; did you mean "p"?\n',
    })
  })

  test.each([
    [{ effect: 'status', status: 500 }, 'the service'],
    [{ effect: 'lose-answer' }, 'the connection broke'],
    [{ effect: 'wrong-shape' }, 'the answer has not the shape'],
  ] as const)('of any failure name what it was about: %j', async (fault, said) => {
    const scene = await aMonitoringScene(tests, bank)
    await scene.apply()
    scene.write(bank.replace('[leaks]', '[paste]'))
    scene.sandbox.faults.add({ on: '/firework/v2/assets/*', ...fault })
    const { code, err } = await scene.apply('--yes')
    expect(code).toBe(1)
    expect(err).toMatch(new RegExp(`^asset bank: ${said}`, 'm'))
  })
})

test('a file on standard input is applied, and its state is named', async () => {
  const scene = await aMonitoringScene(tests, '')
  expect(await scene.applyGiven(bank)).toEqual({
    code: 2,
    out: '',
    err: 'standard input has no place for its state; name the file of earlier runs with --state\n',
  })
  const state = join(dirname(scene.file), 'elsewhere.json')
  expect((await scene.applyGiven(bank, `--state=${state}`)).code).toBe(0)
  expect((await scene.applyGiven(bank, `--state=${state}`)).out).toBe('nothing to do\n')
  expect(readFileSync(state, 'utf8')).toContain('"bank"')
})
