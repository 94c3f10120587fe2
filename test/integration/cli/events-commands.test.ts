/** `events search`, `get` and `expand` against the pretend service. */
import { describe, expect, test } from 'vitest'
import { withheldText } from '../../../src/masking/masking.ts'
import type { SandboxEvent } from '../../../src/sandbox/history/history.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene, type ServiceScene } from './service-scene.ts'

const tests = redisForTests()
const secret = 'Hush-Hush-4711'
const cookieValue = 'c00kie-value-of-a-session'
const logUid = 'stealer_log/stealer_logs_live/4711'

/** A stealer log with three credentials and a cookie, an older post, and an ignored one. */
async function aScene(options: Parameters<typeof aServiceScene>[1] = {}): Promise<ServiceScene> {
  const scene = await aServiceScene(tests, options)
  const nowMs = Date.now()
  const add = (given: Partial<SandboxEvent>): unknown =>
    scene.sandbox.addEvent({
      groupIds: [1042],
      identifiers: [{ id: 77, name: 'example.com' }],
      ...given,
    })
  add({
    uid: 'forum_post/exploit/1',
    type: 'forum_post',
    severity: 'low',
    createdAtMs: nowMs - 3_600_000,
    highlights: { content: [`Ask <mark>Example</mark> Bank\r\nanna@example.com:${secret}`] },
    data: { content: `anna@example.com:${secret}`, actor: { name: 'darkcat' }, tags: ['a', 'b'] },
  })
  add({
    uid: logUid,
    type: 'stealer_log',
    severity: 'medium',
    override: 'critical',
    tags: ['token:github'],
    createdAtMs: nowMs - 60_000,
    highlights: { 'credentials.password': [`<mark>${secret}</mark>`] },
    data: { malware_information: { malware_family: 'StealC' } },
    stolen: {
      credentials: ['anna', 'ben', 'cleo'].map((name) => ({
        url: `https://vpn.example.com/login?${name}=${secret}`,
        username: `${name}@example.com`,
        password: secret,
        application: 'Outlook',
      })),
      cookies: [
        {
          host_key: 'vpn.example.com',
          path: '/',
          expires_utc: '2027-01-01T00:00:00',
          name: 'SSO_AUTH',
          value: cookieValue,
        },
      ],
    },
  })
  add({
    uid: 'paste/paste_site/1',
    type: 'paste',
    severity: 'high',
    createdAtMs: nowMs - 7_200_000,
    ignoredAtMs: nowMs,
    tags: ['vip'],
  })
  return scene
}

interface Item {
  metadata: { uid: string }
}

function uidsIn(out: string): string[] {
  return (JSON.parse(out) as { items: Item[] }).items.map(({ metadata }) => metadata.uid)
}

