/** `assets apply` over HTTP: what it sends, what it remembers, and how it goes on after trouble. */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aMonitoringScene, configText, type MonitoringScene } from './monitoring-scene.ts'
import { aFile, tocsin } from './tocsin.ts'

const tests = redisForTests()

const two = `assets:
  brand:
    name: Example Bank
    type: keyword
    data: { keyword: example bank }
    search_types: [leaks, paste]
    risks: [3, 4, 5]
    policies: [no-jobs]
  site:
    type: domain
    data: { fqdn: example.com }
    search_types: [leaks, ads]
    policies: [no-jobs, logins]
policies:
  no-jobs: { excluded_keywords: [careers] }
  logins: { cookies: [session] }
`

/** Ids of the assets, and uuids of the policies, by their names in the file. */
function known(scene: MonitoringScene): {
  assets: Record<string, number>
  policies: Record<string, string>
} {
  const { assets, policies } = scene.state() as {
    assets: Record<string, { id: number }>
    policies: Record<string, { uuid: string }>
  }
  return {
    assets: Object.fromEntries(Object.entries(assets).map(([key, { id }]) => [key, id])),
    policies: Object.fromEntries(Object.entries(policies).map(([key, { uuid }]) => [key, uuid])),
  }
}

/** Names of the policies that an asset really has. */
function policiesOf({ sandbox }: MonitoringScene, id: number): string[] {
  const { policies, assignments } = sandbox.monitoring
  return assignments
    .ofIdentifier(id)
    .map(({ policyUuid }) => policies.get(policyUuid)!.name)
    .toSorted()
}

test('--plan says what would be done, and sends and writes nothing', async () => {
  const scene = await aMonitoringScene(tests, two)
  const { code, out, err } = await scene.apply('--plan')
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out.split('\n')).toEqual([
    '+ policy no-jobs: create, EXCLUDED_KEYWORDS',
    '+ policy logins: create, ASTP_COOKIES',
    '+ asset brand: create, type keyword',
    '+ asset site: create, type domain',
    '+ policy no-jobs: assign to brand, site',
    '+ policy logins: assign to site',
    '6 steps; nothing was done',
    '',
  ])
  expect(scene.writes()).toEqual([])
  expect(() => scene.state()).toThrow('ENOENT')
})

test('a first run creates and assigns all, and a second finds nothing to do', async () => {
  const scene = await aMonitoringScene(tests, two)
  const { code, out } = await scene.apply()
  expect(code).toBe(0)
  expect(out).toContain('done: 6 steps')
  const { assets } = known(scene)
  expect(scene.sandbox.monitoring.assets.get(assets['brand']!)).toMatchObject({
    name: 'Example Bank',
    data: { keyword: 'example bank' },
    risks: [3, 4, 5],
  })
  expect(policiesOf(scene, assets['brand']!)).toEqual(['no-jobs'])
  expect(policiesOf(scene, assets['site']!)).toEqual(['logins', 'no-jobs'])
  expect(statSync(scene.statePath).mode & 0o777).toBe(0o600)
  scene.writes()

  const before = readFileSync(scene.statePath, 'utf8')
  expect(await scene.apply()).toEqual({ code: 0, out: 'nothing to do\n', err: '' })
  expect(scene.writes()).toEqual([])
  expect(readFileSync(scene.statePath, 'utf8')).toBe(before)
})

const ofAllKinds = `assets:
  brand: { type: keyword, data: { keyword: example bank }, search_types: [leaks], risks: [5, 4] }
  site: { type: domain, data: { fqdn: Example.com }, search_types: [leaks, ads] }
  ann: { type: identity, data: { attributes: [{ type: email, email: ann@example.com }] }, search_types: [leak] }
  bob: { type: email, data: { email: bob@example.com }, search_types: [leak] }
`

