/** `tenants list`, `groups list` and `assets list`: the ids that a configuration names. */
import { describe, expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene } from './service-scene.ts'

const tests = redisForTests()

describe('assets list', () => {
  test.each([
    [['--group=1043'], [91, 92]],
    [['--type=keyword'], [92]],
    [['--disabled'], [78]],
    [['--group=1042'], [77, 406_285_232_303]],
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
