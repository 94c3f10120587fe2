import { afterEach, expect, test } from 'vitest'
import { readStolen } from '../../../src/sandbox/history/draft.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import {
  wireExpandedCookie,
  wireExpandedCredential,
  type WireSearchItem,
} from '../../../src/upstream/resources/events.ts'
import { ask, searchGroup, tokenOf, type Answer } from './client.ts'

const open: Sandbox[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((sandbox) => sandbox.close()))
})

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ enforceLimits: false, ...options })
  open.push(sandbox)
  return sandbox
}

function expand(sandbox: Sandbox, token: string, query: Record<string, string>): Promise<Answer> {
  const url = `${sandbox.url}/firework/v4/events/_expand?${new URLSearchParams(query).toString()}`
  return ask(url, { headers: { authorization: `Bearer ${token}` } })
}

interface WirePage {
  items: unknown[]
  next: string | null
}

async function walk(
  sandbox: Sandbox,
  token: string,
  query: Record<string, string>,
): Promise<WirePage[]> {
  const pages: WirePage[] = []
  let from: string | null = null
  do {
    const answer: Answer = await expand(sandbox, token, { ...query, ...(from && { from }) })
    if (answer.status !== 200) throw new Error(`no page: ${answer.status} ${answer.text}`)
    const page = answer.json as WirePage
    pages.push(page)
    from = page.next
  } while (from)
  return pages
}

function credentials(
  count: number,
): { url: string; username: string; password: string; application: string }[] {
  return Array.from({ length: count }, (_unused, index) => ({
    url: `https://site${index}.test/`,
    username: `user${index}`,
    password: `Pa55-${index}`,
    application: 'Firefox',
  }))
}

test.each([
  [41, {}, [20, 20, 1]],
  [40, {}, [20, 20]],
  [5, { size: '2' }, [2, 2, 1]],
  [0, {}, [0]],
])('%i credentials are read in pages, and next is null at the end', async (count, query, sizes) => {
  const sandbox = await start()
  const given = credentials(count)
  const { uid } = sandbox.addEvent({ type: 'stealer_log', stolen: { credentials: given } })
  const pages = await walk(sandbox, await tokenOf(sandbox), { uid, field: 'credentials', ...query })
  expect(pages.map(({ items }) => items.length)).toEqual(sizes)
  expect(pages.flatMap(({ items }) => items)).toEqual(given)
  expect(pages.at(-1)?.next).toBeNull()
  expect(sandbox.violations().changedScans).toBe(0)
})

test('what is made up for a log has the shape of the wire, and holds what its search item shows', async () => {
  const sandbox = await start()
  const event = sandbox.addEvent({ type: 'stealer_log' })
  const token = await tokenOf(sandbox)
  const read = async (field: string): Promise<unknown[]> =>
    (await walk(sandbox, token, { uid: event.uid, field })).flatMap(({ items }) => items)
  const stolen = await read('credentials')
  for (const item of stolen) wireExpandedCredential.required().parse(item)
  for (const item of await read('cookies')) wireExpandedCookie.required().parse(item)
  expect(await read('cookies')).toEqual(readStolen(event)?.cookies)
  const { json } = await searchGroup(sandbox, token)
  const [item] = (json as { items: WireSearchItem[] }).items
  expect(stolen[0]).toMatchObject({ password: item?.highlights?.['credentials.password']?.[0] })
})

test.each([
  [{ field: 'credentials' }, ['query', 'uid']],
  [{ uid: 'a/b/c' }, ['query', 'field']],
  [{ uid: 'a/b/c', field: 'passwords' }, ['query', 'field']],
  [{ uid: 'a/b/c', field: 'cookies', size: '21' }, ['query', 'size']],
  [{ uid: 'a/b/c', field: 'cookies', size: '0' }, ['query', 'size']],
  [{ uid: 'a/b/c', field: 'cookies', size: 'x' }, ['query', 'size']],
])('%j is refused with the place', async (query, loc) => {
  const sandbox = await start()
  const answer = await expand(sandbox, await tokenOf(sandbox), query)
  expect(answer).toMatchObject({ status: 422, json: { detail: [{ loc }] } })
})

test('an event that is unknown, another tenant’s or of a type without contents is refused', async () => {
  const sandbox = await start({
    groups: [
      { id: 1, name: 'Own', tenantId: 42, identifiers: [{ id: 5, name: 'own.example' }] },
      { id: 2, name: 'Other', tenantId: 43, identifiers: [{ id: 6, name: 'other.example' }] },
    ],
  })
  const token = await tokenOf(sandbox)
  const statusOf = async (uid: string): Promise<unknown> => {
    const { status, json } = await expand(sandbox, token, { uid, field: 'cookies' })
    return [status, (json as { error: { code: string } }).error.code]
  }
  expect(await statusOf('stealer_log/x/1')).toEqual([404, 'NOT_FOUND'])
  const other = sandbox.addEvent({ type: 'stealer_log', groupIds: [2] })
  expect(await statusOf(other.uid)).toEqual([403, 'FORBIDDEN'])
  const paste = sandbox.addEvent({ type: 'paste' })
  expect(await statusOf(paste.uid)).toEqual([400, 'UNSUPPORTED'])
})

test('a cursor is good for its own walk alone, and until it expires', async () => {
  const sandbox = await start()
  const stolen = { credentials: credentials(30) }
  const [one, other] = sandbox.addEvents(2, { type: 'stealer_log', stolen })
  const token = await tokenOf(sandbox)
  const query = { uid: one!.uid, field: 'credentials' }
  const { json } = await expand(sandbox, token, query)
  const from = (json as WirePage).next!
  const refusal = { status: 400, json: { error: { code: 'INVALID_CURSOR' } } }
  expect(await expand(sandbox, token, { ...query, from: 'x' })).toMatchObject(refusal)
  expect(await expand(sandbox, token, { ...query, uid: other!.uid, from })).toMatchObject(refusal)
  expect(sandbox.violations().changedScans).toBe(1)
  expect((await expand(sandbox, token, { ...query, from })).status).toBe(200)
  sandbox.expireCursors()
  expect(await expand(sandbox, token, { ...query, from })).toMatchObject(refusal)
})

test('an expansion counts against the basic limit', async () => {
  const sandbox = await start()
  const { uid } = sandbox.addEvent({ type: 'stealer_log' })
  await expand(sandbox, await tokenOf(sandbox), { uid, field: 'cookies' })
  expect(sandbox.requests.at(-1)?.tier).toBe('basic')
})
