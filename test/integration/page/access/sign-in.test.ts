import { describe, expect, test } from 'vitest'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import {
  aDoor,
  ask,
  aUser,
  keptAgent,
  password,
  refusalsOf,
  signedIn,
  signIn,
} from '../../../support/door.ts'
import { redisForTests } from '../../../support/ledger.ts'

const tests = redisForTests()
const store = () => ({ redis: tests.redis, keys: tests.keys() })

describe('who is not signed in', () => {
  test('is led to the form and back to where they wanted to go', async () => {
    const door = await aDoor(store())
    const asked = await ask(door, '/?period=7d&x=a%20b')
    expect(asked.status).toBe(303)
    expect(asked.headers.location).toBe('/sign-in?next=%2F%3Fperiod%3D7d%26x%3Da%2520b')
    const form = await ask(door, asked.headers.location!)
    expect(form.said).toEqual({ next: '/?period=7d&x=a%20b', name: '' })
    const { answer } = await signIn(door, { next: '/?period=7d&x=a%20b' })
    expect([answer.status, answer.headers.location]).toEqual([303, '/?period=7d&x=a%20b'])
    expect(await refusalsOf(door)).toEqual({})
  })

  test('gets a problem from the API, and does nothing', async () => {
    const door = await aDoor(store())
    for (const asked of [{}, { body: { a: 'b' } }]) {
      const path = 'body' in asked ? '/api/v1/acts/resend' : '/api/v1/status'
      const { status, headers, said } = await ask(door, path, asked)
      expect(status).toBe(401)
      expect(headers['content-type']).toMatch(/^application\/problem\+json\b/)
      expect(headers['www-authenticate']).toBe('Bearer')
      expect(said).toMatchObject({ type: 'about:blank', status: 401, reason: 'sign_in_required' })
    }
    expect((await ask(door, '/acts/resend', { body: { a: 'b' } })).headers.location).toBe(
      '/sign-in',
    )
    expect(door.acts).toEqual([])
  })

  test('reads what is public, and nothing else', async () => {
    const door = await aDoor(store())
    expect((await ask(door, '/style.css')).body).toBe('body{}')
    for (const path of ['/', '/broken']) expect((await ask(door, path)).status).toBe(303)
  })
})

test.each([
  '//evil.example',
  '/\\evil.example',
  '\\\\evil.example',
  'https://evil.example',
  'https:evil.example',
  'javascript:alert(1)',
  '/\t/evil.example',
  '/\n/evil.example',
  '/a b',
  '/\u0000',
  '/\u2028',
  'evil',
  '',
  '/sign-in',
  `/${'a'.repeat(3000)}`,
])('after the sign-in nobody is led to %j', async (next) => {
  const door = await aDoor(store())
  const { answer } = await signIn(door, { next })
  expect([answer.status, answer.headers.location]).toEqual([303, '/'])
  const form = await ask(door, `/sign-in?next=${encodeURIComponent(next)}`)
  expect(form.said).toMatchObject({ next: '/' })
})

