import { afterEach, describe, expect, test } from 'vitest'
import type { EndMode, SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import {
  wireLegacyPage,
  type WireLegacyPage,
} from '../../../src/upstream/resources/legacy-search.ts'
import { ask, tokenOf, type Answer } from './client.ts'

const open: Sandbox[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((sandbox) => sandbox.close()))
})

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ enforceLimits: false, ...options })
  open.push(sandbox)
  return sandbox
}

const path = '/firework/v2/search/'

function read(sandbox: Sandbox, token: string, to: string, method = 'GET'): Promise<Answer> {
  return ask(`${sandbox.url}${to}`, { method, headers: { authorization: `Bearer ${token}` } })
}

async function pageAt(sandbox: Sandbox, token: string, to: string): Promise<WireLegacyPage> {
  const answer = await read(sandbox, token, to)
  if (answer.status !== 200) throw new Error(`no page: ${answer.status} ${answer.text}`)
  return wireLegacyPage.parse(answer.json)
}

function uidOf(item: unknown): string {
  return (item as { header: { uid: string } }).header.uid
}

async function found(sandbox: Sandbox, query: string): Promise<string[]> {
  const page = await pageAt(sandbox, await tokenOf(sandbox), `${path}?size=500&${query}`)
  expect(page.nb_hits).toBe(page.items.length)
  return page.items.map(uidOf)
}

describe('a walk', () => {
  type Follow = (page: WireLegacyPage) => string | null | undefined
  const ways: [string, Follow][] = [
    ['links.next', ({ links }) => links?.next],
    [
      'search_after',
      ({ search_after: after }) =>
        after && `${path}?order=asc&size=7&search_after=${encodeURIComponent(after)}`,
    ],
    [
      'search_after sent as from',
      ({ search_after: after }) =>
        after && `${path}?order=asc&size=7&from=${encodeURIComponent(after)}`,
    ],
  ]
  const ends: EndMode[] = ['full', 'empty', 'absent']

  test.each(ways.flatMap(([name, follow]) => ends.map((end) => [name, end, follow] as const)))(
    'by %s with end %s reads every event once, in order',
    async (_name, endMode, follow) => {
      const sandbox = await start({ endMode, backlog: 30, shortPages: 0.3, emptyPages: 0.3 })
      const token = await tokenOf(sandbox)
      const uids: string[] = []
      const ends: unknown[] = []
      let to: string | null | undefined = `${path}?order=asc&size=7`
      while (to) {
        const page: WireLegacyPage = await pageAt(sandbox, token, to)
        expect(page.nb_hits).toBe(30)
        uids.push(...page.items.map(uidOf))
        to = follow(page)
        ends.push(page.search_after ?? null, page.links?.next ?? null)
      }
      expect(ends.slice(-2)).toEqual([null, null])
      const inOrder = sandbox.events().toSorted((a, b) => a.createdAtMs - b.createdAtMs)
      expect(uids).toEqual(inOrder.map(({ uid }) => uid))
      expect(sandbox.violations().changedScans).toBe(0)
    },
  )

  test('POST carries the same parameters in the query; ten items, newest first, are the default', async () => {
    const sandbox = await start({ backlog: 15 })
    const token = await tokenOf(sandbox)
    const [got, posted] = [
      await read(sandbox, token, path),
      await read(sandbox, token, path, 'POST'),
    ]
    expect(posted.json).toEqual(got.json)
    const page = wireLegacyPage.parse(got.json)
    const newest = sandbox.events().toSorted((a, b) => b.createdAtMs - a.createdAtMs)
    expect(page.items.map(uidOf)).toEqual(newest.slice(0, 10).map(({ uid }) => uid))
    expect(page.links?.next).toMatch(/^\/firework\/v2\/search\/\?from=/)
  })

  test('a cursor that is none or expired is refused, and one with other parameters is noticed', async () => {
    const sandbox = await start({ backlog: 15 })
    const token = await tokenOf(sandbox)
    const refusal = { status: 400, json: { code: 'INVALID_CURSOR' } }
    expect(await read(sandbox, token, `${path}?search_after=x`)).toMatchObject(refusal)
    const { links } = await pageAt(sandbox, token, path)
    await read(sandbox, token, `${links?.next}&size=9`)
    expect(sandbox.violations().changedScans).toBe(1)
    sandbox.expireCursors()
    expect(await read(sandbox, token, `${links?.next}`)).toMatchObject(refusal)
  })
})

