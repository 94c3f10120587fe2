import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { secretFromFile, secretFromText } from '../../../../src/lib/config/secret.ts'
import type { HttpUser } from '../../../../src/page/http/access-config.ts'
import { startRedis } from '../../../support/redis.ts'
import {
  aDoor,
  ask,
  aUser,
  keptAgent,
  refusalsOf,
  signedIn,
  signIn,
} from '../../../support/door.ts'
import { connectTo, redisForTests } from '../../../support/ledger.ts'

const tests = redisForTests()
const store = () => ({ redis: tests.redis, keys: tests.keys() })

describe('a trusted proxy', () => {
  const proxied: HttpUser = { name: 'Jörg Ünal', role: 'act', accounts: 'all' }
  const http = {
    users: [proxied, aUser()],
    proxy: { header: 'x-forwarded-user', from: ['127.0.0.0/29', '10.0.0.5'] },
  }
  const latin = Buffer.from(proxied.name).toString('latin1')
  const named = (name = latin) => ({ 'x-forwarded-user': name })

  test('names a user, who acts by forms of any replica, without a cookie', async () => {
    const shared = store()
    const [one, other] = [await aDoor({ ...shared, http }), await aDoor({ ...shared, http })]
    const [first, second] = await Promise.all(
      [one, other].map((door) => ask(door, '/', { headers: named() })),
    )
    expect(first!.said.user).toEqual({ name: proxied.name, role: 'act', accounts: 'all' })
    expect(first!.headers['set-cookie']).toBeUndefined()
    for (const { said } of [first!, second!]) {
      const asked = { headers: named(), body: { form_token: said.token } }
      expect((await ask(one, '/acts/resend', asked)).status).toBe(200)
      expect((await ask(other, '/acts/resend', asked)).status).toBe(403)
    }
    expect(await refusalsOf(other)).toEqual({ replayed: 2 })
    expect(one.judged.hashes).toEqual([])
  })

  test('must name the user of the form, whatever cookie comes with it', async () => {
    const door = await aDoor({ ...store(), http })
    const { said } = await ask(door, '/', { headers: named() })
    const { headers } = await signedIn(door)
    const body = { form_token: said.token }
    for (const other of [named('ana'), { ...named('ana'), ...headers }, headers]) {
      expect((await ask(door, '/acts/resend', { headers: other, body })).status).toBe(403)
    }
    expect(await refusalsOf(door)).toEqual({ forged: 3 })
    const both = { ...named(), ...headers }
    expect((await ask(door, '/', { headers: both })).said.user.name).toBe(proxied.name)
    expect(door.acts).toEqual([])
  })

  test('makes forms that end with a change of their user', async () => {
    const door = await aDoor({ ...store(), http })
    const { said } = await ask(door, '/', { headers: named() })
    door.http = { ...door.http, users: [{ ...proxied, accounts: ['main'] }] }
    const asked = { headers: named(), body: { form_token: said.token } }
    expect((await ask(door, '/acts/resend', asked)).status).toBe(403)
    expect(await refusalsOf(door)).toEqual({ forged: 1 })
  })

  test('that names nobody of the users is answered with a refusal', async () => {
    const door = await aDoor({ ...store(), http })
    for (const name of ['eve', 'ana, ana', 'ANA', '__proto__']) {
      expect((await ask(door, '/', { headers: named(name) })).status).toBe(403)
    }
    expect(await refusalsOf(door)).toEqual({ unknown_user: 4 })
    expect((await ask(door, '/', { headers: named('') })).status).toBe(303)
  })

  test('is believed from its own addresses alone, and nothing is lost from others', async () => {
    const door = await aDoor({ ...store(), http })
    for (const from of ['127.0.0.8', '127.0.1.1']) {
      expect((await ask(door, '/', { headers: named(), from })).status).toBe(303)
      const { headers } = await signedIn(door)
      const answer = await ask(door, '/', { headers: { ...headers, ...named() }, from })
      expect(answer.said.user.name).toBe('ana')
    }
    expect((await ask(door, '/', { headers: named(), from: '127.0.0.7' })).status).toBe(200)
  })

  test('tells from where people sign in, whatever they say themselves', async () => {
    const door = await aDoor({ ...store(), http: { ...http, proxy: { from: ['127.0.0.1'] } } })
    const via = (hops: string) => ({ headers: { 'x-forwarded-for': hops } })
    for (let at = 0; at < 12; at += 1) {
      await signIn(door, { password: 'wrong' }, via(`203.0.113.${at}, 198.51.100.7`))
    }
    expect(door.judged.hashes.length).toBe(10)
    expect((await signIn(door, {}, via('198.51.100.7'))).answer.status).toBe(429)
    expect((await signIn(door, {}, via('198.51.100.7, 203.0.113.9'))).answer.status).toBe(303)
    expect(door.logged()).toContain('"address":"198.51.100.7"')
    // it names nobody where no header is configured
    expect((await ask(door, '/', { headers: named('ana') })).status).toBe(303)
  })

  test('shows one network of IPv6 as one address', async () => {
    const door = await aDoor({ ...store(), http: { ...http, proxy: { from: ['127.0.0.1'] } } })
    for (let at = 0; at < 60; at += 1) {
      const headers = { 'x-forwarded-for': `2001:db8::1:${at}` }
      await signIn(door, { name: `name ${at}` }, { headers })
    }
    expect(door.judged.hashes.length).toBe(50)
    const headers = { 'x-forwarded-for': '2001:db8:0:1::5' }
    expect((await signIn(door, {}, { headers })).answer.status).toBe(303)
  })
})

