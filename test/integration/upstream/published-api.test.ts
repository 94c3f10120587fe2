/**
 * Client, commands and sandbox against what the service's public documents say of each operation:
 * paths, parameters, bodies, and answers in four manners. What is said there stands in
 * `test/fixtures/published-api.ts`.
 */
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { parseCredential } from '../../../src/feed-types/credentials.ts'
import { parseItem } from '../../../src/feed-types/events.ts'
import { parseLegacyItem } from '../../../src/feed-types/legacy-search.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import type { UpstreamClient } from '../../../src/upstream/client.ts'
import {
  credentialIncludes,
  eventFilterTypes,
} from '../../../src/upstream/resources/enumerations.ts'
import type { EventQuery, GroupSearchBody } from '../../../src/upstream/resources/events.ts'
import { wireCookie, wireCredentialUrl } from '../../../src/upstream/resources/credentials.ts'
import {
  wireGroupEntry,
  wireIdentifier,
  wireTenantAlert,
} from '../../../src/upstream/resources/identifiers.ts'
import type { WireSearchPage } from '../../../src/upstream/resources/page.ts'
import {
  operations,
  vocabularies,
  type Operation,
  type Shape,
} from '../../fixtures/published-api.ts'
import { startHttpServer } from '../../support/http-server.ts'
import { redisForTests } from '../../support/ledger.ts'
import {
  answersOf,
  fieldsOf,
  manners,
  operationFor,
  problemsOf,
  requestProblems,
  valueOf,
  type Manner,
} from '../../support/published-api.ts'
import { json, pretendService } from '../../support/replica.ts'
import { aFile } from '../cli/tocsin.ts'
import { aReplica, asked } from './operations/scene.ts'

const tests = redisForTests()
const counts = { requests: 0, answers: 0, rehearsed: 0 }
const covered = new Set<string>()

afterAll(() => {
  const { requests, answers, rehearsed } = counts
  process.stdout.write(
    `public documents: ${covered.size} of ${operations.length} operations, ${requests} requests and ${answers} answers checked, ${rehearsed} requests rehearsed in the sandbox\n`,
  )
})

const uid = 'paste/site/1'
const uuid = '7e5f1c70-0000-4000-8000-000000000001'

interface PublishedService {
  url: string
  client: UpstreamClient
  /** What of the requests so far is not as the documents have it. */
  problems: () => string[]
}

/** Answers every operation in one manner, and checks every request. */
async function aPublishedService(manner: Manner): Promise<PublishedService> {
  const server = await startHttpServer()
  onTestFinished(() => server.stop())
  const problems: string[] = []
  const service = pretendService(server)
  service.answer(({ method, path, body }) => {
    counts.requests += 1
    // what it said itself goes back to it as it came
    const isItsOwn = (problem: string): boolean =>
      method === 'PUT' && /added_later|word_of_tomorrow/.test(problem)
    problems.push(...requestProblems({ method, path, body }).filter((one) => !isItsOwn(one)))
    const operation = operationFor(method, path)
    if (!operation) return json(404, { detail: 'Not Found' })
    covered.add(operation.name)
    counts.answers += 1
    return json(200, pageFor(operation, manner, { path, body }))
  })
  const { client } = aReplica(tests, { baseUrl: server.url })
  return { url: server.url, client, problems: () => problems }
}

/** The page that the request's cursor names. */
function pageFor(
  operation: Operation,
  manner: Manner,
  { path, body }: { path: string; body: string },
): unknown {
  const query = new URLSearchParams(path.split('?')[1])
  const given = body === '' ? {} : (JSON.parse(body) as { from?: string })
  const cursor = query.get('search_after') ?? query.get('from') ?? given.from
  const wanted = query.get('uid')
  const status = operation.name.includes('/requests/') ? { status: 'completed' } : {}
  const fixed = { ...status, ...(wanted !== null && { uid: wanted }) }
  const pages = answersOf(operationWithItems(operation, query), manner, fixed)
  if (cursor === undefined) return pages[0]
  const isLast = pages.length === 2 || cursor === 'cursor-2'
  return pages[isLast ? pages.length - 1 : 1]
}

