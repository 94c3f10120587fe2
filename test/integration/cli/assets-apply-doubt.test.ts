/** `assets apply` where the state and the service disagree: nothing is made twice or taken for another. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aMonitoringScene, type MonitoringScene } from './monitoring-scene.ts'

const tests = redisForTests()

const uuid = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/

const site = `assets:
  site:
    type: domain
    data: { fqdn: example.com }
    search_types: [leaks, ads]
    policies: [no-jobs]
policies:
  no-jobs: { excluded_keywords: [careers] }
`

const keyword = (name: string): string =>
  `assets:\n  ${name}: { type: keyword, data: { keyword: ${name} }, search_types: [leaks] }\n`

interface KnownState {
  assets: Record<string, { id: number; disabled: boolean }>
  policies: Record<string, { uuid: string }>
  pending: unknown
}

const stateOf = (scene: MonitoringScene): KnownState => scene.state() as unknown as KnownState

describe('--create-again', () => {
  test('makes no second one of what is there', async () => {
    const scene = await aMonitoringScene(tests, site)
    await scene.apply()
    scene.writes()
    const { id } = stateOf(scene).assets['site']!
    const { uuid: policy } = stateOf(scene).policies['no-jobs']!
    expect(await scene.apply('--yes', '--create-again=site')).toEqual({
      code: 2,
      out: '',
      err: `--create-again: site is ${id}, which is there; another one would be made beside it\n`,
    })
    expect((await scene.apply('--yes', '--create-again=no-jobs')).err).toContain(
      `--create-again: no-jobs is ${policy}, which is there`,
    )
    expect(scene.writes()).toEqual([])
  })

  test('given twice for what is gone creates once', async () => {
    const scene = await aMonitoringScene(tests, site)
    await scene.apply()
    const state = stateOf(scene)
    state.assets['site']!.id = 999_999
    writeFileSync(scene.statePath, JSON.stringify(state))
    expect((await scene.apply('--yes', '--create-again=site')).code).toBe(0)
    scene.writes()
    expect((await scene.apply('--yes', '--create-again=site')).code).toBe(2)
    expect(scene.writes()).toEqual([])
  })

  test('of a policy that is gone creates it anew and gives it to all', async () => {
    const scene = await aMonitoringScene(tests, site)
    await scene.apply()
    const { uuid: gone } = stateOf(scene).policies['no-jobs']!
    scene.sandbox.monitoring.policies.delete(gone)
    scene.writes()
    const refused = await scene.apply('--yes')
    expect(refused).toEqual({
      code: 1,
      out: '',
      err: `the service no longer has policy no-jobs (${gone}): is it the right tenant, and the state not older than the service? To create anew, say --create-again no-jobs\n`,
    })
    expect(scene.writes()).toEqual([])
    expect((await scene.apply('--create-again=no-jobs')).code).toBe(0)
    expect(scene.writes()).toEqual([
      'POST /firework/v4/matching_policies',
      'POST /firework/v4/matching_policies/<uuid>/assignments',
    ])
    expect((await scene.apply()).out).toBe('nothing to do\n')
  })
})

describe('a state older than the service', () => {
  test('that knows the policy before this one makes no second one, and adopts this one', async () => {
    const scene = await aMonitoringScene(tests, site)
    await scene.apply()
    const older = readFileSync(scene.statePath, 'utf8')
    scene.write(site.replace('[careers]', '[careers, vacancy]'))
    await scene.apply('--yes')
    const { uuid: there } = stateOf(scene).policies['no-jobs']!
    writeFileSync(scene.statePath, older)
    scene.writes()
    const refused = await scene.apply('--yes')
    expect(refused.code).toBe(1)
    expect(refused.err).toContain(
      `An asset of the file has one of that name: say --adopt no-jobs=${there}.`,
    )
    expect((await scene.apply(`--adopt=no-jobs=${there}`)).out).toBe('nothing to do\n')
    expect((await scene.apply()).out).toBe('nothing to do\n')
    expect(scene.writes()).toEqual([])
  })

  test('that knows no such policy makes no second one unless it is told to', async () => {
    const scene = await aMonitoringScene(tests, site)
    await scene.apply()
    const state = stateOf(scene)
    const { uuid: there } = state.policies['no-jobs']!
    writeFileSync(scene.statePath, JSON.stringify({ ...state, policies: {} }))
    scene.writes()
    expect(await scene.apply('--yes')).toEqual({
      code: 1,
      out: '',
      err:
        `policy no-jobs: an asset of the file has one of the same name and content (${there}) that the state does not know: ` +
        `is the state older than the service? Adopt it with --adopt no-jobs=${there}, or say --create-again no-jobs for another one\n`,
    })
    expect(scene.writes()).toEqual([])
    expect((await scene.apply('--plan', '--create-again=no-jobs')).out).toContain(
      '+ policy no-jobs: create',
    )
    expect((await scene.apply(`--adopt=no-jobs=${there}`)).out).toBe('nothing to do\n')
  })
})

describe('--adopt', () => {
  /** Of the sandbox: 77 is the domain example.com, 78 the keyword Example Bank. */
  const other =
    '--adopt: asset 78 is "Example Bank", of type keyword, and site of the file is of type domain'

  test('of an asset of another type stops, names both, and keeps nothing', async () => {
    const scene = await aMonitoringScene(tests, site)
    expect(await scene.apply('--yes', '--adopt=site=78')).toEqual({
      code: 2,
      out: '',
      err: `${other}; nothing was changed\n`,
    })
    expect(scene.writes()).toEqual([])
    expect(() => scene.state()).toThrow('ENOENT')
  })

  test('shows what was found, and takes it only when told so', async () => {
    const scene = await aMonitoringScene(tests, site.replace(', ads', ''))
    const asked = await scene.apply('--adopt=site=77')
    expect(asked).toEqual({
      code: 2,
      out: 'asset site: 77 is "example.com", of type domain\n',
      err: 'Asset site of the file is taken to be 77, "example.com", of type domain. Nobody is there to ask; say --yes\n',
    })
    expect((await scene.applyAnswering(['n'], '--adopt=site=77')).code).toBe(1)
    expect(scene.writes()).toEqual([])
    expect(() => scene.state()).toThrow('ENOENT')

    const taken = await scene.applyAnswering(['y', 'y'], '--adopt=site=77')
    expect(taken.out).toContain('~ asset site (77): replace, for name, search_types\n')
    expect(taken.code).toBe(0)
    expect(stateOf(scene).assets['site']!.id).toBe(77)
    expect((await scene.apply()).out).toBe('nothing to do\n')
  })

  test('changes nothing that is as the file says, an order apart', async () => {
    const scene = await aMonitoringScene(tests, site)
    await scene.apply()
    const { id } = stateOf(scene).assets['site']!
    writeFileSync(scene.statePath, JSON.stringify({ ...scene.state(), assets: {} }))
    scene.write(site.replace('[leaks, ads]', '[ads, leaks]'))
    scene.writes()
    const { code, out } = await scene.apply('--yes', `--adopt=site=${id}`)
    expect({ code, out }).toEqual({
      code: 0,
      out: `asset site: ${id} is "site", of type domain\nnothing to do\n`,
    })
    expect(scene.writes()).toEqual([])
    expect((await scene.apply()).out).toBe('nothing to do\n')
  })

  test('of a plan says what it is and what would be replaced in it', async () => {
    const scene = await aMonitoringScene(tests, keyword('bank'))
    const { code, out } = await scene.apply('--plan', '--adopt=bank=78')
    expect({ code, out }).toEqual({
      code: 0,
      out: 'asset bank: 78 is "Example Bank", of type keyword\n~ asset bank (78): replace, for name, data, search_types\n1 step; nothing was done\n',
    })
    expect(scene.writes()).toEqual([])
  })

  describe('where the server shows no single asset', () => {
    async function aBlindScene(content: string): Promise<MonitoringScene> {
      const scene = await aMonitoringScene(tests, content)
      const refusal = { method: 'GET', effect: 'status', status: 405 } as const
      scene.sandbox.faults.add({ on: '/firework/v2/assets/*', ...refusal })
      return scene
    }

    test('says what it switched to see that an asset is of another type', async () => {
      const scene = await aBlindScene(site)
      const { code, err } = await scene.apply('--yes', '--adopt=site=78')
      expect({ code, err }).toEqual({
        code: 2,
        err: `${other}; 78 is enabled now, and else nothing was changed\n`,
      })
      expect(scene.writes()).toEqual(['POST /firework/v2/assets/78/toggle'])
      expect(() => scene.state()).toThrow('ENOENT')
    })

    test('asks before it switches an asset to see it', async () => {
      const scene = await aBlindScene(site)
      const { code, err } = await scene.apply('--adopt=site=77')
      expect({ code, err }).toEqual({
        code: 2,
        err: 'asset site: to see what 77 is, it is enabled; this server shows an asset only in answer to a change. Nobody is there to ask; say --yes\n',
      })
      expect((await scene.applyAnswering(['n'], '--adopt=site=77')).code).toBe(1)
      expect(scene.writes()).toEqual([])
    })

    test('shows what was found, and takes it only when told so', async () => {
      const scene = await aBlindScene(site)
      const { code, out, err } = await scene.applyAnswering(['y', 'n'], '--adopt=site=77')
      expect(code).toBe(1)
      expect(out).toContain('asset site: 77 is "example.com", of type domain\n')
      expect(err).toContain('asset site was not adopted; 77 is enabled now\n')
      expect(scene.writes()).toEqual(['POST /firework/v2/assets/77/toggle'])
      expect(() => scene.state()).toThrow('ENOENT')

      scene.write(site.replace(', ads', ''))
      const taken = await scene.applyAnswering(['y', 'y', 'y'], '--adopt=site=77')
      expect(taken.out).toContain('~ asset site (77): replace, for name, search_types;')
      expect(taken.code).toBe(0)
      expect((await scene.apply()).out).toBe('nothing to do\n')
    })

    test('switches nothing for a plan, and says what it does not know', async () => {
      const scene = await aBlindScene(keyword('bank'))
      const { code, out } = await scene.apply('--plan', '--adopt=bank=78')
      expect({ code, out }).toEqual({
        code: 0,
        out: 'asset bank: to see what 78 is, it is enabled; this server shows an asset only in answer to a change, so what must be replaced in it is not known yet\n',
      })
      expect(scene.writes()).toEqual([])
    })
  })

  test.each([
    ['bank=999999', '--adopt: the service has no asset 999999\n'],
    [
      'no-jobs=00000000-0000-4000-8000-000000000000',
      '--adopt: the service has no policy 00000000-0000-4000-8000-000000000000\n',
    ],
  ])('%s, which is not there, is a mistake', async (adoption, said) => {
    const scene = await aMonitoringScene(tests, site.replace('  site:', '  bank:'))
    expect(await scene.apply('--yes', `--adopt=${adoption}`)).toEqual({
      code: 2,
      out: '',
      err: said,
    })
    expect(scene.writes()).toEqual([])
  })

  test('of a policy that was to be deleted keeps it', async () => {
    const scene = await aMonitoringScene(tests, site)
    await scene.apply()
    const { uuid: there } = stateOf(scene).policies['no-jobs']!
    const retired = [{ name: 'no-jobs', uuid: there }]
    writeFileSync(scene.statePath, JSON.stringify({ ...scene.state(), policies: {}, retired }))
    expect((await scene.apply('--yes', `--adopt=no-jobs=${there}`)).out).toBe('nothing to do\n')
    expect((await scene.apply()).out).toBe('nothing to do\n')
  })

  test('of a policy of another type stops, and of another content says what it is', async () => {
    const scene = await aMonitoringScene(tests, site)
    const { policies } = scene.sandbox.monitoring
    const given = { tenantId: 42, name: 'theirs' }
    const query = policies.create({ ...given, type: 'LUCENE_QUERY', value: { query: 'x' } })
    expect(await scene.apply('--yes', `--adopt=no-jobs=${query.uuid}`)).toEqual({
      code: 2,
      out: '',
      err: `--adopt: ${query.uuid} is "theirs" of type LUCENE_QUERY, and no-jobs of the file is EXCLUDED_KEYWORDS\n`,
    })
    const words = policies.create({
      ...given,
      type: 'EXCLUDED_KEYWORDS',
      value: { keywords: ['x'] },
    })
    const { code, out, err } = await scene.apply(`--adopt=no-jobs=${words.uuid}`)
    expect(out).toContain(
      `policy no-jobs is taken to be "theirs" (${words.uuid}), which is not as the file has it\n`,
    )
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('1 policy deleted.') })
    expect(scene.writes()).toEqual([])
  })
})

