/** `tenants list`, `groups list` and `assets list`: the ids that a configuration names. */
import { describe, expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene, type ServiceScene } from './service-scene.ts'

const tests = redisForTests()

function pathsOf({ sent }: ServiceScene): string[] {
  return sent().map(({ path }) => path)
}

describe('assets list', () => {
  test.each([
    [['--group=1043'], [91, 92]],
    [['--type=keyword'], [78, 92]],
    [['--disabled'], [78]],
    [
      ['--enabled', '--group=1042'],
      [77, 406_285_232_303],
    ],
  ])('%j narrows it', async (options, ids) => {
    const { run } = await aServiceScene(tests)
    await run('api', 'assets.toggle', '--asset-id=78', '--is-disabled=true', '--yes')
    const { out } = await run('assets', 'list', '--output=json', ...options)
    const { items } = JSON.parse(out) as { items: { id: number }[] }
    expect(items.map(({ id }) => id)).toEqual(ids)
  })

  test('masks a watched secret in data and name, unless it is revealed', async () => {
    const { runGiven, run } = await aServiceScene(tests)
    const name = 'Zebra77!x'
    const asset = { name, type: 'secret', search_types: ['leak'], data: { secret: name } }
    const create = ['api', 'assets.create', '--body=-', '--yes']
    expect((await runGiven(JSON.stringify(asset), ...create)).code).toBe(0)
    for (const form of ['text', 'json', 'ndjson']) {
      const list = ['assets', 'list', '--type=secret', `--output=${form}`]
      const masked = await run(...list)
      expect([masked.code, masked.out.includes('Zebra77')]).toEqual([0, false])
      expect((await run(...list, '--reveal')).out).toContain('Zebra77!x')
    }
  })

  test('asks the older operation of a server without the newer one', async () => {
    const scene = await aServiceScene(tests)
    const missing = { effect: 'status', status: 404, body: 'message' } as const
    scene.sandbox.faults.add({ on: '/firework/v4/identifiers/', ...missing })
    const { code, out, err } = await scene.run('assets', 'list')
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringContaining('the enabled identifiers alone'),
    })
    expect(out).toMatch(/^77 +domain +enabled +0 +example\.com$/m)
    expect(pathsOf(scene)).toEqual(['/firework/v4/identifiers/', '/firework/v3/identifiers/'])
  })

  test('says nothing of what a list shows where the older operation fails too', async () => {
    const scene = await aServiceScene(tests)
    scene.sandbox.faults.add({ on: '/firework/v*/identifiers/', effect: 'status', status: 403 })
    const { code, err } = await scene.run('assets', 'list')
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(/identifiers.list-v3 takes the permission to read identifiers/),
    })
  })

  test('asks the older operation for types that the newer one does not know', async () => {
    const scene = await aServiceScene(tests)
    const { code, err } = await scene.run('assets', 'list', '--type=role,domain')
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringContaining('the enabled identifiers alone'),
    })
    expect(pathsOf(scene)).toEqual(['/firework/v3/identifiers/'])
  })

  test.each([403, 404])(
    'takes a %d for the group or the cursor that was named, not for a missing operation',
    async (status) => {
      const scene = await aServiceScene(tests)
      const { err: told } = await scene.run('assets', 'list', '--limit=2')
      const [, place = ''] = /--from '([^']+)'/.exec(told) ?? []
      const missing = { effect: 'status', status, body: 'message', times: 1 } as const
      for (const named of ['--group=99', `--from=${place}`]) {
        scene.sandbox.faults.add({ on: '/firework/v4/identifiers/', ...missing })
        const { code, err } = await scene.run('assets', 'list', named)
        expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(`(${status})`) })
      }
      expect((await scene.run('assets', 'list')).code).toBe(0)
      expect(new Set(pathsOf(scene))).toEqual(new Set(['/firework/v4/identifiers/']))
    },
  )
})

test.each([
  ['groups', 'to read groups of identifiers', 'GET /firework/v3/identifiers/groups'],
  ['assets', 'to read identifiers', 'GET /firework/v3/identifiers/'],
])('%s list says which permission or server it takes', async (noun, permission, operation) => {
  const { run, sandbox } = await aServiceScene(tests)
  const refuse = sandbox.faults.add({ on: '/firework/*', effect: 'status', status: 403 })
  const forbidden = await run(noun, 'list')
  expect(forbidden.err).toContain(`takes the permission ${permission}, which the key's user lacks`)
  refuse()
  sandbox.faults.add({ on: '/firework/*', effect: 'status', status: 404 })
  const missing = await run(noun, 'list')
  expect(missing.err).toContain(`this server does not have ${operation}`)
  expect([forbidden, missing].map(({ code, out }) => ({ code, out }))).toEqual([
    { code: 1, out: '' },
    { code: 1, out: '' },
  ])
})