test('at a service of today assets are written by v4 where it has their type, and none of it drifts', async () => {
  const scene = await aMonitoringScene(tests, ofAllKinds, { undescribed: true })
  expect(await scene.apply()).toMatchObject({ code: 0, err: '' })
  expect(scene.writes()).toEqual([
    ...Array.from({ length: 3 }, () => 'POST /firework/v4/identifiers/'),
    'POST /firework/v2/assets/',
  ])
  const { assets } = known(scene)
  scene.sandbox.addEvent({ identifiers: [{ id: assets['brand']!, name: 'brand' }] })
  const before = readFileSync(scene.statePath, 'utf8')
  expect(await scene.apply()).toEqual({ code: 0, out: 'nothing to do\n', err: '' })
  expect(readFileSync(scene.statePath, 'utf8')).toBe(before)
  expect(scene.writes()).toEqual([])

  scene.write(
    ofAllKinds.replace('risks: [5, 4]', 'risks: [5], enabled: false').replace('ann@', 'amy@'),
  )
  expect((await scene.apply('--yes')).code).toBe(0)
  const [brand, ann] = [assets['brand'], assets['ann']]
  expect(scene.writes()).toEqual([
    `PUT /firework/v4/identifiers/${brand}`,
    `PUT /firework/v4/identifiers/${brand}`,
    `PUT /firework/v2/assets/${ann}`,
  ])
  const stored = { isDisabled: true, risks: [5], groupId: 1042 }
  expect(scene.sandbox.monitoring.assets.get(brand!)).toMatchObject(stored)
  expect((await scene.apply()).out).toBe('nothing to do\n')
})

test('a replaced asset keeps what the file does not speak of', async () => {
  const scene = await aMonitoringScene(tests, two)
  await scene.apply()
  const id = known(scene).assets['brand']!
  scene.sandbox.monitoring.assets.change(id, { others: { of_a_later_version: { a: [1] } } })
  scene.writes()

  scene.write(two.replace('risks: [3, 4, 5]', 'risks: [5]'))
  const plan = await scene.apply('--plan')
  expect(plan.out).toBe(`~ asset brand (${id}): replace, for risks\n1 step; nothing was done\n`)
  expect((await scene.apply('--yes')).code).toBe(0)
  expect(scene.writes()).toEqual([`PUT /firework/v2/assets/${id}`])
  expect(scene.sandbox.requests.at(-1)?.body).toMatchObject({
    id,
    urn: `urn:sandbox:asset:${id}`,
    risks: [5],
    is_disabled: false,
    of_a_later_version: { a: [1] },
  })
  expect((await scene.apply()).out).toBe('nothing to do\n')
})

test('a changed policy is created anew, assigned to all, and only then is the old one deleted', async () => {
  const scene = await aMonitoringScene(tests, two)
  await scene.apply()
  scene.writes()
  const old = known(scene).policies['no-jobs']!
  scene.write(two.replace('[careers]', '[careers, vacancy]'))
  const refused = await scene.apply()
  expect(refused).toMatchObject({
    code: 2,
    err: '1 policy deleted. Policy no-jobs: whatever has it and is not of this file loses it, and the server does not tell what that is. Nobody is there to ask; say --yes\n',
  })
  expect(scene.writes()).toEqual([])

  expect((await scene.apply('--yes')).code).toBe(0)
  expect(scene.writes()).toEqual([
    'POST /firework/v4/matching_policies',
    'POST /firework/v4/matching_policies/<uuid>/assignments',
    'DELETE /firework/v4/matching_policies/<uuid>',
  ])
  expect(scene.sandbox.monitoring.policies.get(old)).toBeUndefined()
  expect(policiesOf(scene, known(scene).assets['site']!)).toEqual(['logins', 'no-jobs'])
  expect((await scene.apply()).out).toBe('nothing to do\n')
})