/** The expansion's answer is of the field that was asked for. */
function operationWithItems(operation: Operation, query: URLSearchParams): Operation {
  const { answer } = operation
  if (typeof answer !== 'object' || !('oneOf' in answer)) return operation
  return { ...operation, answer: answer.oneOf[query.get('field') === 'cookies' ? 1 : 0] as Shape }
}

/** All items of a walk, page after page until `next` is empty. */
async function walk(
  ask: (from: string | null) => Promise<WireSearchPage>,
): Promise<readonly unknown[]> {
  const items: unknown[] = []
  for (let from: string | null = null; ;) {
    const page: WireSearchPage = await ask(from)
    items.push(...page.items)
    if (!page.next) return items
    from = page.next
  }
}

const from = (cursor: string | null): { from?: string } => (cursor === null ? {} : { from: cursor })

const eventQueries: EventQuery[] = [
  { type: 'domain', fqdn: 'example.com' },
  { type: 'email', email: 'ann@example.com' },
  { type: 'keyword', keyword: 'acme' },
  { type: 'query_string', query_string: 'acme' },
  { type: 'username', username: 'ann' },
  { type: 'github_repository', repo_owner: 'acme', repo_name: 'site' },
  { type: 'brand', name: 'Acme' },
  { type: 'name', first_name: 'Ann', last_name: 'Lee', is_strict: false },
  { type: 'bin', bin: '424242' },
  { type: 'ip', ip: '192.0.2.1' },
  { type: 'credentials', username: 'ann', password: 'pa55' },
  { type: 'secret', secret: 'pa55' },
  { type: 'azure_tenant', tenant_id: 'acme' },
]

const moment = '2026-07-01T00:00:00Z'
const searches: GroupSearchBody[] = [
  { size: 10, order: 'asc' },
  ...eventQueries.map((query) => ({ query, size: 10, order: 'asc' as const })),
  {
    size: 1,
    order: 'desc',
    filters: {
      severity: 'high',
      type: [...eventFilterTypes],
      estimated_created_at: { gt: moment, gte: moment, lt: moment, lte: moment },
      materialized_at: { gt: moment, gte: moment, lt: moment, lte: moment },
      tags: ['vip'],
      is_ignored: true,
      is_remediated: false,
    },
  },
  { size: 10, order: 'asc', filters: { severity: ['low', 'critical'] } },
]

type Items = readonly unknown[]
interface ClientCheck {
  name: string
  ask: (client: UpstreamClient) => Promise<Items | void>
  /** What is wrong with an item as the daemon reads it; null: nothing. */
  wrongWith?: (item: unknown) => unknown
}

const readEvent = (item: unknown): unknown => {
  const parsed = parseItem(item)
  return parsed.ok ? null : parsed
}
const readLegacy = (item: unknown): unknown => {
  const parsed = parseLegacyItem(item)
  return parsed.ok ? null : parsed
}
const readCredential = (item: unknown): unknown => {
  const parsed = parseCredential(item, 'high')
  return parsed.ok ? null : parsed
}

const credentialBody = {
  query: { type: 'domain', fqdn: 'a.example' },
  size: 100,
  order: 'asc',
} as const
const wanted = {
  ...credentialBody,
  include: [...credentialIncludes],
  filters: { imported_at: { gte: moment, lte: moment } },
}
const tier = 'search' as const
const assetGiven = {
  name: 'a.example',
  type: 'domain' as const,
  search_types: ['leak', 'valid_credential'] as ('leak' | 'valid_credential')[],
  data: { fqdn: 'a.example' },
  risks: [4, 5],
}

