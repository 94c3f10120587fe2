/** `monitoring plan` and `apply` over HTTP: what they send, print and refuse. */
import { expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aMonitoringScene, type MonitoringScene } from './monitoring-scene.ts'

const tests = redisForTests()

const two = `assets:
  brand:
    name: Acme Bank
    type: keyword
    data: { keyword: acme bank }
    search_types: [leaks, paste]
    risks: [3, 4, 5]
    policies: [no-jobs]
  site:
    type: domain
    data: { fqdn: acme.example }
    search_types: [leaks]
    policies: [no-jobs, logins]
policies:
  no-jobs: { excluded_keywords: [careers] }
  logins: { cookies: [session] }
`

const nothing = expect.stringMatching(/^nothing to do\n/)

function named({ sandbox }: MonitoringScene, name: string) {
  return sandbox.monitoring.assets.all().find((asset) => asset.name === name)
}

test('a first run creates and assigns all, and a second finds nothing to do', async () => {
  const scene = await aMonitoringScene(tests, two)
  expect(await scene.apply()).toMatchObject({ code: 0, err: '' })
  const stored = { data: { keyword: 'acme bank' }, risks: [3, 4, 5], isDisabled: false }
  expect(named(scene, 'Acme Bank')).toMatchObject(stored)
  expect(scene.policiesOf('Acme Bank')).toEqual(['no-jobs'])
  expect(scene.policiesOf('site')).toEqual(['logins', 'no-jobs'])
  scene.writes()
  expect(await scene.apply('--yes')).toEqual({ code: 0, out: nothing, err: '' })
  expect(scene.writes()).toEqual([])
})

const ofOtherTypes = `assets:
  bob: { type: email, data: { email: Bob@acme.example }, search_types: [leak], enabled: false }
  ann: { type: identity, data: { attributes: [{ type: email, email: ann@acme.example }] }, search_types: [leak] }
`

test('a disabled asset, and one whose data is not shown, are found again', async () => {
  const scene = await aMonitoringScene(tests, ofOtherTypes)
  expect(await scene.apply()).toMatchObject({ code: 0, err: '' })
  expect(named(scene, 'bob')).toMatchObject({ isDisabled: true })
  expect((await scene.apply()).out).toEqual(nothing)
})

test('more assets than a page holds are all found', async () => {
  const many = Array.from(
    { length: 130 },
    (_, n) => `  k${n}: { type: keyword, data: { keyword: k${n} }, search_types: [leak] }\n`,
  )
  const scene = await aMonitoringScene(tests, `assets:\n${many.join('')}`, {
    groups: [
      {
        id: 1042,
        name: 'g',
        tenantId: 42,
        identifiers: Array.from({ length: 130 }, (_, n) => ({ id: 9000 + n, name: `k${n}` })),
      },
    ],
  })
  const steps = JSON.parse((await scene.plan('--output=json')).out) as { steps: { do: string }[] }
  expect(new Set(steps.steps.map((step) => step.do))).toEqual(new Set(['replace asset']))
})

test('a replacement, a toggle, a change of a policy and of who has it', async () => {
  const scene = await aMonitoringScene(tests, two)
  await scene.apply()
  const { id } = named(scene, 'Acme Bank')!
  scene.sandbox.monitoring.assets.change(id, { others: { of_a_later_version: 1 } })
  scene.writes()
  scene.write(
    two
      .replace('risks: [3, 4, 5]', 'risks: [5]\n    enabled: false')
      .replace('[careers]', '[vacancy]')
      .replace('[no-jobs, logins]', '[logins]'),
  )
  expect((await scene.apply()).code).toBe(2)
  expect((await scene.applyTyping('n')).code).toBe(1)
  expect(scene.writes()).toEqual([])
  expect((await scene.applyTyping('y')).code).toBe(0)
  expect(scene.writes()).toEqual([
    'PUT /firework/v4/matching-policies/<uuid>',
    `POST /firework/v2/assets/${id}/toggle`,
    `PUT /firework/v2/assets/${id}`,
    'DELETE /firework/v4/matching-policies/<uuid>/assignments',
  ])
  expect(named(scene, 'Acme Bank')).toMatchObject({
    risks: [5],
    isDisabled: true,
    groupId: 1042,
    data: { keyword: 'acme bank' },
    others: { of_a_later_version: 1 },
  })
  expect(scene.policiesOf('site')).toEqual(['logins'])
  expect((await scene.apply()).out).toEqual(nothing)
})

test('two assets of one type and name are refused', async () => {
  const scene = await aMonitoringScene(tests, two)
  await scene.apply()
  const { id: _id, ...made } = named(scene, 'Acme Bank')!
  scene.sandbox.monitoring.assets.create(made.tenantId, made)
  const { code, err } = await scene.apply()
  expect(code).toBe(2)
  expect(err).toContain('assets.brand: the service has 2 of this type and name')
})

/** Of the changed file: one asset and one policy are new, one of each changed. */
const changed =
  `${two.slice(0, two.indexOf('policies:\n  no'))}  shop: { type: keyword, data: { keyword: shop }, search_types: [leak], policies: [dumps] }
policies:
  no-jobs: { excluded_keywords: [vacancy] }
  logins: { cookies: [session] }
  dumps: { included_keywords: [dump] }
`.replace('paste', 'leak')

