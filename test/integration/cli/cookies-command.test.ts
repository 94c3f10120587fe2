/** `cookies search` against the pretend service. */
import { expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene, type ServiceScene } from './service-scene.ts'

const tests = redisForTests()
const value = 'Stolen-Session-4711'
const dayMs = 86_400_000

/** A session that lives and one that has expired, of the same site. */
async function aScene(options: Parameters<typeof aServiceScene>[1] = {}): Promise<ServiceScene> {
  const scene = await aServiceScene(tests, options)
  for (const [name, days] of [
    ['sid', 3],
    ['old', -3],
  ] as const) {
    const expires_utc = new Date(Date.now() + days * dayMs).toISOString().slice(0, 19)
    const cookie = { host_key: '.vpn.example.com', path: '/', expires_utc, name, value }
    scene.sandbox.addEvent({
      type: 'stealer_log',
      uid: `stealer_log/live/${name}`,
      stolen: { credentials: [], cookies: [cookie] },
    })
  }
  return scene
}

const ask = ['cookies', 'search', '--domain', 'VPN.example.com']

test('shows people what was stolen, until when it lives, and which log holds it', async () => {
  const { run, sandbox } = await aScene()
  const { code, out, err } = await run(...ask)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toMatch(/^IMPORTED \(UTC\) {4}EXPIRES \(UTC\) {5}DOMAIN +NAME +PATH\n/)
  expect(out).toMatch(/vpn\.example\.com +sid +\/\n {4}in stealer_log\/live\/sid\n/)
  expect(out).toContain('stealer_log/live/old')
  const asked = sandbox.requests.find(({ path }) => path === '/astp/v2/cookies/_search')
  expect(asked).toMatchObject({ tier: 'basic', body: { domain: 'vpn.example.com' } })
})

test('--live leaves out what has expired', async () => {
  const { run } = await aScene()
  const { out } = await run(...ask, '--live', '--output=json')
  const { items } = JSON.parse(out) as { items: { name: string }[] }
  expect(items.map(({ name }) => name)).toEqual(['sid'])
})

test.each(['text', 'json', 'ndjson', 'csv'])(
  'a value is shown in %s only if asked for',
  async (form) => {
    const { run } = await aScene()
    expect((await run(...ask, '--output', form)).out).not.toContain(value)
    expect((await run(...ask, '--output', form, '--reveal')).out).toContain(value)
  },
)

test('a value to search for is asked for, and stands in no error', async () => {
  const { runGiven, sandbox } = await aScene()
  const found = await runGiven(`${value}\n`, 'cookies', 'search', '--value')
  expect(found.out).toContain('stealer_log/live/sid')
  const message = `no ${value} here`
  sandbox.faults.add({ on: '/astp/*', effect: 'status', status: 400, message })
  const { code, err } = await runGiven(`${value}\n`, 'cookies', 'search', '--value')
  expect(code).toBe(1)
  expect(err).not.toContain(value)
})

test('says what is missing: whose cookies, or the permission', async () => {
  const { run, sandbox } = await aScene()
  expect(await run('cookies', 'search')).toMatchObject({
    code: 2,
    err: expect.stringContaining('--domain or --value'),
  })
  sandbox.faults.add({ on: '/astp/*', effect: 'status', status: 403 })
  expect((await run(...ask)).err).toContain('takes the permission astp_cookies_access')
})