const checks: ClientCheck[] = [
  ...searches.flatMap((body, index): ClientCheck[] => [
    {
      name: `group search ${index}`,
      ask: (client) =>
        walk(async (cursor) => {
          const request = { groupId: 1042, body: { ...body, ...from(cursor) }, tier, ...asked() }
          return (await client.searchGroupEvents(request)).page
        }),
      wrongWith: readEvent,
    },
  ]),
  {
    name: 'tenant search',
    ask: (client) =>
      walk(async (cursor) => {
        const body = { ...searches.at(-2)!, ...from(cursor) }
        return (await client.searchTenantEvents({ body, tier, ...asked() })).page
      }),
    wrongWith: readEvent,
  },
  {
    name: 'identifier search',
    ask: (client) =>
      walk(async (cursor) => {
        const request = { identifier: 77, body: { ...searches.at(-1)!, ...from(cursor) } }
        return (await client.searchIdentifierEvents({ ...request, tier, ...asked() })).page
      }),
    wrongWith: readEvent,
  },
  ...eventQueries.map((query): ClientCheck => ({
    name: `global search for ${query.type}`,
    ask: (client) =>
      walk(async (cursor) => {
        const body = { ...searches.at(-2)!, query, ...from(cursor) }
        return (await client.searchEvents({ body, ...asked() })).page
      }),
    wrongWith: readEvent,
  })),
  {
    name: 'full event',
    ask: async (client) => {
      const answer = await client.getEvent({ uid, ...asked() })
      if (answer.kind === 'none') throw new Error(`no full event: ${answer.why}`)
    },
  },
  {
    name: 'older full event',
    ask: async (client) => {
      const answer = await client.getActivity({ uid, ...asked() })
      if (answer.kind === 'none') throw new Error(`no older full event: ${answer.why}`)
    },
  },
  ...(['credentials', 'cookies'] as const).map((field): ClientCheck => ({
    name: `expansion of ${field}`,
    ask: (client) =>
      walk((cursor) =>
        client.expandEvent({ expansion: { uid, field, size: 20, ...from(cursor) }, ...asked() }),
      ),
  })),
  {
    name: 'filter words',
    ask: async (client) => [
      ...(await client.eventTypeFilters(asked())),
      ...(await client.eventSeverityFilters(asked())),
    ],
  },
  ...(['searchCredentials', 'searchAstpCredentials'] as const).map((search): ClientCheck => ({
    name: search,
    ask: (client) =>
      walk(async (cursor) => {
        const body = { ...wanted, ...from(cursor) }
        return (await client[search]({ body, ...asked() })).page
      }),
    wrongWith: readCredential,
  })),
  {
    name: 'credential feed',
    ask: (client) =>
      walk(async (cursor) => {
        const request = { identifier: 77, from: cursor, size: 20 }
        return (await client.credentialFeed({ ...request, ...asked() })).page
      }),
    wrongWith: readCredential,
  },
  ...(['GET', 'POST'] as const).flatMap((method): ClientCheck[] => [
    {
      name: `tenant credentials by ${method}`,
      ask: (client) =>
        walk(async (cursor) => {
          const request = { from: cursor, size: 20, order: 'asc', method } as const
          return (await client.tenantCredentials({ ...request, ...asked() })).page
        }),
      wrongWith: readCredential,
    },
    {
      name: `legacy search by ${method}`,
      ask: (client) =>
        walk(async (cursor) => {
          const parameters = {
            time: '2026-01-01T00:00:00Z@2026-02-01T00:00:00Z',
            size: 10,
            tags: ['vip'],
            types: ['leak', 'valid_credential'] as ('leak' | 'valid_credential')[],
            event_action: 'default' as const,
            risks: [4, 5],
            order: 'asc' as const,
            sort_by: 'created' as const,
            query: 'acme',
          }
          return (await client.legacySearch({ parameters, from: cursor, method, ...asked() })).page
        }),
      wrongWith: readLegacy,
    },
  ]),
  ...(['listIdentifiers', 'listOlderIdentifiers'] as const).map((list): ClientCheck => ({
    name: list,
    ask: (client) =>
      walk((cursor) => {
        const filters = { group: 5, types: ['domain' as const], isDisabled: false }
        const request = { filters: { ...filters, orderBy: 'name' as const }, size: 100 }
        return client[list]({ ...request, from: cursor, ...asked() })
      }),
    wrongWith: (item) => wireIdentifier.safeParse(item).error ?? null,
  })),
  {
    name: 'groups',
    ask: async (client) =>
      walk((cursor) => client.listGroups({ from: cursor, size: 20, ...asked() })),
    wrongWith: (item) => wireGroupEntry.safeParse(item).error ?? null,
  },
  {
    name: 'older groups',
    ask: (client) => client.listOlderGroups(asked()).then((groups) => void groups),
  },
  {
    name: 'health',
    ask: (client) => client.checkHealth(AbortSignal.timeout(20_000)),
  },
  {
    name: 'alerts',
    ask: (client) => walk((cursor) => client.listAlerts({ from: cursor, size: 10, ...asked() })),
    wrongWith: (item) => wireTenantAlert.safeParse(item).error ?? null,
  },
  {
    name: 'cookies',
    ask: (client) =>
      walk(async (cursor) => {
        const times = { imported_after: moment, expires_after: moment }
        const words = { names: ['sid'], paths: ['/'], values: ['v'] }
        const body = { domain: 'a.example', ...times, ...words, size: 100, order: 'asc' } as const
        return (await client.searchCookies({ body: { ...body, ...from(cursor) }, ...asked() })).page
      }),
    wrongWith: (item) => wireCookie.safeParse(item).error ?? null,
  },
  {
    name: 'addresses of a credential',
    ask: (client) =>
      walk((cursor) => client.credentialUrls({ hash: 'x', from: cursor, size: 5_000, ...asked() })),
    wrongWith: (item) => wireCredentialUrl.safeParse(item).error ?? null,
  },
  {
    name: 'assets',
    ask: async (client) => {
      await client.createAsset({ asset: { ...assetGiven, assets_group_id: 5 }, ...asked() })
      await client.replaceAsset({ id: 77, asset: assetGiven, ...asked() })
      await client.toggleAsset({ id: 77, isDisabled: true, ...asked() })
      await client.deleteAsset({ id: 77, ...asked() })
      const email = { type: 'email' as const, data: { email: 'a@a.example' } }
      await client.createAsset({ asset: { ...assetGiven, ...email }, ...asked() })
      await client.replaceAsset({ id: 77, asset: { ...assetGiven, ...email }, ...asked() })
      await client.groupAlerts({ groupId: 1042, ...asked() })
    },
  },
  {
    name: 'policies',
    ask: async (client) => {
      const value = { keywords: ['acme'] }
      const policy = { name: 'x', type: 'INCLUDED_KEYWORDS', value } as const
      const assignment = { identifier_ids: [77], clean_past_events: false }
      await client.createPolicy({ policy, ...asked() })
      await client.getPolicy({ uuid, ...asked() })
      await client.listPolicies({ from: null, ...asked() })
      await client.updatePolicy({ uuid, name: 'x', value, ...asked() })
      await client.assignPolicy({ uuid, assignment, ...asked() })
      await client.listAssignments({ uuid, from: null, ...asked() })
      await client.unassignPolicy({ uuid, assignment, ...asked() })
      await client.listIdentifierPolicies({ identifier: 77, ...asked() })
      await client.deletePolicy({ uuid, ...asked() })
    },
  },
  {
    name: 'reports and tenants',
    ask: async (client) => {
      await client.getReport({ id: 5, ...asked() })
      await client.getReportRequest({ requestId: uuid, ...asked() })
      const tenant = { name: 'Acme', description: 'Rockets', industry: 'energy' } as const
      await client.createTenant({ organizationId: 7, tenant, ...asked() })
    },
  },
]