describe('parameters', () => {
  test('types are names or groups, repeated or with commas between', async () => {
    const sandbox = await start()
    const types = [
      'forum_post',
      'stealer_log',
      'cc',
      'paste',
      'leak',
      'leaked_credential',
      'lookalike',
    ]
    for (const type of types) sandbox.addEvent({ type, uid: `${type}/s/1` })
    sandbox.addEvent({ type: 'mesh_relay', uid: 'mesh_relay/s/1' })
    const typesOf = async (query: string): Promise<string[]> =>
      (await found(sandbox, query)).map((uid) => uid.split('/')[0] ?? '').toSorted()
    expect(await typesOf('types=illicit_networks')).toEqual(['cc', 'forum_post', 'stealer_log'])
    expect(await typesOf('types=leaks&types=open_web')).toEqual(['leak', 'paste'])
    expect(await typesOf('types=domains,paste')).toEqual(['lookalike', 'paste'])
    expect(await typesOf('types=forum_content')).toEqual(['forum_post'])
    expect(await typesOf('types=experimental')).toEqual(['mesh_relay'])
    expect(await typesOf('types=cc&experimental_types=mesh_relay')).toEqual(['cc', 'mesh_relay'])
  })

  test('time, risks and the query narrow the search', async () => {
    const sandbox = await start()
    const at = (text: string): number => Date.parse(text)
    sandbox.addEvent({ uid: 'a', severity: 'info', createdAtMs: at('2026-01-01T00:00:00Z') })
    sandbox.addEvent({ uid: 'b', severity: 'high', createdAtMs: at('2026-01-02T00:00:00Z') })
    sandbox.addEvent({
      uid: 'c',
      severity: 'low',
      override: 'high',
      createdAtMs: at('2026-01-03T00:00:00Z'),
    })
    expect(await found(sandbox, 'time=2026-01-02T00:00:00Z@2026-01-02T12:00:00Z')).toEqual(['b'])
    expect(await found(sandbox, 'time=2026-01-02@2026-01-03&order=asc')).toEqual(['b', 'c'])
    expect(await found(sandbox, 'risks=4')).toEqual(['c', 'b'])
    expect(await found(sandbox, 'risks=1,4&order=asc')).toEqual(['a', 'b', 'c'])
    expect(await found(sandbox, 'query=uid:b OR uid:a&order=asc')).toEqual(['a', 'b'])
    expect(await found(sandbox, 'query=')).toHaveLength(3)
    expect(await found(sandbox, 'has_modified_risk_score=true')).toEqual(['c'])
    expect(await found(sandbox, 'event_action=risk_score_edited')).toEqual(['c'])
  })

  test('tags are any of them, or all; notes and actions are as the tenant left them', async () => {
    const sandbox = await start()
    const free = { tags: [], notes: null }
    sandbox.addEvent({ ...free, uid: 'a', createdAtMs: 4, tags: ['vip', 'triage'] })
    sandbox.addEvent({ ...free, uid: 'b', createdAtMs: 3, tags: ['vip'], remediatedAtMs: 9 })
    sandbox.addEvent({ ...free, uid: 'c', createdAtMs: 2, notes: 'seen' })
    sandbox.addEvent({ ...free, uid: 'd', createdAtMs: 1, ignoredAtMs: 7 })
    const cases: [string, string][] = [
      ['', 'abc'],
      ['tags=vip&tags=triage', 'ab'],
      ['tags=vip,triage&tags_query_operator=and', 'a'],
      ['has_notes=true', 'c'],
      ['has_notes=false', 'abc'],
      ['event_action=default', 'abc'],
      ['event_action=exclude_ignored', 'abc'],
      ['event_action=ignored', 'd'],
      ['event_action=remediated', 'b'],
      ['event_action=ignored_or_remediated', 'bd'],
      ['event_actions=ignored&event_actions=remediated', 'bd'],
    ]
    for (const [query, uids] of cases) {
      expect([query, (await found(sandbox, query)).join('')]).toEqual([query, uids])
    }
  })

  test('what another tenant noted is not to be seen', async () => {
    const sandbox = await start({
      groups: [
        { id: 1, name: 'Own', tenantId: 42, identifiers: [{ id: 5, name: 'own.example' }] },
        { id: 2, name: 'Other', tenantId: 43, identifiers: [{ id: 6, name: 'other.example' }] },
      ],
    })
    const noted = { tags: ['vip'], notes: 'theirs', override: 'critical', ignoredAtMs: 5 }
    sandbox.addEvent({ ...noted, uid: 'a', severity: 'low', groupIds: [2] })
    expect(await found(sandbox, 'tags=vip')).toEqual([])
    const { items } = await pageAt(sandbox, await tokenOf(sandbox), path)
    expect(items).toMatchObject([
      { header: { uid: 'a', tags: [], notes: null, ignored_at: null, risk: { score: 2 } } },
    ])
  })

  test('sort_by goes by creation, by arrival or by the last change', async () => {
    const sandbox = await start()
    sandbox.addEvent({ uid: 'a', createdAtMs: 10, arrivedAtMs: 900 })
    sandbox.addEvent({ uid: 'b', createdAtMs: 20, arrivedAtMs: 800, remediatedAtMs: 5000 })
    sandbox.addEvent({ uid: 'c', createdAtMs: 30, arrivedAtMs: 700 })
    const sorted: [string, string][] = [
      ['created', 'abc'],
      ['indexed', 'cba'],
      ['searchable', 'cba'],
      ['materialized', 'cba'],
      ['alertable-materialized', 'cba'],
      ['updated', 'cab'],
    ]
    for (const [key, uids] of sorted) {
      const read = await found(sandbox, `sort_by=${key}&order=asc`)
      expect([key, read.join('')]).toEqual([key, uids])
    }
  })

  test('fields are what of each item is told', async () => {
    const sandbox = await start()
    sandbox.addEvent({ uid: 'paste/site/1', type: 'paste', severity: 'high', override: null })
    const to = `${path}?fields=header.uid&fields=header.risk,metadata.source,missing.path`
    const { items } = await pageAt(sandbox, await tokenOf(sandbox), to)
    expect(items).toEqual([
      { metadata: { source: 'site' }, header: { uid: 'paste/site/1', risk: { score: 4 } } },
    ])
  })

  test('global policies and a time zone change nothing of what is found', async () => {
    const sandbox = await start({ backlog: 3 })
    const plain = await found(sandbox, '')
    expect(await found(sandbox, 'use_global_policies=false&time_zone=Europe/Zurich')).toEqual(plain)
  })

  test.each([
    ['query=(a', 'query: a parenthesis without its end'],
    ['time=2026-01-01', 'time: '],
    ['time=a@b', 'time: not of the form from@to, both of them timestamps'],
    ['size=0', 'size: '],
    ['types=nonsense', 'types.0: '],
    ['risks=6', 'risks.0: '],
    ['event_action=nonsense', 'event_action: '],
    ['sort_by=nonsense', 'sort_by: '],
    ['order=up', 'order: '],
    ['time_zone=Mars/Olympus', 'time_zone: unknown'],
    ['has_notes=perhaps', 'has_notes: '],
    ['tags_query_operator=xor', 'tags_query_operator: '],
    ['colour=red', 'Unrecognized key'],
  ])('%s is refused', async (query, said) => {
    const sandbox = await start()
    const answer = await read(sandbox, await tokenOf(sandbox), `${path}?${query}`)
    expect(answer).toMatchObject({ status: 400, json: { code: 'BAD_REQUEST' } })
    expect((answer.json as { message: string }).message).toContain(said)
  })
})

