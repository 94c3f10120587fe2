/** `assets apply` where others have changed things by hand, or have a share in them; and how it says so. */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import type { SandboxAsset } from '../../../src/sandbox/monitoring/store.ts'
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

const site = `assets:
  site: { type: domain, data: { fqdn: example.com }, search_types: [leaks] }`

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
    const { id } = stateOf(scene).assets['bank']!
    scene.sandbox.monitoring.assets.change(id, { isDisabled: true })
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
    expect((await scene.apply('--yes')).out).toContain(
      `+ asset bank (${id}): enable; somebody has disabled it\n`,
    )
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

test('what the file has disabled, and somebody enabled since, is theirs to switch when the file is silent', async () => {
  const disabled = bank.replace('    type:', '    enabled: false\n    type:')
  const scene = await aMonitoringScene(tests, disabled)
  await scene.apply()
  const { id } = stateOf(scene).assets['bank']!
  scene.sandbox.monitoring.assets.change(id, { isDisabled: false })
  expect((await scene.apply('--plan')).out).toContain('disable; somebody has enabled it\n')
  scene.write(bank)
  expect((await scene.apply()).out).toBe('nothing to do\n')
  scene.sandbox.monitoring.assets.change(id, { isDisabled: true })
  expect((await scene.apply()).out).toContain('is disabled, and not by this file: left as it is')
})

test('names that every object knows are names like any other', async () => {
  const named = bank.replaceAll('bank:', 'constructor:').replace('[p]', '[constructor]')
  const scene = await aMonitoringScene(tests, named.replace('  p:', '  constructor:'))
  expect((await scene.apply()).out).toContain('+ asset constructor: create, type keyword\n')
  expect((await scene.apply()).out).toBe('nothing to do\n')
  expect((await scene.apply('--create-again=constructor')).code).toBe(2)
})