describe.each(manners)('answers with %s', (manner) => {
  test.each(checks)('are read by the client whole: $name', async ({ ask, wrongWith }) => {
    const { client, problems } = await aPublishedService(manner)
    const items = (await ask(client)) ?? []
    expect(problems()).toEqual([])
    expect(items.map((item) => wrongWith?.(item) ?? null)).toEqual(
      wrongWith ? [null, null, null] : items.map(() => null),
    )
  })

  const commands: string[][] = [
    ['events', 'search', '--domain=example.com', '--all'],
    ['events', 'search', '--name=Ann Lee'],
    ['events', 'search', '--group=1042', '--severity=high', '--type=leak', '--since=7d', '--all'],
    ['events', 'search', '--tenant', '--matched-since=1h', '--all'],
    ['events', 'search', '--identifier=77', '--all'],
    ['events', 'get', uid],
    ['events', 'expand', uid, '--field=credentials', '--all'],
    ['events', 'expand', uid, '--field=cookies', '--all'],
    ['events', 'legacy-search', '--query=acme', '--all'],
    ['credentials', 'search', '--domain=a.example', '--include=urls', '--all'],
    ['credentials', 'search', '--domain=a.example', '--without-quota', '--all'],
    ['credentials', 'feed', '77', '--all'],
    ['credentials', 'feed', '--tenant', '--order=asc', '--all'],
    ['assets', 'create', 'a.example', '--type=domain', '--search-types=all'],
    ['assets', 'disable', '77'],
    ['alerts', 'get', '1042'],
    ['alerts', 'list', '--all'],
    ['cookies', 'search', '--domain=a.example', '--since=7d', '--live', '--all'],
    ['credentials', 'urls', '43804850e72d054f3648660557330630', '--all'],
    ['identifiers', 'list', '--group=5', '--type=domain', '--enabled', '--all'],
    ['groups', 'list', '--all'],
    ['policies', 'create', '--name=x', '--included-keywords=acme'],
    ['policies', 'get', uuid],
    ['policies', 'list'],
    ['policies', 'list', '--identifier=77'],
    ['policies', 'assign', uuid, '--to=77'],
    ['policies', 'delete', uuid, '--yes'],
    ['reports', 'get', '5'],
    ['reports', 'get', '--request', uuid],
    ['tenants', 'create', '--name=Acme', '--industry=energy'],
  ]

  test('are understood by every command, whose requests the service takes', async () => {
    const { url, problems } = await aPublishedService(manner)
    const config = aFile('tocsin.yaml', configText(url))
    const hasReport = manner === 'everything' || manner === 'odd'
    for (const command of commands) {
      const { code, said } = await run([...command, '--config', config])
      if (said.includes('completed, and yet there is no report') && !hasReport) continue
      expect([command, code, code === 0 ? '' : said]).toEqual([command, 0, ''])
      expect(problems()).toEqual([])
    }
  })
})