describe('the cookie', () => {
  test('is out of reach of scripts and of other sites', async () => {
    const { answer } = await signIn(await aDoor(store()))
    const [cookie = ''] = answer.headers['set-cookie'] ?? []
    expect(cookie).toMatch(/^tocsin_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
  })

  test('stays within TLS where people come by it', async () => {
    const door = await aDoor({ ...store(), http: { publicUrl: 'https://tocsin.example.net' } })
    const { answer, cookie } = await signIn(door)
    expect(answer.headers['set-cookie']?.[0]).toMatch(
      /^__Host-tocsin_session=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
    )
    expect((await ask(door, '/', { headers: { cookie } })).status).toBe(200)
  })

  test('is not in Redis, nor is the password', async () => {
    const { redis, keys } = store()
    const { cookie } = await signIn(await aDoor({ redis, keys }))
    const [id = ''] = cookie.split('=').slice(1)
    const names = (await redis.keys('*')).filter((name) => name.includes(keys.shared()))
    const texts = await Promise.all(names.map((name) => redis.get(name)))
    expect(names.some((name) => name.includes('session'))).toBe(true)
    expect([...names, ...texts].join('\n')).not.toContain(id)
    expect(texts.join('\n')).not.toContain(password)
  })
})

describe('a session', () => {
  test('counts at every replica, and ends at all of them by the sign-out', async () => {
    const shared = store()
    const [one, other] = [await aDoor(shared), await aDoor(shared)]
    const { headers } = await signedIn(one)
    expect((await ask(other, '/', { headers })).said.user).toEqual({
      name: 'ana',
      role: 'act',
      accounts: 'all',
    })
    const left = await ask(other, '/sign-out', { headers, method: 'POST' })
    expect([left.status, left.headers.location]).toEqual([303, '/sign-in'])
    expect(left.headers['set-cookie']?.[0]).toMatch(/^tocsin_session=; .*Expires=Thu, 01 Jan 1970/)
    for (const door of [one, other]) expect((await ask(door, '/', { headers })).status).toBe(303)
  })

  test('ends after twelve hours', async () => {
    const shared = store()
    const { headers } = await signedIn(await aDoor(shared))
    const [name = ''] = await shared.redis.keys(`${shared.keys.shared('session')}:*`)
    const leftMs = await shared.redis.pttl(name)
    expect(leftMs).toBeGreaterThan(11.9 * 3_600_000)
    expect(leftMs).toBeLessThanOrEqual(12 * 3_600_000)
    expect(headers.cookie).toContain('tocsin_session')
  })

  test.each([
    ['is removed', []],
    ['gets another password', [aUser({ passwordHash: secretFromText('hash of another') })]],
    ['gets another role', [aUser({ role: 'read' })]],
    ['sees other accounts', [aUser({ accounts: ['main'] })]],
  ])('ends as soon as its user %s', async (_what, changed) => {
    const other = aUser({ name: 'ben' })
    const door = await aDoor({ ...store(), http: { users: [aUser(), other] } })
    const { headers, token } = await signedIn(door)
    const { headers: others } = await signedIn(door, { name: 'ben' })
    door.http = { ...door.http, users: [...changed, other] }
    const act = await ask(door, '/acts/resend', { headers, body: { form_token: token } })
    expect(act.status).toBe(303)
    door.http = { ...door.http, users: [aUser(), other] }
    expect((await ask(door, '/', { headers })).status).toBe(303)
    expect((await ask(door, '/', { headers: others })).status).toBe(200)
    expect(door.acts).toEqual([])
  })

  test('is another after each sign-in, and the one before is over', async () => {
    const door = await aDoor(store())
    const first = await signedIn(door)
    const { cookie } = await signIn(door, {}, { headers: first.headers })
    expect(cookie).not.toBe(first.headers.cookie)
    expect((await ask(door, '/', { headers: first.headers })).status).toBe(303)
    expect((await ask(door, '/', { headers: { cookie } })).status).toBe(200)
  })
})

describe('guesses', () => {
  test('at a name that nobody has, or that has no password, are as much work', async () => {
    const users = [aUser(), aUser({ name: 'proxied' })]
    delete users[1]!.passwordHash
    const door = await aDoor({ ...store(), http: { users } })
    const answers = []
    for (const name of ['ana', 'nobody', 'proxied', '', '__proto__']) {
      const { answer, cookie } = await signIn(door, { name, password: 'wrong' })
      answers.push([answer.status, answer.said['problem']])
      expect(cookie).toBe('')
    }
    expect(new Set(answers.map(String))).toEqual(new Set(['401,Wrong name or password.']))
    expect(door.judged.hashes).toEqual([`hash of ${password}`, '', '', '', ''])
  })

  test('a hundred of one address end after ten at a name, and after fifty in all', async () => {
    const door = await aDoor(store())
    const agent = keptAgent()
    const guess = (name: string, at: number) =>
      ask(door, '/sign-in', { body: { name, password: `guess ${at}` } }, agent)
    for (let at = 0; at < 40; at += 1) await guess('ana', at)
    expect(door.judged.hashes.length).toBe(10)
    for (let at = 0; at < 60; at += 1) await guess(`name ${at}`, at)
    expect(door.judged.hashes.length).toBe(50)
    const { answer } = await signIn(door)
    expect(answer.status).toBe(429)
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(500)
    expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(600)
    expect((await signIn(door, {}, { from: '127.0.0.2' })).answer.status).toBe(303)
  })

  test('four hundred of forty addresses at one name, at two replicas, end after a hundred', async () => {
    const shared = store()
    const doors = [await aDoor(shared), await aDoor(shared)]
    const { headers } = await signedIn(doors[0]!)
    for (const door of doors) door.judged.hashes.length = 0
    const statuses = new Map<number, number>()
    const guessFrom = async (address: string): Promise<void> => {
      for (let at = 0; at < 10; at += 1) {
        const body = { name: 'ana', password: `guess ${at}` }
        const { status } = await ask(doors[at % 2]!, '/sign-in', { body, from: address })
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }
    for (let first = 0; first < 40; first += 20) {
      const addresses = Array.from({ length: 20 }, (_none, at) => `127.0.1.${first + at + 1}`)
      await Promise.all(addresses.map(guessFrom))
    }
    expect(doors.flatMap(({ judged }) => judged.hashes).length).toBe(100)
    expect(statuses.get(401)).toBe(100)
    expect(Math.max(...doors.map(({ judged }) => judged.most))).toBeLessThanOrEqual(2)
    // whoever is signed in stays so
    expect((await ask(doors[1]!, '/', { headers })).status).toBe(200)
  })

  test('that are right do not count', async () => {
    const shared = store()
    const door = await aDoor(shared)
    for (let at = 0; at < 30; at += 1) expect((await signIn(door)).answer.status).toBe(303)
    expect(await tests.redis.keys(`${shared.keys.shared('guesses')}:*`)).toEqual([])
  })

  test('a hundred at once run two at a time, and the rest is told to come again', async () => {
    const door = await aDoor(store())
    const agent = keptAgent()
    const held = Promise.withResolvers<void>()
    door.judged.until = held.promise
    let busyCount = 0
    const answers = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const answer = await ask(door, '/sign-in', { body: { name: 'ana', password } }, agent)
        if (answer.status === 503 && (busyCount += 1) === 98) held.resolve()
        return answer
      }),
    )
    expect(answers.filter(({ status }) => status === 303).length).toBe(2)
    expect(door.judged.hashes.length).toBe(2)
    const busy = answers.find(({ status }) => status === 503)!
    expect(busy.headers['retry-after']).toBe('1')
    expect(busy.said).toMatchObject({ name: 'ana' })
    expect(await refusalsOf(door)).toEqual({ busy: 98 })
  })

  test('are logged with the address and without what was typed, unless it names a user', async () => {
    const door = await aDoor(store())
    await signIn(door, { name: 'hunter2-in-the-wrong-field', password: 'wrong' })
    expect(door.logged()).toContain('"reason":"wrong_password","address":"127.0.0.1"')
    expect(door.logged()).not.toContain('hunter2')
    const other = await aDoor(store())
    await signIn(other, { password: 'wrong' })
    expect(other.logged()).toContain('"user":"ana"')
  })
})