test('where the server can change a policy, it is changed, and the plan says what that is', async () => {
  const scene = await aMonitoringScene(tests, two, { undescribed: true })
  await scene.apply()
  scene.writes()
  const { policies } = known(scene)
  scene.write(two.replace('[careers]', '[vacancy]').replace('[no-jobs, logins]', '[logins]'))
  const plan = await scene.apply('--plan')
  expect(plan.out.split('\n')).toEqual([
    `~ policy no-jobs (${policies['no-jobs']}): update; it has changed in the file`,
    '- policy no-jobs: take from site',
    'beyond the description of the API: PUT of a policy, DELETE of assignments',
    '2 steps; nothing was done',
    '',
  ])
  expect((await scene.apply('--yes')).code).toBe(0)
  expect(scene.writes()).toEqual([
    'PUT /firework/v4/matching_policies/<uuid>',
    'DELETE /firework/v4/matching_policies/<uuid>/assignments',
  ])
  expect(known(scene).policies).toEqual(policies)
  expect((await scene.apply()).out).toBe('nothing to do\n')
})

test('what left the file: an asset is disabled, a policy deleted; what comes back is enabled', async () => {
  const scene = await aMonitoringScene(tests, two)
  await scene.apply()
  const { assets } = known(scene)
  scene.writes()
  scene.write(
    two
      .replace(/ {2}brand:[\s\S]*? {2}site:/, '  site:')
      .replace(/ {2}no-jobs: .*\n/, '')
      .replace('no-jobs, ', ''),
  )
  const { out } = await scene.apply('--yes')
  expect(out).toContain(
    `- asset brand (${assets['brand']}): disable; it left the file, and what it found stays at the service`,
  )
  expect(scene.writes()).toEqual([
    `POST /firework/v2/assets/${assets['brand']}/toggle`,
    'DELETE /firework/v4/matching_policies/<uuid>',
  ])
  expect((await scene.apply()).out).toBe('nothing to do\n')

  scene.writes()
  scene.write(two)
  await scene.apply('--yes')
  expect(known(scene).assets).toEqual(assets)
  expect(scene.writes()).toEqual([
    'POST /firework/v4/matching_policies',
    'POST /firework/v4/matching_policies/<uuid>/assignments',
    `POST /firework/v2/assets/${assets['brand']}/toggle`,
  ])
})

test('what others changed is shown and mended; a policy of theirs is shown and left', async () => {
  const scene = await aMonitoringScene(tests, two)
  await scene.apply()
  const { assets, policies } = known(scene)
  const { policies: store, assignments } = scene.sandbox.monitoring
  assignments.unassign(policies['no-jobs']!, [assets['site']!])
  const value = { keywords: ['x'] }
  const theirs = store.create({
    tenantId: 42,
    name: 'theirs\u001B[31m',
    type: 'INCLUDED_KEYWORDS',
    value,
  })
  assignments.assign(theirs.uuid, [assets['brand']!], false)
  const { code, out } = await scene.apply()
  expect(code).toBe(0)
  expect(out).toContain('+ policy no-jobs: assign to site; somebody has taken it from site\n')
  expect(out).toMatch(
    /^asset brand also has the policy "theirs.*" \(.+\), which is not of this file: left as it is$/m,
  )
  expect(out).not.toContain('\u001B[31m')
  expect(policiesOf(scene, assets['site']!)).toEqual(['logins', 'no-jobs'])
  expect(policiesOf(scene, assets['brand']!)).toHaveLength(2)
})

test('--output json tells the steps without the values of what they write', async () => {
  const scene = await aMonitoringScene(tests, two)
  const plan = JSON.parse((await scene.apply('--plan', '--output=json')).out) as object
  expect(plan).toMatchObject({
    steps: [
      { do: 'create policy', policy: 'no-jobs', why: 'new', done: false },
      { do: 'create policy', policy: 'logins' },
      { do: 'create asset', asset: 'brand', type: 'keyword' },
      { do: 'create asset', asset: 'site' },
      { do: 'assign policy', policy: 'no-jobs', assets: ['brand', 'site'] },
      { do: 'assign policy', policy: 'logins' },
    ],
    notes: [],
    beyond_description: [],
    clean_past_events: false,
    left: 6,
  })
  const done = JSON.parse((await scene.apply('--output=json')).out) as object
  expect(done).toMatchObject({
    left: 0,
    steps: expect.arrayContaining([expect.objectContaining({ done: true })]),
  })
})