describe('an asset that others have changed', () => {
  const wide = bank.replace('    policies:', '    risks: [3, 4, 5]\n    policies:')

  async function aChangedAsset(
    change: Partial<SandboxAsset>,
  ): Promise<{ scene: MonitoringScene; id: number }> {
    const scene = await aMonitoringScene(tests, wide)
    await scene.apply()
    const { id } = stateOf(scene).assets['bank']!
    scene.sandbox.monitoring.assets.change(id, change)
    scene.writes()
    return { scene, id }
  }

  test('is shown field by field, and put right with what the file does not speak of as it is', async () => {
    const { scene, id } = await aChangedAsset({
      name: 'theirs\u001B[31m',
      risks: [1],
      searchTypes: [],
      data: { keyword: 'hush' },
      experimentalSearchTypes: ['new'],
    })
    const line = `~ asset bank (${id}): replace, for name, data, search_types, risks; somebody has changed name to "theirs`
    const { out } = await scene.apply('--plan')
    expect(out.replace(/theirs[^"]*/, 'theirs')).toContain(
      `${line}", data, search_types to nothing, risks to 1\n`,
    )
    expect(out).not.toContain('\u001B[31m')
    expect(out).not.toContain('hush')
    const json = JSON.parse((await scene.apply('--plan', '--output=json')).out) as object
    const fields = ['name', 'data', 'search_types', 'risks']
    expect(json).toMatchObject({ steps: [{ do: 'replace asset', fields, drifted: fields }] })
    expect((await scene.apply()).err).toBe('1 asset replaced. Nobody is there to ask; say --yes\n')
    expect(scene.writes()).toEqual([])

    expect((await scene.apply('--yes')).code).toBe(0)
    expect(scene.sandbox.monitoring.assets.get(id)).toMatchObject({
      name: 'bank',
      risks: [3, 4, 5],
      searchTypes: ['leaks'],
      data: { keyword: 'example bank' },
      experimentalSearchTypes: ['new'],
    })
    expect((await scene.apply()).out).toBe('nothing to do\n')
  })

  test('is put right by the next run where the first was refused', async () => {
    const { scene, id } = await aChangedAsset({ risks: [1] })
    const clear = scene.sandbox.faults.add({
      on: '/firework/v2/assets/*',
      method: 'PUT',
      effect: 'status',
      status: 403,
    })
    expect((await scene.apply('--yes')).code).toBe(1)
    clear()
    const { out } = await scene.apply('--yes')
    expect(out).toContain('replace, for risks; somebody has changed risks to 1\n')
    expect(scene.sandbox.monitoring.assets.get(id)).toMatchObject({ risks: [3, 4, 5] })
  })

  test('to what the file says by now is left as it is', async () => {
    const { scene } = await aChangedAsset({ risks: [1] })
    scene.write(wide.replace('[3, 4, 5]', '[1]'))
    expect((await scene.apply()).out).toBe('nothing to do\n')
    expect(scene.writes()).toEqual([])
  })

  test.each([
    ['405', 405],
    ['403', 403],
  ])('is overwritten with words where the server shows none: %s', async (_title, status) => {
    const { scene, id } = await aChangedAsset({ name: 'theirs', experimentalSearchTypes: ['new'] })
    scene.sandbox.faults.add({
      on: '/firework/v2/assets/*',
      method: 'GET',
      effect: 'status',
      status,
    })
    expect((await scene.apply()).out).toBe('nothing to do\n')
    scene.write(wide.replace('[3, 4, 5]', '[5]'))
    const { out, err } = await scene.apply()
    expect(out).toContain(
      `~ asset bank (${id}): replace, for risks; the rest of it, whether it is enabled too, goes back to how the last run saw it\n`,
    )
    expect(err).toContain('1 asset replaced (what others changed is undone). ')
  })

  test('is known to be so from a state of an earlier version, all but its data', async () => {
    const { scene } = await aChangedAsset({ risks: [1], data: { keyword: 'changed before' } })
    const state = scene.state() as { assets: { bank: { returned: Record<string, unknown> } } }
    delete state.assets.bank.returned['data']
    writeFileSync(scene.statePath, JSON.stringify(state))
    expect((await scene.apply('--yes')).out).toContain(
      'replace, for risks; somebody has changed risks to 1\n',
    )
    expect((await scene.apply()).out).toBe('nothing to do\n')
  })
})

test('what the service makes of a value is no change of others', async () => {
  const identity = `assets:
  ada: { type: identity, data: { attributes: [{ type: email, email: ada@example.com }] }, search_types: [leaks] }
`
  const scene = await aMonitoringScene(tests, identity)
  await scene.apply()
  scene.writes()
  expect((await scene.apply()).out).toBe('nothing to do\n')
  expect(scene.writes()).toEqual([])
})

test('an asset that left the file, was disabled and enabled by hand, is disabled once more', async () => {
  const scene = await aMonitoringScene(tests, bank)
  await scene.apply()
  const { id } = stateOf(scene).assets['bank']!
  scene.write('policies:\n  p: { excluded_keywords: [careers] }\n')
  await scene.apply('--yes')
  scene.sandbox.monitoring.assets.change(id, { isDisabled: false })
  expect((await scene.apply('--yes')).out).toContain(
    `- asset bank (${id}): disable; it left the file, and somebody has enabled it\n`,
  )
  expect(scene.sandbox.monitoring.assets.get(id)).toMatchObject({ isDisabled: true })
})

test.each([
  ['left the file', 'policies:\n  p: { excluded_keywords: [careers] }\n'],
  ['is to be disabled', bank.replace('    type:', '    enabled: false\n    type:')],
])(
  'an asset that %s, and whose switching had no answer, is enabled as it comes back',
  async (_title, file) => {
    const scene = await aMonitoringScene(tests, bank)
    await scene.apply()
    const { id } = stateOf(scene).assets['bank']!
    scene.write(file)
    const on = '/firework/v2/assets/*/toggle'
    scene.sandbox.faults.add({ on, effect: 'lose-answer', times: 1 })
    expect((await scene.apply('--yes')).code).toBe(1)
    expect(scene.sandbox.monitoring.assets.get(id)).toMatchObject({ isDisabled: true })
    expect((await scene.apply('--yes')).out).toBe('nothing to do\n')
    scene.write(bank)
    expect((await scene.apply()).out).toBe(`+ asset bank (${id}): enable\ndone: 1 step\n`)
    expect(scene.sandbox.monitoring.assets.get(id)).toMatchObject({ isDisabled: false })
  },
)

describe('an asset that others have deleted', () => {
  async function aDeletedAsset(): Promise<{ scene: MonitoringScene; id: number }> {
    const scene = await aMonitoringScene(tests, bank)
    await scene.apply()
    const { id } = stateOf(scene).assets['bank']!
    scene.sandbox.monitoring.assets.delete(id)
    scene.sandbox.monitoring.assignments.forgetIdentifier(id)
    scene.writes()
    return { scene, id }
  }

  test('stops the run, and is created anew with its policies only when told so', async () => {
    const { scene, id } = await aDeletedAsset()
    expect(await scene.apply('--yes')).toEqual({
      code: 1,
      out: '',
      err:
        `the service no longer has asset bank (${id}): is it the right tenant, and the state not older than the service? ` +
        'If one is there under another id, say --adopt bank=<id>. To create anew, say --create-again bank\n',
    })
    expect(scene.writes()).toEqual([])
    const again = await scene.apply('--create-again=bank')
    expect(again.out).toContain('+ asset bank: create, type keyword\n+ policy p: assign to bank\n')
    const { id: next } = stateOf(scene).assets['bank']!
    expect(scene.sandbox.monitoring.assets.get(next)).toMatchObject({ name: 'bank' })
    expect(holders(scene, stateOf(scene).policies['p']!.uuid)).toEqual([next])
    expect((await scene.apply()).out).toBe('nothing to do\n')
  })

  test('and that was made again is not made twice from an older state', async () => {
    const { scene } = await aDeletedAsset()
    const older = readFileSync(scene.statePath, 'utf8')
    await scene.apply('--create-again=bank')
    const { id: next } = stateOf(scene).assets['bank']!
    writeFileSync(scene.statePath, older)
    scene.writes()
    expect((await scene.apply('--yes')).code).toBe(1)
    expect((await scene.apply('--yes', `--adopt=bank=${next}`)).out).toBe(
      `asset bank: ${next} is "bank", of type keyword\nnothing to do\n`,
    )
    expect(scene.writes()).toEqual([])
  })
})

describe('a server that answers 404 to whoever asks for an asset', () => {
  const two = bank.replace('assets:\n', `${site}\n`)

  async function aSceneWithout(
    on: string,
    fault: { body?: 'text'; message: string },
  ): Promise<MonitoringScene> {
    const scene = await aMonitoringScene(tests, two)
    await scene.apply()
    expect(stateOf(scene).assets['site']!.id).toBe(5001)
    scene.sandbox.faults.add({ on, method: 'GET', effect: 'status', status: 404, ...fault })
    scene.writes()
    return scene
  }

  test('in the words of an unknown path, and shows none, has all that its policies speak of', async () => {
    const unknownPath = { body: 'text', message: 'Not Found' } as const
    const scene = await aSceneWithout('/firework/v2/assets/*', unknownPath)
    expect((await scene.apply('--yes')).out).toBe('nothing to do\n')
  })

  test.each([
    ['of its own', { message: 'no page for you' }],
    ['of an unknown path', { body: 'text', message: 'Not Found' }],
  ] as const)('in words %s, and shows another one, has it no longer', async (_title, words) => {
    const scene = await aSceneWithout('/firework/v2/assets/5001', words)
    expect((await scene.apply('--yes')).err).toContain('no longer has asset site (5001): ')
    expect(scene.writes()).toEqual([])
  })

  test('in words of its own, and shows none, leaves it open: nothing is made unasked', async () => {
    const scene = await aSceneWithout('/firework/v2/assets/*', { message: 'no page for you' })
    const { id } = stateOf(scene).assets['bank']!
    const note = (name: string, known: number): string =>
      `asset ${name} (${known}) may be gone: the service answers 404 to whoever asks for it, and shows no other; if it is, say --create-again ${name}\n`
    expect((await scene.apply('--yes')).out).toBe(
      `${note('site', 5001)}${note('bank', id)}nothing to do\n`,
    )
    expect(scene.writes()).toEqual([])
    expect((await scene.apply('--plan', '--create-again=site')).out).toContain(
      '+ asset site: create, type domain\n',
    )
    expect((await scene.apply('--plan', '--adopt=site=77')).out).toContain('to see what 77 is')
  })
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
    [{ method: 'PUT', effect: 'status', status: 500 }, 'bank: the service'],
    [{ method: 'PUT', effect: 'lose-answer' }, 'bank: the connection broke'],
    [{ method: 'PUT', effect: 'wrong-shape' }, 'bank: the answer has not the shape'],
    [{ method: 'GET', effect: 'status', status: 500 }, String.raw`bank \(5001\): the service`],
  ] as const)('of any failure name what it was about: %j', async (fault, said) => {
    const scene = await aMonitoringScene(tests, bank)
    await scene.apply()
    scene.write(bank.replace('[leaks]', '[paste]'))
    scene.sandbox.faults.add({ on: '/firework/v2/assets/*', ...fault })
    const { code, err } = await scene.apply('--yes')
    expect(code).toBe(1)
    expect(err).toMatch(new RegExp(`^asset ${said}`, 'm'))
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
