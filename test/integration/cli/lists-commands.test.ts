/** `tenants list`, `groups list` and `assets list`: the ids that a configuration names. */
import { describe, expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene } from './service-scene.ts'

const tests = redisForTests()

describe('assets list', () => {
  test('masks a watched secret in data and name, unless it is revealed', async () => {
    const { runGiven, run } = await aServiceScene(tests)
    const name = 'sunflower' // a secret that looks like a word
    const asset = { name, type: 'secret', search_types: ['leak'], data: { secret: name } }
    const create = ['api', 'assets.create', '--body=-', '--yes']
    expect((await runGiven(JSON.stringify(asset), ...create)).code).toBe(0)
    for (const form of ['text', 'json', 'ndjson']) {
      const list = ['assets', 'list', '--type=secret', `--output=${form}`]
      const masked = await run(...list)
      expect([masked.code, masked.out.includes(name)]).toEqual([0, false])
      expect((await run(...list, '--reveal')).out).toContain(name)
    }
  })
})
