/** A command that asks the API says in one sentence why it failed. */
import { expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene } from './service-scene.ts'

const tests = redisForTests()

const uuid = '7e5f1c70-0000-4000-8000-000000000001'

/** The command, and how it names what it was asked for. */
const commands: [string[], string][] = [
  [['api', 'assets.toggle', '--asset-id=77', '--is-disabled=true', '--yes'], 'asset_id 77'],
  [['api', 'policies.get', `--policy-uuid=${uuid}`], `policy_uuid ${uuid}`],
  [['events', 'search', '--group=1042'], 'identifier_group_id 1042'],
  [['reports', 'download', '9001', '--out', '/nowhere/report'], 'report 9001'],
]

test.each(commands)('a refusal names what was asked for: %j', async (args, thing) => {
  const { run, sandbox } = await aServiceScene(tests)
  sandbox.faults.add({ on: '/firework/*', effect: 'status', status: 403, message: 'not yours' })
  const { code, out, err } = await run(...args)
  expect(err).toContain(`${thing}: access is forbidden (403)`)
  expect(err).not.toContain('    at ')
  expect({ code, out }).toEqual({ code: 1, out: '' })
})

test.each(commands)('a wrong key is told, and not shown: %j', async (args) => {
  const { run } = await aServiceScene(tests, {
    change: (text) => text.replace(/api_key: \S+/, 'api_key: fw_hush_hush'),
  })
  const { code, out, err } = await run(...args)
  expect(err).toMatch(/^(the key or its token is refused \(401\)|.* its key was refused; next try)/)
  expect(err).toContain('tocsin doctor says more')
  expect(out + err).not.toContain('hush')
  expect(code).toBe(1)
})