test('a secret to watch for is neither printed nor in the state, and its change is seen', async () => {
  const secret = 'correct-horse-battery'
  const text = `assets:\n  key: { type: secret, data: { secret: ${secret} }, search_types: [leaks] }\n`
  const scene = await aMonitoringScene(tests, text)
  const { out, err } = await scene.apply()
  expect(out + err + readFileSync(scene.statePath, 'utf8')).not.toContain(secret)
  expect((await scene.apply()).out).toBe('nothing to do\n')
  scene.write(text.replace(secret, 'another-one-entirely'))
  expect((await scene.apply('--plan')).out).toContain('replace, for data')
})

test('a new asset goes into its group, and the plan says that the description does not have that', async () => {
  const scene = await aMonitoringScene(
    tests,
    two.replace('    risks: [3, 4, 5]\n', '    group: 1043\n'),
  )
  expect((await scene.apply()).out).toContain(
    'beyond the description of the API: the group of a new asset',
  )
  const id = known(scene).assets['brand']!
  expect(scene.sandbox.monitoring.assets.get(id)).toMatchObject({ groupId: 1043 })
  scene.write(two.replace('    risks: [3, 4, 5]\n', '    group: 1042\n'))
  const { code, err } = await scene.apply()
  expect(code).toBe(2)
  expect(err).toContain(
    'monitoring.yaml:7:5 assets.brand.group: it was created elsewhere, and the API moves no asset; write 1043',
  )
})

test('ads pass at a creation, and are refused with their line before a replacement is sent', async () => {
  const scene = await aMonitoringScene(tests, two)
  await scene.apply()
  scene.writes()
  scene.write(two.replace('example.com', 'example.org'))
  const { code, err } = await scene.apply('--yes')
  expect(code).toBe(2)
  expect(err).toMatch(
    /monitoring\.yaml:12:\d+ assets\.site\.search_types\[1\]: "ads" may be given when/,
  )
  expect(scene.writes()).toEqual([])
})

test('clean_past_events goes with the assignment, and is asked about', async () => {
  const scene = await aMonitoringScene(tests, `${two}clean_past_events: true\n`)
  const asked = await scene.apply()
  expect(asked).toMatchObject({ code: 2, err: expect.stringContaining('past events taken away.') })
  expect(scene.writes()).toEqual([])
  await scene.apply('--yes')
  const assignments = scene.sandbox.requests.filter(({ path }) => path.endsWith('/assignments'))
  expect(assignments.map(({ body }) => body)).toEqual([
    expect.objectContaining({ clean_past_events: true }),
    expect.objectContaining({ clean_past_events: true }),
  ])
})