describe('events search', () => {
  test('finds globally what it is asked for, and says what is left of the quota', async () => {
    const { run } = await aScene({ searchQuota: 50 })
    const found = await run('events', 'search', '--domain', 'example.com', '--output', 'json')
    expect(uidsIn(found.out)).toContain(logUid)
    expect(found.err).toBe('49 global searches left this month\n')
    const none = await run('events', 'search', '--domain', 'nowhere.example')
    expect(none).toMatchObject({ code: 0, out: 'nothing was found\n' })
  })

  test.each([
    [['--email', 'anna@example.com'], { type: 'email', email: 'anna@example.com' }],
    [['--keyword', 'darkcat'], { type: 'keyword', keyword: 'darkcat' }],
    [['--query', 'a AND b'], { type: 'query_string', query_string: 'a AND b' }],
    [['--username', 'anna'], { type: 'username', username: 'anna' }],
    [['--brand', 'Example'], { type: 'brand', name: 'Example' }],
    [['--bin', '411111'], { type: 'bin', bin: '411111' }],
    [['--ip', '203.0.113.7'], { type: 'ip', ip: '203.0.113.7' }],
    [['--azure-tenant', 'contoso'], { type: 'azure_tenant', tenant_id: 'contoso' }],
  ])('%j asks for that', async (args, query) => {
    const { run, sent } = await aServiceScene(tests)
    expect(await run('events', 'search', ...args)).toMatchObject({ code: 0, err: '' })
    expect(sent()).toMatchObject([{ body: { query, size: 10, order: 'desc' } }])
  })

  test('asks for a secret, or reads it, and shows it nowhere', async () => {
    const { runGiven, runAt, sent } = await aScene()
    const read = await runGiven(`${secret}\n`, 'events', 'search', '--secret', '--output=json')
    expect(uidsIn(read.out)).toContain(logUid)
    const typed = await runAt(secret, 'events', 'search', '--secret')
    expect(typed.out).toContain(logUid)
    expect(`${read.out}${read.err}${typed.out}${typed.err}`).not.toContain(secret)
    expect(sent().map(({ body }) => body)).toMatchObject([
      { query: { type: 'secret', secret } },
      { query: { type: 'secret', secret } },
    ])
    const none = await runGiven('', 'events', 'search', '--secret')
    expect(none).toMatchObject({ code: 2, err: expect.stringContaining('no secret was given') })
  })

  test('passes every filter on', async () => {
    const { run, sent } = await aScene()
    const filters = ['--type=paste,leak', '--severity=high,critical', '--since=7d', '--until=1d']
    await run('events', 'search', '--group=1042', ...filters, '--tag=vip,x')
    await run('events', 'search', '--group=1042', '--severity=HIGH', '--limit=5')
    await run('events', 'search', '--group=1042', '--severity=high,')
    const [whole, higher, exact] = sent().map(({ body }) => body as { filters: object })
    expect(whole).toEqual({
      filters: {
        severity: ['high', 'critical'],
        type: ['paste', 'leak'],
        estimated_created_at: { gte: expect.any(String), lte: expect.any(String) },
        tags: ['vip', 'x'],
      },
      size: 10,
      order: 'desc',
    })
    expect(higher).toEqual({ filters: { severity: 'high' }, size: 5, order: 'desc' })
    expect(exact?.filters).toEqual({ severity: ['high'] })
  })

  test('machines get every field, and no secret unless it is asked for', async () => {
    const { run } = await aScene()
    const ask = ['events', 'search', '--group', '1042']
    for (const form of ['text', 'json', 'ndjson']) {
      const { out } = await run(...ask, '--output', form)
      expect(out).toContain(logUid)
      expect(out).not.toContain(secret)
    }
    for (const form of ['text', 'json', 'ndjson']) {
      expect((await run(...ask, '--output', form, '--reveal')).out).toContain(secret)
    }
    const [line = ''] = (await run(...ask, '--output=ndjson')).out.split('\n')
    expect(JSON.parse(line)).toMatchObject({
      metadata: { uid: logUid, type: 'stealer_log', flare_url: expect.stringContaining('https:') },
      tenant_metadata: { severity: { override: 'critical' }, tags: ['token:github'] },
      highlights: { 'credentials.password': ['H••••1'] },
      identifiers: [{ id: 77, name: 'example.com' }],
    })
  })

  test('withholds a line of a dump, whatever the event is', async () => {
    const { run, sandbox } = await aServiceScene(tests)
    const highlights = { content: ['anna:<mark>Another</mark>-Secret-1'] }
    sandbox.addEvent({ type: 'chat_message', groupIds: [1042], highlights })
    for (const form of ['text', 'json']) {
      const { out } = await run('events', 'search', '--group=1042', '--output', form)
      expect(out).toContain(withheldText)
      expect(out).not.toMatch(/anna|Another/)
    }
  })

  test('goes on at the cursor of the service', async () => {
    const { run, sandbox } = await aScene()
    sandbox.addEvents(25, { groupIds: [1042] })
    const ask = [
      'events',
      'search',
      '--group=1042',
      `--since=${new Date(Date.now() - 86_400_000).toISOString()}`,
      '--output=json',
    ]
    const uids: string[] = []
    for (let from: string[] = []; ;) {
      const { code, out } = await run(...ask, '--limit=7', ...from)
      expect(code).toBe(0)
      uids.push(...uidsIn(out))
      const { next } = JSON.parse(out) as { next: string | null }
      if (next === null) break
      from = ['--from', next]
    }
    expect(uids).toEqual(uidsIn((await run(...ask, '--all')).out))
    expect(uids).toHaveLength(27)
    expect(sandbox.violations().changedScans).toBe(0)
  })

  test('tells of what it cannot read, and shows the rest', async () => {
    const { run, sandbox } = await aScene()
    sandbox.addRawItem(1042, { metadata: { uid: 7 } })
    const { code, out, err } = await run('events', 'search', '--group', '1042', '--output=json')
    expect(code).toBe(0)
    expect(err).toMatch(/^an item is left out, it is not readable: metadata\.uid: /)
    expect(uidsIn(out)).toHaveLength(2)
  })

  test.each([
    [[], 'a search needs something to look for; name it, e.g. by --domain example.com'],
    [
      ['--domain=a.example', '--ip=::1'],
      'a search is for one thing; choose one of: --domain, --ip',
    ],
    [['--keyword='], 'It is empty; write a value.'],
    [['--group=0'], 'Write the id, a whole number of at least 1.'],
    [['--keyword=x', '--severity=high,hihg'], 'did you mean "high"?'],
    [['--keyword=x', '--since=soon'], '"soon" is neither a time nor a duration'],
    [['--keyword=x', '--since=1d', '--until=7d'], '--since lies after --until'],
    [['--keyword=x', '--limit=0'], 'Write a whole number from 1 to 1000000.'],
    [['--keyword=x', '--account=mian'], 'did you mean "main"?'],
  ])('%j is refused, and nothing is asked', async (args, said) => {
    const { run, sent } = await aServiceScene(tests)
    const { code, out, err } = await run('events', 'search', ...args)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(said)
    expect(sent()).toEqual([])
  })
})