test('an item has the older shape, with what a stealer log holds', async () => {
  const sandbox = await start()
  const event = sandbox.addEvent({ type: 'stealer_log', severity: 'critical', createdAtMs: 1_000 })
  const { items } = await pageAt(sandbox, await tokenOf(sandbox), path)
  expect(items).toMatchObject([
    {
      metadata: { estimated_created_at: '1970-01-01T00:00:01.000000+00:00' },
      header: {
        uid: event.uid,
        type: 'stealer_log',
        title: expect.any(String),
        source: 'stealer_logs_live',
        timestamp: '1970-01-01T00:00:01.000000+00:00',
        tags: event.tags,
      },
      data: {
        uid: event.uid,
        malware_information: { malware_family: expect.any(String) },
        credentials: expect.arrayContaining([
          expect.objectContaining({ password: expect.any(String) }),
        ]),
        cookies: expect.any(Array),
      },
    },
  ])
})

test('every generated event has an item that is JSON with a title and a risk', async () => {
  const sandbox = await start({ backlog: 300 })
  const { items } = await pageAt(sandbox, await tokenOf(sandbox), `${path}?size=300`)
  for (const item of items) {
    const { header } = item as { header: { title: unknown; risk: { score: number } } }
    expect(header.title).toEqual(expect.stringMatching(/./s))
    expect([1, 2, 3, 4, 5]).toContain(header.risk.score)
  }
})

test('a legacy search costs of the month’s quota and counts against the search limit', async () => {
  const sandbox = await start({ backlog: 3, searchQuota: { prefix: 'X-Test-', searches: 5 } })
  const token = await tokenOf(sandbox)
  const left = async (to: string): Promise<string | null> =>
    (await read(sandbox, token, to)).headers.get('x-test-global-searches-remaining')
  expect(await left(path)).toBe('4')
  expect(await left(`${path}?risks=1,2,3`)).toBe('4')
  expect(await left(`${path}?query=example`)).toBe('3')
  expect(sandbox.requests.at(-1)?.tier).toBe('search')
})