function configText(url: string): string {
  return `redis: { url: "${tests.server.url}", prefix: published-${counts.requests} }
accounts:
  main: { base_url: "${url}", api_key: fw_k3y, limits: { search: 100, basic: 100 } }
feeds:
  brand: { type: events, identifier_group: 1042 }
sinks:
  soc: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush" }
route: { sinks: [soc] }
`
}

async function run(args: string[]): Promise<{ code: number; said: string }> {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  input.end()
  const clock = { ...systemClock, sleep: () => Promise.resolve() }
  const stop = new AbortController().signal
  const code = await runProgram(args, { input, output, errors, stop, clock })
  output.end()
  errors.end()
  return { code, said: (await text(errors)) + (await text(output)).slice(0, 500) }
}

describe('the sandbox', () => {
  interface Rehearsal {
    sandbox: Sandbox
    send: (operation: Operation, asked: Sent) => Promise<{ status: number; body: unknown }>
  }
  interface Sent {
    query?: Record<string, unknown>
    body?: unknown
  }

  async function aRehearsal(): Promise<Rehearsal> {
    const sandbox = await startSandbox({ enforceLimits: false, alertsAs: 'array' })
    onTestFinished(() => sandbox.close())
    const place = { groupIds: [1042], identifiers: [{ id: 77, name: 'example.com' }] }
    sandbox.addEvent({ ...place, uid, type: 'stealer_log', override: null })
    sandbox.addEvent({ ...place, uid: 'paste/site/2', override: 'critical', tags: ['vip'] })
    sandbox.addCredentials(3, { domain: 'example.com' })
    const headers = { authorization: sandbox.apiKeys[0]! }
    const grant = await fetch(`${sandbox.url}/tokens/generate`, { method: 'POST', headers })
    const { token } = (await grant.json()) as { token: string }
    const auth = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const send = async (operation: Operation, { query, body }: Sent) => {
      const [method = '', path = ''] = operation.name.split(' ')
      const search = new URLSearchParams(
        Object.entries(query ?? {}).flatMap(([key, value]) =>
          [value].flat().map((one): [string, string] => [key, String(one)]),
        ),
      )
      const answer = await fetch(`${sandbox.url}${await placeIn(path)}?${search.toString()}`, {
        method,
        headers: auth,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const said = await answer.text()
      counts.rehearsed += 1
      return { status: answer.status, body: said === '' ? null : (JSON.parse(said) as unknown) }
    }
    const { reportId, id: requestId } = sandbox.addReportRequest({ readyAtMs: 0 })
    let policy: string | undefined
    const placeIn = async (path: string): Promise<string> => {
      if (path.includes('{policy_uuid}')) policy = await newPolicy()
      const ids: Record<string, string> = {
        identifier_group_id: '1042',
        assets_group_id: '1042',
        identifier_id: '77',
        asset_id: '77',
        organization_id: '7',
        policy_uuid: policy ?? uuid,
        report_id: String(reportId),
        request_info_id: requestId,
      }
      return path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => ids[name] ?? name)
    }
    const newPolicy = async (): Promise<string> => {
      const answer = await fetch(`${sandbox.url}/firework/v4/matching-policies`, {
        method: 'POST',
        headers: auth,
        body: JSON.stringify({ name: 'x', type: 'INCLUDED_KEYWORDS', value: { keywords: ['a'] } }),
      })
      return ((await answer.json()) as { uuid: string }).uuid
    }
    return { sandbox, send }
  }

  /** Fields whose words depend on others, or on what the sandbox holds. */
  const given: Record<string, Record<string, unknown>> = {
    'POST /firework/v2/assets/': { type: 'domain', data: { fqdn: 'new.example' }, risks: [4] },
    'PUT /firework/v2/assets/{asset_id}': {
      type: 'domain',
      data: { fqdn: 'b.example' },
      risks: [4],
    },
    'GET /firework/v4/events/': { uid },
    'GET /firework/v4/events/_expand': { uid },
    'GET /firework/v2/activities/': { uid },
  }
  const writtenIdentifier = { data: { type: 'domain', fqdn: 'a.example' }, group_id: 1042 }
  const fixedFor = ({ name }: Operation): Record<string, unknown> => ({
    identifier_ids: [77],
    assets_group_id: 1042,
    from: undefined,
    search_after: undefined,
    ...given[name],
    ...(/^(POST|PUT) .*v4\/identifiers\//.test(name) && writtenIdentifier),
  })

  /** Every request that one more word, or one field less, makes of a body or query. */
  function variants(shape: Shape, whole: Record<string, unknown>): Record<string, unknown>[] {
    if (typeof shape !== 'object' || !('fields' in shape)) return []
    return fieldsOf(shape.fields).flatMap(({ name, shape: inner, isRequired }) => {
      if (whole[name] === undefined) return []
      const put = (value: unknown): Record<string, unknown> => ({ ...whole, [name]: value })
      const less = isRequired ? [] : [without(whole, name)]
      if (typeof inner !== 'object') return less
      if ('words' in inner) return [...less, ...inner.words.map(put)]
      if ('list' in inner && typeof inner.list === 'object' && 'words' in inner.list) {
        return [...less, put([]), ...inner.list.words.map((word) => put([word]))]
      }
      if ('between' in inner) return [...less, put(inner.between[0]), put(inner.between[1])]
      if ('oneOf' in inner) {
        return [...less, ...inner.oneOf.map((one) => put(valueOf(one, 'everything')))]
      }
      if ('fields' in inner) {
        const within = variants(inner, whole[name] as Record<string, unknown>)
        return [...less, ...within.map(put)]
      }
      return less
    })
  }

  function without(whole: Record<string, unknown>, name: string): Record<string, unknown> {
    return Object.fromEntries(Object.entries(whole).filter(([key]) => key !== name))
  }

  /** Requests that break what the documents say, each in one place. */
  function mistakes(shape: Shape, whole: Record<string, unknown>): Record<string, unknown>[] {
    if (typeof shape !== 'object' || !('fields' in shape)) return []
    return fieldsOf(shape.fields).flatMap(({ name, shape: inner, isRequired }) => {
      const put = (value: unknown): Record<string, unknown> => ({ ...whole, [name]: value })
      const less = isRequired ? [without(whole, name)] : []
      if (typeof inner !== 'object') return inner === 'flag' ? [...less, put('perhaps')] : less
      if ('words' in inner) return [...less, put('no_such_word')]
      if ('list' in inner && typeof inner.list === 'object' && 'words' in inner.list) {
        return [...less, put(['no_such_word'])]
      }
      if ('between' in inner) return [...less, put(inner.between[0] - 1), put(inner.between[1] + 1)]
      if ('oneOf' in inner) return [...less, put({ type: 'no_such_kind' })]
      if ('fields' in inner && typeof whole[name] === 'object') {
        const within = mistakes(inner, whole[name] as Record<string, unknown>)
        return [...less, ...within.map(put)]
      }
      return less
    })
  }

  const shapesOf = ({ body }: Operation): readonly Shape[] => {
    if (body === undefined) return []
    return typeof body === 'object' && 'oneOf' in body ? body.oneOf : [body]
  }

  const part = (operation: Operation): { shape: Shape; as: 'query' | 'body' }[] => [
    ...shapesOf(operation).map((shape) => ({ shape, as: 'body' as const })),
    ...(operation.query ? [{ shape: { fields: operation.query }, as: 'query' as const }] : []),
  ]

  /** Which fields of which operation the sandbox judges by more than the documents say. */
  const isJudgedByMore = (operation: Operation, request: Record<string, unknown>): boolean =>
    // its data, of each type
    (/^(POST|PUT) .*v4\/identifiers\//.test(operation.name) &&
      JSON.stringify(request['data']) !== JSON.stringify(writtenIdentifier.data)) ||
    (operation.name.includes('/assets/') && (request['type'] ?? 'domain') !== 'domain') ||
    (operation.name.startsWith('PUT') &&
      typeof request['value'] === 'object' &&
      !('keywords' in (request['value'] ?? {})))

  test.each(operations)(
    'takes what is documented, and answers as documented: $name',
    async (operation) => {
      const { send } = await aRehearsal()
      covered.add(operation.name)
      const requests = part(operation).flatMap(({ shape, as }) => {
        const fixed = fixedFor(operation)
        const all = (manner: Manner): Record<string, unknown> =>
          valueOf(shape, manner, fixed) as Record<string, unknown>
        const whole = all('everything')
        const each = [whole, all('required'), ...variants(shape, whole)]
        const odd = as === 'body' ? [{ ...whole, added_later: 1 }] : []
        return [...each, ...odd]
          .filter((request) => !isJudgedByMore(operation, request))
          .map((request): Sent => ({ [as]: defined(request) }))
      })
      for (const request of requests.length > 0 ? requests : [{}]) {
        const { status, body } = await send(operation, request)
        const said = JSON.stringify({ request, body })
        expect([status, said]).toEqual([200, said])
        expect(problemsOf(operation.answer, body, false)).toEqual([])
        counts.answers += 1
      }
    },
  )

  test.each(operations.filter((operation) => part(operation).length > 0))(
    'refuses what breaks the documents: $name',
    async (operation) => {
      const { send } = await aRehearsal()
      const requests = part(operation).flatMap(({ shape, as }) => {
        const whole = valueOf(shape, 'everything', fixedFor(operation)) as Record<string, unknown>
        return mistakes(shape, whole).map((request): Sent => ({ [as]: defined(request) }))
      })
      for (const request of requests) {
        const { status } = await send(operation, request)
        expect([status >= 400 && status < 500, JSON.stringify(request)]).toEqual([
          true,
          JSON.stringify(request),
        ])
      }
    },
  )

  test('takes every filter word of the documents, and refuses every item type that is none', async () => {
    const { send } = await aRehearsal()
    const search = operations.find(({ name }) => name.includes('tenant/_search'))!
    const filters = new Set(vocabularies.filters)
    const others = vocabularies.items.filter((type) => !filters.has(type))
    expect([filters.size, vocabularies.items.length, others.length]).toEqual([59, 76, 39])
    for (const type of others) {
      const { status } = await send(search, { body: { filters: { type: [type] } } })
      expect([type, status]).toEqual([type, 422])
    }
    expect(new Set(eventFilterTypes)).toEqual(filters)
  })
})

function defined(request: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined))
}
