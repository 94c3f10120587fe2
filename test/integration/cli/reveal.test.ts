/** `--reveal` gives a secret exactly as it is, or says that it cannot. */
import { describe, expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene, type ServiceScene } from './service-scene.ts'

const tests = redisForTests()

/** A formula, two spaces, zero width, an escape, and longer than any column. */
const secret = `=Hush  \u200B\u001B[31m${'x'.repeat(700)}`
const uid = 'stealer_log/stealer_logs_live/4711'

async function aScene(): Promise<ServiceScene> {
  const scene = await aServiceScene(tests)
  const login = { url: 'https://a.example', username: 'anna@example.com', application: 'Outlook' }
  const cookie = { host_key: 'a.example', path: '/', expires_utc: null, name: 'SSO' }
  scene.sandbox.addEvent({
    uid,
    type: 'stealer_log',
    groupIds: [1042],
    highlights: { 'credentials.password': [`<mark>${secret}</mark>`] },
    data: { password: secret, title: 'y'.repeat(700) },
    stolen: {
      credentials: [{ ...login, password: secret }],
      cookies: [{ ...cookie, value: secret }] as never,
    },
  })
  scene.sandbox.addCredentials([
    { hash: secret, hashType: null, identityName: 'anna@example.com', identifierIds: [77] },
  ])
  return scene
}

const commands: [string, () => string[]][] = [
  ['events search', () => ['events', 'search', '--group=1042']],
  ['events get', () => ['events', 'get', uid]],
  ['api events.expand', () => ['api', 'events.expand', '--uid', uid, '--field=credentials']],
  ['api events.expand of cookies', () => ['api', 'events.expand', '--uid', uid, '--field=cookies']],
  ['credentials search', () => ['credentials', 'search', '--email=anna@example.com']],
  ['api credentials.feed', () => ['api', 'credentials.feed', '--identifier-id=77']],
]

function textsIn(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [value]
  return Object.values(value).flatMap(textsIn)
}

describe.each(commands)('%s --reveal', (_name, argsOf) => {
  test('has the secret whole in JSON, and nothing that a terminal acts upon', async () => {
    const { run } = await aScene()
    const { code, out } = await run(...argsOf(), '--reveal', '--output=json')
    expect(code).toBe(0)
    const texts = textsIn(JSON.parse(out))
    expect(texts.map((text) => String(text).replaceAll(/<\/?mark>/g, ''))).toContain(secret)
    expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  })

  test('prints JSON unless it is told otherwise, and masks without it', async () => {
    const { run } = await aScene()
    const { out } = await run(...argsOf(), '--reveal')
    expect(out).toBe((await run(...argsOf(), '--reveal', '--output=json')).out)
    expect((await run(...argsOf())).out).not.toContain('xxxx')
  })
})

test('assets list masks a watched secret in data and name, unless it is revealed', async () => {
  const { runGiven, run } = await aServiceScene(tests)
  const name = 'sunflower' // a secret that looks like a word
  const asset = { name, type: 'secret', search_types: ['leak'], data: { secret: name } }
  await runGiven(JSON.stringify(asset), 'api', 'assets.create', '--body=-', '--yes')
  for (const form of ['text', 'json', 'ndjson']) {
    const list = ['assets', 'list', '--type=secret', `--output=${form}`]
    const masked = await run(...list)
    expect([masked.code, masked.out.includes(name)]).toEqual([0, false])
    expect((await run(...list, '--reveal')).out).toContain(name)
  }
})