describe('without users', () => {
  const http = { users: [] }

  test('whoever sits at this machine may look, and not act', async () => {
    const door = await aDoor({ ...store(), http })
    const page = await ask(door, '/')
    expect(page.said).toEqual({ user: { name: 'local', role: 'read', accounts: 'all' }, token: '' })
    expect(page.headers['set-cookie']).toBeUndefined()
    expect((await ask(door, '/style.css')).status).toBe(200)
    expect((await ask(door, '/acts/resend', { body: { a: 'b' } })).status).toBe(403)
    expect(await refusalsOf(door)).toEqual({ role: 1 })
  })

  test.each([
    ['x-forwarded-for', '127.0.0.1'],
    ['x-forwarded-host', 'localhost'],
    ['X-Forwarded-Anything', ''],
    ['forwarded', 'for=127.0.0.1'],
    ['via', '1.1 proxy'],
    ['x-real-ip', '127.0.0.1'],
  ])('nothing is shown to what a proxy forwards with %s', async (name, value) => {
    const door = await aDoor({ ...store(), http })
    for (const path of ['/', '/sign-in', '/style.css', '/api/v1/status']) {
      const answer = await ask(door, path, { headers: { [name]: value } })
      expect(answer.status).toBe(403)
      expect(answer.body).toContain('http.users')
    }
    expect(await refusalsOf(door)).toEqual({ no_users: 4 })
  })

  test('nothing is shown to what a proxy forwards in silence', async () => {
    const { port } = await aDoor({ ...store(), http })
    const socket = connect(port, '127.0.0.1')
    socket.end('GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n')
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 403 /)
  })

  test.each(['tocsin', '10.0.0.5', 'tocsin:9464', '[::2]'])(
    'nothing is shown under the name %s',
    async (host) => {
      const door = await aDoor({ ...store(), http })
      expect((await ask(door, '/', { headers: { host } })).status).toBe(403)
      expect((await ask(door, '/healthz', { headers: { host } })).status).toBe(200)
    },
  )

  test.each(['localhost', '127.0.0.1', '[::1]:9464', '127.1.2.3'])(
    'all is shown under the name %s',
    async (host) => {
      const door = await aDoor({ ...store(), http })
      expect((await ask(door, '/', { headers: { host } })).status).toBe(200)
    },
  )

  test('nothing is shown where others can reach the port', async () => {
    const door = await aDoor({ ...store(), http: { ...http, host: '0.0.0.0' } })
    expect((await ask(door, '/')).status).toBe(403)
    expect((await ask(door, '/metrics')).status).toBe(200)
    door.http = { ...door.http, users: [aUser()] }
    expect((await ask(door, '/')).status).toBe(303)
  })
})

describe('a token', () => {
  const [token, weak] = ['d6f1'.repeat(16), 'a30c'.repeat(16)]
  const http = {
    users: [
      aUser({ name: 'robot', token: secretFromText(token), accounts: ['main'] }),
      aUser({ name: 'reader', token: secretFromText(weak), role: 'read' }),
    ],
  }
  const bearing = (given: string) => ({ authorization: `Bearer ${given}` })

  test('opens the API to its user, acts without a form included, and not the page', async () => {
    const door = await aDoor({ ...store(), http })
    const headers = bearing(token)
    const { said } = await ask(door, '/api/v1/status', { headers })
    expect(said.user).toEqual({ name: 'robot', role: 'act', accounts: ['main'] })
    const act = await ask(door, '/api/v1/acts/resend', { headers, body: {} })
    expect(act.said).toEqual({ done: '/api/v1/acts/resend', by: 'robot' })
    expect((await ask(door, '/', { headers })).status).toBe(303)
    expect((await ask(door, '/acts/resend', { headers, body: { a: 'b' } })).status).toBe(303)
    const reader = { headers: bearing(weak), body: {} }
    expect((await ask(door, '/api/v1/acts/resend', reader)).said).toMatchObject({ reason: 'role' })
    expect(door.acts).toEqual(['/api/v1/acts/resend'])
  })

  test('that is wrong counts for nothing a cookie is worth, and is limited', async () => {
    const door = await aDoor({ ...store(), http: { users: [...http.users, aUser()] } })
    const { headers } = await signedIn(door)
    const agent = keptAgent()
    const statuses = []
    for (let at = 0; at < 60; at += 1) {
      const asked = { headers: { ...headers, ...bearing(token.slice(1) + at) } }
      statuses.push((await ask(door, '/api/v1/status', asked, agent)).status)
    }
    expect(statuses.filter((status) => status === 401).length).toBe(50)
    expect(statuses.filter((status) => status === 429).length).toBe(10)
    for (const right of [{ headers }, { headers: bearing(token) }]) {
      expect((await ask(door, '/api/v1/status', right)).status).toBe(200)
    }
    expect((await signIn(door)).answer.status).toBe(303)
    expect(door.logged()).not.toContain(token.slice(1))
  })

  test('follows its file, and without the file nobody comes in', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tocsin-token-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'token')
    writeFileSync(file, `${token}\n`)
    const users = [aUser({ token: secretFromFile(file) })]
    const door = await aDoor({ ...store(), http: { users } })
    const statusOf = async (given: string): Promise<number> =>
      (await ask(door, '/api/v1/status', { headers: bearing(given) })).status
    expect([await statusOf(token), await statusOf(weak), await statusOf('')]).toEqual([
      200, 401, 401,
    ])
    writeFileSync(file, weak)
    expect([await statusOf(token), await statusOf(weak)]).toEqual([401, 200])
    rmSync(file)
    expect(await statusOf(weak)).toBe(401)
    expect(door.logged()).toContain('token of a user cannot be read')
  })
})

