import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../../src/lib/clock.ts'
import { sessionMs } from '../../../../src/page/access/sessions.ts'
import { aDoor, ask, aUser, refusalsOf, signedIn } from '../../../support/door.ts'
import { redisForTests } from '../../../support/ledger.ts'

const tests = redisForTests()
const store = () => ({ redis: tests.redis, keys: tests.keys() })
const two = { users: [aUser(), aUser({ name: 'ben', role: 'read' as const })] }

describe('an act', () => {
  test('is done by the form, once, whichever replica gets it', async () => {
    const shared = store()
    const [one, other] = [await aDoor(shared), await aDoor(shared)]
    const { headers, token } = await signedIn(one)
    const body = { form_token: token }
    const answers = await Promise.all(
      [one, other, one, other].map((door) => ask(door, '/acts/resend', { headers, body })),
    )
    expect(answers.map(({ status }) => String(status)).toSorted()).toEqual([
      '200',
      '403',
      '403',
      '403',
    ])
    expect([...one.acts, ...other.acts]).toEqual(['/acts/resend'])
    const again = await ask(one, '/acts/resend', { headers, body })
    expect(again.said).toEqual({
      status: 403,
      detail: 'The form was sent already; look whether it is done.',
    })
  })

  test.each([
    ['without a token', 'missing', () => ''],
    ['with a token of another making', 'forged', () => '9999999999999.bm9uY2U.Zm9yZ2Vk'],
    ['with a token of an earlier end', 'forged', (token: string) => token.replace(/^\d/, '9')],
    ['with another nonce', 'forged', (token: string) => token.replace(/\.\w/, '.-')],
    ['with half a token', 'forged', (token: string) => token.slice(0, -2)],
    ['with a token twice as long', 'forged', (token: string) => token + token],
  ])('%s is refused as %s', async (_what, reason, change) => {
    const door = await aDoor(store())
    const { headers, token } = await signedIn(door)
    const answer = await ask(door, '/acts/resend', { headers, body: { form_token: change(token) } })
    expect(answer.status).toBe(403)
    expect(await refusalsOf(door)).toEqual({ [reason]: 1 })
    expect(door.acts).toEqual([])
    // the token itself was not used up
    const { status } = await ask(door, '/acts/resend', { headers, body: { form_token: token } })
    expect(status).toBe(200)
  })

  test('with the token of another session, or of another path, is refused', async () => {
    const door = await aDoor(store())
    const [one, other] = [await signedIn(door), await signedIn(door)]
    const body = { form_token: other.token }
    expect((await ask(door, '/acts/resend', { headers: one.headers, body })).status).toBe(403)
    expect((await ask(door, '/acts/other', { headers: other.headers, body })).status).toBe(403)
    expect(await refusalsOf(door)).toEqual({ forged: 2 })
    expect(door.acts).toEqual([])
  })

  test('with a token that is older than its session may be is refused', async () => {
    let lateMs = 0
    const clock = { ...systemClock, now: () => Date.now() + lateMs }
    const door = await aDoor({ ...store(), clock })
    const { headers, token } = await signedIn(door)
    lateMs = sessionMs
    await ask(door, '/acts/resend', { headers, body: { form_token: token } })
    expect(await refusalsOf(door)).toEqual({ expired: 1 })
    expect(door.acts).toEqual([])
  })

  test('is not for who may only read, form or API', async () => {
    const door = await aDoor({ ...store(), http: two })
    const { headers, token } = await signedIn(door, { name: 'ben' })
    const form = await ask(door, '/acts/resend', { headers, body: { form_token: token } })
    expect([form.status, form.said]).toEqual([
      403,
      { status: 403, detail: 'Your role may look, and not act.' },
    ])
    const api = await ask(door, '/api/v1/acts/resend', { headers, body: {} })
    expect(api.said).toMatchObject({ status: 403, reason: 'role' })
    expect(door.acts).toEqual([])
    expect(door.logged()).toContain('"user":"ben"')
    // but they may leave
    expect((await ask(door, '/sign-out', { headers, method: 'POST' })).status).toBe(303)
    expect((await ask(door, '/', { headers })).status).toBe(303)
  })

  test('by the API with a cookie needs the token, too, in a header', async () => {
    const door = await aDoor(store())
    const { headers, token } = await signedIn(door)
    const path = '/api/v1/acts/resend'
    expect((await ask(door, path, { headers, body: {} })).said).toMatchObject({ reason: 'missing' })
    const wrongPath = { ...headers, 'x-form-token': token }
    expect((await ask(door, path, { headers: wrongPath, body: {} })).said).toMatchObject({
      reason: 'forged',
    })
    const form = { headers: { ...headers, 'x-form-token': token }, body: { a: 'b' } }
    expect((await ask(door, '/acts/resend', form)).status).toBe(200)
    expect(door.acts).toEqual(['/acts/resend'])
  })

  test('is not done by a GET, nor by any other method', async () => {
    const door = await aDoor(store())
    const { headers } = await signedIn(door)
    expect((await ask(door, '/acts/resend', { headers })).status).toBe(404)
    for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      expect((await ask(door, '/acts/resend', { headers, method })).status).toBe(405)
    }
    for (const path of ['/', '/metrics', '/nowhere']) {
      expect((await ask(door, path, { headers, body: { a: 'b' } })).status).toBe(405)
    }
  })
})

describe('another site', () => {
  const foreign: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'http://127.0.0.1:1' },
    { origin: 'https://tocsin.example.net.evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site', origin: 'null' },
  ]

  test.each(foreign)('that is told from %j can neither act nor sign in nor out', async (told) => {
    const door = await aDoor({ ...store(), http: { publicUrl: 'http://tocsin.example.net' } })
    const { headers: own, token } = await signedIn(door)
    const headers = { ...own, ...told }
    for (const path of ['/acts/resend', '/sign-in', '/sign-out', '/api/v1/acts/resend']) {
      const answer = await ask(door, path, { headers, body: { form_token: token } })
      expect([path, answer.status]).toEqual([path, 403])
    }
    expect(await refusalsOf(door)).toEqual({ cross_site: 4 })
    expect((await ask(door, '/', { headers: own })).status).toBe(200)
    expect([door.acts, door.judged.hashes.length]).toEqual([[], 1])
  })

  test('is none that says nothing of itself, or what our own forms say', async () => {
    const door = await aDoor({ ...store(), http: { publicUrl: 'https://tocsin.example.net' } })
    const own = [
      {},
      { origin: 'null' },
      { origin: 'null', 'sec-fetch-site': 'same-origin' },
      { origin: 'https://tocsin.example.net', 'sec-fetch-site': 'same-origin' },
      { origin: door.url },
    ]
    for (const told of own) {
      const { headers, token } = await signedIn(door)
      const asked = { headers: { ...headers, ...told }, body: { form_token: token } }
      expect((await ask(door, '/acts/resend', asked)).status).toBe(200)
    }
  })
})

describe('what is sent', () => {
  test.each([
    ['/acts/resend', 'application/json', 415],
    ['/acts/resend', 'text/plain', 415],
    ['/acts/resend', 'multipart/form-data; boundary=x', 415],
    ['/api/v1/acts/resend', 'application/x-www-form-urlencoded', 415],
    ['/api/v1/acts/resend', 'text/plain', 415],
  ])('to %s as %s is refused', async (path, type, status) => {
    const door = await aDoor(store())
    const { headers } = await signedIn(door)
    const asked = { headers: { ...headers, 'content-type': type }, body: '{}' }
    expect((await ask(door, path, asked)).status).toBe(status)
    expect(door.acts).toEqual([])
  })
})