test.each([
  ['lose-answer', '/firework/v2/assets/', '+ create asset shop'],
  ['lose-answer', '/firework/v4/matching-policies', '+ create policy dumps'],
  ['status', '/firework/v4/*/assignments', '+ assign policy dumps'],
] as const)(
  'after %s for a POST to %s the run stops, and the next one ends what is left',
  async (effect, on, line) => {
    const scene = await aMonitoringScene(tests, two)
    await scene.apply()
    scene.write(changed)
    scene.sandbox.faults.add({ on, method: 'POST', effect, status: 403, times: 1 })
    const stopped = await scene.apply('--yes', '--prune')
    expect(stopped.code).toBe(1)
    expect(stopped.err).toContain(`steps done; stopped at: ${line}`)
    expect(stopped.err.includes('it may have been done')).toBe(effect === 'lose-answer')

    expect((await scene.apply('--yes', '--prune')).code).toBe(0)
    expect((await scene.plan('--prune')).out).toBe('nothing to do\n')
    const { assets, policies } = scene.sandbox.monitoring
    const own = assets.all().filter(({ tenantId }) => tenantId === 42)
    expect(own.map(({ name }) => name).toSorted()).toEqual(['Acme Bank', 'shop', 'site'])
    const names = policies.all().map(({ name }) => name)
    expect(names.toSorted()).toEqual(['dumps', 'logins', 'no-jobs'])
    expect(scene.policiesOf('shop')).toEqual(['dumps'])
  },
)

test.each([404, 500])('a list of assets that fails is no empty one: %i', async (status) => {
  const scene = await aMonitoringScene(tests, two)
  const on = '/firework/*/identifiers/'
  scene.sandbox.faults.add({ on, method: 'GET', effect: 'status', status })
  expect((await scene.apply('--yes')).code).toBe(1)
  expect(scene.writes()).toEqual([])
})

test('a secret is not printed, and is compared by type and name only', async () => {
  const secret = 'correct-horse-battery'
  const text = `assets:\n  key: { name: ${secret}, type: secret, data: { secret: ${secret} }, search_types: [leaks] }\n`
  const scene = await aMonitoringScene(tests, text)
  const first = await scene.apply()
  scene.write(text.replace(`secret: ${secret}`, 'secret: another-one'))
  const second = await scene.apply('--output=json')
  expect(JSON.parse(second.out)).toMatchObject({ steps: [] })
  scene.write(text.replaceAll(secret, 'another-one'))
  const third = await scene.plan('--prune')
  const fourth = await scene.plan('--prune', '--output=json')
  expect(third.out).toMatch(/^- delete asset \d+: secret "secret"$/m)
  for (const { out, err } of [first, second, third, fourth]) expect(out + err).not.toContain(secret)
})

test('clean_past_events goes with an assignment, and is asked about', async () => {
  const scene = await aMonitoringScene(tests, `${two}clean_past_events: true\n`)
  expect((await scene.apply()).code).toBe(2)
  await scene.apply('--yes')
  const bodies = scene.sandbox.requests.filter(({ path }) =>
    /matching-policies.*\/assignments$/.test(path),
  )
  const cleaning = { clean_past_events: true }
  expect(bodies.map(({ body }) => body)).toMatchObject([cleaning, cleaning])
})

test('the file is read from standard input, and its mistakes are named with their lines', async () => {
  const scene = await aMonitoringScene(tests, '')
  expect((await scene.applyGiven(two)).code).toBe(0)
  const bad = `assets:
  a: { type: domain, data: { fqn: a.example }, search_types: [leaks], policies: [nope] }
  c: { name: d, type: keyword, data: { keyword: d }, search_types: [leaks] }
  d: { type: keyword, data: { keyword: d }, search_types: [leaks] }
  e: { type: identity, data: { attributes: [] }, search_types: [leaks] }
policies:
  free: { excluded_keywords: [careers], query: a }
`
  const { code, err } = await scene.applyGiven(bad)
  expect(code).toBe(2)
  expect(err.split('\n').map((line) => line.replace(/^ +standard input:/, ''))).toEqual([
    'standard input has 5 mistakes:',
    expect.stringContaining('assets.a.data: fqdn is missing; write fqdn below data'),
    expect.stringContaining('assets.a.policies[0]: no such policy'),
    expect.stringContaining('assets.d: the same type and name as c'),
    expect.stringContaining('assets.e.data.attributes: empty; write what it watches for'),
    expect.stringContaining('policies.free.query: given beside excluded_keywords'),
    '',
  ])
})

test('an asset of the service whose search types are not readable has not none: nothing is sent', async () => {
  const text = `assets:\n  bank: { name: Example Bank, type: keyword, data: { keyword: Example Bank }, search_types: [leak] }\n`
  const scene = await aMonitoringScene(tests, text)
  scene.sandbox.monitoring.assets.change(78, { search_types: 'of tomorrow' as never })
  const { code, err } = await scene.apply('--yes')
  expect(code).toBe(1)
  expect(err).toContain('asset 78 of the service: search_types is not readable; read it with')
  expect(scene.writes()).toEqual([])
})