describe('the public address', () => {
  test('is a name of this server without being in http.hosts, as long as it is configured', async () => {
    const door = await aDoor({ ...store(), http: { publicUrl: 'https://tocsin.example.net' } })
    const under = async (host: string): Promise<number> =>
      (await ask(door, '/sign-in', { headers: { host } })).status
    expect(await under('Tocsin.Example.Net')).toBe(200)
    expect(await under('evil.example.net')).toBe(421)
    const { publicUrl: _gone, ...rest } = door.http
    door.http = rest
    expect(await under('tocsin.example.net')).toBe(421)
  })
})

describe('every answer', () => {
  const policy =
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
  const wanted = {
    'content-security-policy': policy,
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  }

  test.each([undefined, 'http://tocsin.example.net', 'https://tocsin.example.net'])(
    'of the page and its API has the headers of safety; the public address is %s',
    async (publicUrl) => {
      const door = await aDoor({ ...store(), http: publicUrl === undefined ? {} : { publicUrl } })
      const { headers } = await signedIn(door)
      const json = { headers: { ...headers, 'content-type': 'application/json' }, body: '{' }
      const foreign = { headers: { host: 'evil.example' } }
      const large = { headers, body: { name: 'a'.repeat(70_000) } }
      const answers = [
        [200, await ask(door, '/', { headers })],
        [200, await ask(door, '/sign-in')],
        [200, await ask(door, '/style.css')],
        [303, await ask(door, '/')],
        [401, await ask(door, '/api/v1/status')],
        [401, (await signIn(door, { password: 'wrong' })).answer],
        [403, await ask(door, '/acts/resend', { headers, body: { a: 'b' } })],
        [404, await ask(door, '/nowhere')],
        [405, await ask(door, '/', { method: 'DELETE' })],
        [400, await ask(door, '/api/v1/acts/resend', json)],
        [400, await ask(door, '/%zz')],
        [413, await ask(door, '/acts/resend', large)],
        [415, await ask(door, '/acts/resend', json)],
        [421, await ask(door, '/', foreign)],
        [500, await ask(door, '/broken', { headers })],
      ] as const
      for (const [status, answer] of answers) {
        expect(answer.status).toBe(status)
        expect(answer.headers).toMatchObject(wanted)
        const isStrict = publicUrl?.startsWith('https:')
        expect(answer.headers['strict-transport-security']).toBe(
          isStrict ? 'max-age=31536000' : undefined,
        )
        expect(answer.body).not.toContain('hunter2')
      }
    },
  )

  test('of /metrics, /healthz and /readyz is as it was, for everybody', async () => {
    const door = await aDoor(store())
    for (const path of ['/metrics', '/healthz', '/readyz']) {
      const { status, headers } = await ask(door, path)
      expect(status).toBe(200)
      expect(Object.keys(headers).toSorted()).toEqual([
        'cache-control',
        'connection',
        'content-length',
        'content-type',
        'date',
        'x-content-type-options',
      ])
    }
  })
})

test('while Redis is away people are told so, and programs, in two seconds', async () => {
  const server = await startRedis({ mayCrash: true })
  onTestFinished(() => server.stop())
  const redis = connectTo(server.url)
  onTestFinished(() => redis.disconnect())
  const door = await aDoor({ redis, keys: tests.keys() })
  const { headers } = await signedIn(door)
  await server.kill()
  const answers = await Promise.all([
    ask(door, '/', { headers }),
    ask(door, '/api/v1/status', { headers }),
    ask(door, '/sign-in', { body: { name: 'ana', password: 'a guess' } }),
  ])
  for (const answer of answers) {
    expect(answer.status).toBe(503)
    expect(answer.headers['retry-after']).toBe('1')
    expect(answer.body).toContain('Redis does not answer; try again.')
  }
  expect(door.judged.hashes.length).toBe(1)
  await server.restart()
  await expect.poll(async () => (await ask(door, '/', { headers })).status).not.toBe(503)
})