describe('trouble', () => {
  test('the first refusal stops it, it says what was done and what not, and the next run goes on', async () => {
    const scene = await aMonitoringScene(tests, two)
    const clear = scene.sandbox.faults.add({
      on: '/firework/v4/*/assignments',
      effect: 'status',
      status: 403,
    })
    const { code, err } = await scene.apply()
    expect(code).toBe(1)
    expect(err).toContain('done:\n  + policy no-jobs: create, EXCLUDED_KEYWORDS\n')
    expect(err).toContain('not done:\n  + policy no-jobs: assign to brand, site\n')
    expect(err).toContain('policy no-jobs: access is forbidden (403)')
    clear()
    scene.writes()
    await scene.apply()
    expect(scene.writes()).toEqual([
      'POST /firework/v4/matching_policies/<uuid>/assignments',
      'POST /firework/v4/matching_policies/<uuid>/assignments',
    ])
    expect((await scene.apply()).out).toBe('nothing to do\n')
  })

  test('after a lost answer to a creation nothing is created blindly; --adopt takes what is there', async () => {
    const scene = await aMonitoringScene(tests, two)
    scene.sandbox.faults.add({ on: '/firework/v2/assets/', effect: 'lose-answer', times: 1 })
    const first = await scene.apply()
    expect(first.code).toBe(1)
    expect(first.err).toContain('it may have been done all the same')
    scene.writes()
    const second = await scene.apply('--yes')
    expect(second.code).toBe(1)
    expect(second.err).toMatch(
      /^asset brand: its creation was sent at \S+ and no answer came, so it may be there; .*--adopt brand=<id> if it is, or --create-again brand if it is not\n$/,
    )
    expect(scene.writes()).toEqual([])

    const made = scene.sandbox.monitoring.assets.all().at(-1)
    const third = await scene.apply('--adopt', `brand=${made!.id}`, '--yes')
    expect(third.code).toBe(0)
    expect(third.out).toContain(
      `asset brand: ${made!.id} is "Example Bank", of type keyword\n+ asset site: create`,
    )
    expect(known(scene).assets['brand']).toBe(made!.id)
    expect((await scene.apply()).out).toBe('nothing to do\n')
  })

  test('after a lost answer, --create-again creates what was not', async () => {
    const scene = await aMonitoringScene(tests, two)
    scene.sandbox.faults.add({
      on: '/firework/v4/matching_policies',
      method: 'POST',
      effect: 'refuse',
      times: 1,
    })
    expect((await scene.apply()).code).toBe(1)
    expect((await scene.apply()).err).toContain('policy no-jobs: its creation was sent')
    expect((await scene.apply('--create-again', 'no-jobs')).code).toBe(0)
    expect(scene.sandbox.monitoring.policies.all()).toHaveLength(2)
  })

  test('a creation that was refused leaves no doubt', async () => {
    const scene = await aMonitoringScene(tests, two)
    scene.sandbox.faults.add({
      on: '/firework/v2/assets/',
      effect: 'status',
      status: 400,
      times: 1,
    })
    const { code, err } = await scene.apply()
    expect(code).toBe(1)
    expect(err).toContain('asset brand: the service refuses the request (400)')
    expect((await scene.apply()).code).toBe(0)
  })

  test('a tenant that has nothing of what the state knows gets nothing anew unasked', async () => {
    const scene = await aMonitoringScene(tests, two.replace(/ {4}policies: .*\n/g, ''))
    await scene.apply()
    const { assets, policies } = known(scene)
    for (const id of Object.values(assets)) scene.sandbox.monitoring.assets.delete(id)
    for (const uuid of Object.values(policies)) scene.sandbox.monitoring.policies.delete(uuid)
    scene.writes()
    expect(await scene.apply('--yes')).toEqual({
      code: 1,
      out: '',
      err:
        `the service no longer has asset brand (${assets['brand']}), asset site (${assets['site']}), policy no-jobs (${policies['no-jobs']}), policy logins (${policies['logins']}): ` +
        'is it the right tenant, and the state not older than the service? If one is there under another id, say --adopt brand=<id> --adopt site=<id>. To create anew, say --create-again brand --create-again site --create-again no-jobs --create-again logins\n',
    })
    expect(scene.writes()).toEqual([])
    const again = ['brand', 'site', 'no-jobs', 'logins'].map((name) => `--create-again=${name}`)
    expect((await scene.apply(...again)).code).toBe(0)
    expect(known(scene).assets).not.toMatchObject(assets)
  })

  test('a state that changes under its hands is not written over', async () => {
    const scene = await aMonitoringScene(tests, two)
    await scene.apply()
    scene.write(two.replace('[3, 4, 5]', '[5]'))
    scene.sandbox.faults.add({
      on: '/firework/v2/assets/*',
      method: 'PUT',
      effect: 'delay',
      ms: 300,
    })
    const running = scene.apply('--yes')
    await expect.poll(() => scene.sandbox.requests.at(-1)?.method).toBe('PUT')
    writeFileSync(scene.statePath, `${readFileSync(scene.statePath, 'utf8')}\n`)
    expect(await running).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        'monitoring.state.json: another run has changed it meanwhile; run again',
      ),
    })
  })

  test('a service that cannot be reached is said to be so', async () => {
    const scene = await aMonitoringScene(tests, two)
    await scene.sandbox.close()
    const { code, err } = await scene.apply()
    expect(code).toBe(1)
    expect(err).toContain('nobody answers at the host and port of base_url')
  })
})

