import { afterEach, describe, expect, test } from 'vitest'
import type { EndMode, SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import type { z } from 'zod'
import { wireLegacyPage } from '../../../src/upstream/resources/legacy-search.ts'
import { ask, tokenOf, type Answer } from './client.ts'

type LegacyPage = z.infer<typeof wireLegacyPage> & { links?: { next?: string | null } }

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

async function pageAt(sandbox: Sandbox, token: string, to: string): Promise<LegacyPage> {
  const answer = await read(sandbox, token, to)
  if (answer.status !== 200) throw new Error(`no page: ${answer.status} ${answer.text}`)
  return wireLegacyPage.parse(answer.json) as LegacyPage
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
  type Follow = (page: LegacyPage) => string | null | undefined
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
        const page: LegacyPage = await pageAt(sandbox, token, to)
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
})

describe('parameters', () => {
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