describe('what was created and could not be kept', () => {
  test.each([
    [
      'the state has changed meanwhile',
      (path: string) => writeFileSync(path, `${readFileSync(path, 'utf8')}\n`),
      'another run has changed it meanwhile; run again',
      2,
    ],
    [
      'the folder cannot be written to',
      (path: string) => mkdirSync(`${path}.new`),
      'cannot be written (EISDIR); make the folder writable',
      1,
    ],
  ])('has its id in the error where %s', async (_title, spoil, reason, code) => {
    const scene = await aMonitoringScene(tests, keyword('five'))
    await scene.apply()
    scene.write(`${keyword('five')}${keyword('six').replace('assets:\n', '')}`)
    scene.sandbox.faults.add({ on: '/firework/v2/assets/', effect: 'delay', ms: 300 })
    scene.writes()
    const running = scene.apply()
    await expect.poll(() => scene.writes()).toEqual(['POST /firework/v2/assets/'])
    spoil(scene.statePath)
    const ended = await running
    const { id } = scene.sandbox.monitoring.assets.all().at(-1)!
    expect(ended.code).toBe(code)
    expect(ended.err).toContain(
      `asset six was created as ${id}: run again with --adopt six=${id}; ${scene.statePath}: ${reason}\n`,
    )
    expect(ended.err).not.toContain('--state')
    expect(ended.err).not.toContain('is in the state file')
  })

  test('has its uuid in the error, of a policy', async () => {
    const scene = await aMonitoringScene(tests, site)
    await scene.apply()
    scene.write(site.replace('[careers]', '[vacancy]'))
    const policies = '/firework/v4/matching_policies'
    scene.sandbox.faults.add({ on: policies, method: 'POST', effect: 'delay', ms: 300 })
    scene.writes()
    const running = scene.apply('--yes')
    await expect.poll(() => scene.writes()).toEqual([`POST ${policies}`])
    writeFileSync(
      scene.statePath,
      readFileSync(scene.statePath, 'utf8').replace(/"pending": \{[^}]*\}/, '"pending": null'),
    )
    const { err } = await running
    const made = /was created as (\S+):/.exec(err)?.[1] ?? ''
    expect(made).toMatch(uuid)
    expect((await scene.apply('--yes', `--adopt=no-jobs=${made}`)).code).toBe(0)
    expect(scene.sandbox.monitoring.policies.all().map((policy) => policy.uuid)).toEqual([made])
    expect((await scene.apply()).out).toBe('nothing to do\n')
  })

  test('at the first run, where nothing is remembered, another file may be named', async () => {
    const scene = await aMonitoringScene(tests, keyword('one'))
    mkdirSync(`${scene.statePath}.new`)
    const { code, err } = await scene.apply()
    expect(code).toBe(1)
    expect(err).toContain('make the folder writable, or name another file with --state\n')
    expect(scene.writes()).toEqual([])
  })
})

test('a run that is stopped while it waits for its turn leaves no doubt', async () => {
  const scene = await aMonitoringScene(tests, site)
  scene.sandbox.faults.add({
    on: '/firework/v4/matching_policies',
    method: 'POST',
    effect: 'status',
    status: 429,
    headers: { 'retry-after': '60' },
    times: 1,
  })
  expect((await scene.apply()).err).toContain('policy no-jobs: ')
  expect(stateOf(scene).pending).toBeNull()

  const stop = new AbortController()
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  let out = ''
  output.on('data', (chunk) => (out += String(chunk)))
  const args = ['assets', 'apply', '-f', scene.file, ...scene.config]
  const running = runProgram(args, { input, output, errors, stop: stop.signal })
  await expect.poll(() => out).toContain('+ policy no-jobs: assign to site')
  stop.abort()
  await running
  expect(stateOf(scene).pending).toBeNull()
  expect((await scene.apply('--plan')).code).toBe(0)
})