describe('what the tenant watches for', () => {
  test('is found by the tenant and by an identifier', async () => {
    const { sandbox, run, sent } = await aServiceScene(tests)
    const nowMs = Date.now()
    const late = sandbox.addEvent({
      uid: 'paste/site/late',
      groupIds: [1043],
      identifiers: [{ id: 91, name: 'supplier.example' }],
      createdAtMs: nowMs - 100 * 3_600_000,
    })
    sandbox.addEvent({ uid: 'paste/site/old', groupIds: [1042], arrivedAtMs: nowMs - 7_200_000 })
    const uidsBy = async (...args: string[]): Promise<string[]> => {
      const { out } = await run('events', 'search', ...args, '--output=ndjson')
      return [...out.matchAll(/"uid":"([^"]+)"/g)].map(([, uid = '']) => uid)
    }
    expect((await uidsBy('--tenant')).toSorted()).toEqual(['paste/site/late', 'paste/site/old'])
    expect(await uidsBy('--identifier=91')).toEqual([late.uid])
    expect(sent().map(({ path }) => path)).toEqual([
      '/firework/v4/events/tenant/_search',
      '/firework/v4/events/identifiers/91/_search',
    ])
  })

  test.each([
    [
      ['--tenant', '--group=1042'],
      "error: option '--group <id>' cannot be used with option '--tenant'",
    ],
    [
      [],
      'a search needs something to look for; name it, e.g. by --domain example.com, or a place by --tenant, --group 1042 or --identifier 77',
    ],
  ])('is looked for in one place: %j', async (args, said) => {
    const { run, sandbox } = await aServiceScene(tests)
    const { code, err } = await run('events', 'search', ...args)
    expect(code).toBe(2)
    expect(err.split('\n')[0]).toBe(said)
    expect(sandbox.requests).toEqual([])
  })
})