describe('a mistake is told before anything is asked:', () => {
  test.each([
    [
      'an unknown key',
      two.replace('risks:', 'risk:'),
      'monitoring.yaml:7:5 assets.brand.risk: unknown key; did you mean "risks"?',
    ],
    [
      'a type',
      two.replace('type: domain', 'type: domian'),
      'assets.site.type: not one of the known words; did you mean "domain"?',
    ],
    [
      'a policy that is not there',
      two.replace('[no-jobs]', '[no-job]'),
      'assets.brand.policies[0]: no such policy; did you mean "no-jobs"?',
    ],
    [
      'a field of the data',
      two.replace('fqdn:', 'fdqn:'),
      'assets.site.data.fdqn: fqdn is missing; did you mean "fqdn"?',
    ],
    [
      'two kinds of policy',
      two.replace('[careers] }', '[careers], query: x }'),
      'policies.no-jobs.query: given beside excluded_keywords; keep one of the two',
    ],
    [
      'no kind of policy',
      two.replace('{ cookies: [session] }', '{ name: x }'),
      'policies.logins: does not say what it lets through;',
    ],
    ['an empty name', two.replace('Example Bank', '""'), 'assets.brand.name: has no value;'],
    [
      'a risk',
      two.replace('[3, 4, 5]', '[3, 6]'),
      'assets.brand.risks[1]: too large; write a whole number from 1 to 5',
    ],
    [
      'an empty file',
      '',
      'monitoring.yaml:1:1: the file is empty; write its sections: assets, policies',
    ],
    ['broken YAML', 'assets: [', 'monitoring.yaml:1:10:'],
  ])('%s', async (_name, text, said) => {
    const scene = await aMonitoringScene(tests, text)
    const { code, out, err } = await scene.apply('--plan')
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(said)
    expect(scene.sandbox.requests).toEqual([])
  })

  test('all mistakes of a file at once', async () => {
    const scene = await aMonitoringScene(
      tests,
      two.replace('risks:', 'risk:').replace('domain', 'x'),
    )
    const { err } = await scene.apply()
    expect(err).toContain('2 mistakes')
  })

  test.each([
    ['--adopt=brand', 'Write <name>=<id>, such as brand=5001.'],
    ['--adopt=brand=0', 'Write the id, a whole number of at least 1.'],
    ['--adopt=logins=xyz', 'Write a UUID'],
    ['--adopt=brnd=7', 'the file has no asset "brnd"; did you mean "brand"?'],
    ['--create-again=brand', '--create-again: brand has never been created'],
    [
      '--file=/nowhere/m.yaml',
      '/nowhere/m.yaml: there is no such file; name the monitoring file with --file',
    ],
    ['--account=min', 'there is no account "min"; did you mean "main"?'],
  ])('%s', async (option, said) => {
    const scene = await aMonitoringScene(tests, two)
    const { code, err } = await scene.apply('--plan', option)
    expect(code).toBe(2)
    expect(err).toContain(said)
  })

  test.each([
    ['{"format": "tocsin', 'the state is torn; put back an earlier one'],
    ['{}', 'not a state of assets apply; name another file with --state'],
    [
      '{"format": "tocsin monitoring state", "version": 2}',
      'it has format 2, this version writes 1',
    ],
    [
      '{"format": "tocsin monitoring state", "version": 1}',
      'the state is torn; put back an earlier one',
    ],
  ])('a state file %s', async (text, said) => {
    const scene = await aMonitoringScene(tests, two)
    writeFileSync(scene.statePath, text)
    const { code, err } = await scene.apply()
    expect(code).toBe(2)
    expect(err).toContain(`${scene.statePath}: ${said}`)
    expect(scene.writes()).toEqual([])
  })

  test('a state of another service', async () => {
    const scene = await aMonitoringScene(tests, two)
    await scene.apply()
    const other = aFile('tocsin.yaml', configText('http://127.0.0.1:9', tests.server.url))
    const { code, err } = await tocsin('assets', 'apply', '-f', scene.file, '--config', other)
    expect(code).toBe(2)
    expect(err).toContain(
      `it is of account main at ${scene.sandbox.url}, not of main at http://127.0.0.1:9;`,
    )
  })
})
