import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { ask, post, searchGroup, tokenOf, walkGroup, type Answer } from './client.ts'

const startMs = Date.UTC(2026, 10, 1, 12)
const open = new Set<Sandbox>()
let folder: string
let nowMs: number

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandbox-data-'))
  nowMs = startMs
})
afterEach(async () => {
  await Promise.all([...open].map(stop))
  rmSync(folder, { recursive: true })
})

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const dataFolder = join(folder, 'data')
  const sandbox = await startSandbox({
    enforceLimits: false,
    now: () => nowMs,
    dataFolder,
    ...options,
  })
  open.add(sandbox)
  return sandbox
}

async function stop(sandbox: Sandbox): Promise<void> {
  open.delete(sandbox)
  await sandbox.close()
}

async function restarted(sandbox: Sandbox, options: SandboxOptions = {}): Promise<Sandbox> {
  await stop(sandbox)
  return start(options)
}

let kills = 0

/** As if the process of the first one had ended right now: nothing that it would still write counts. */
async function afterKill(options: SandboxOptions = {}): Promise<Sandbox> {
  const copy = join(folder, `killed-${kills++}`)
  cpSync(join(folder, 'data'), copy, { recursive: true })
  return start({ dataFolder: copy, ...options })
}

/** Of this process; none where the system does not tell. */
function openFiles(): string[] {
  const descriptors = '/proc/self/fd'
  if (!existsSync(descriptors)) return []
  return readdirSync(descriptors).flatMap((one) => {
    try {
      return readlinkSync(join(descriptors, one))
    } catch {
      return [] // the one that this very reading had open
    }
  })
}

function file(name: string): string {
  return join(folder, 'data', name)
}

async function call(
  sandbox: Sandbox,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const authorization = `Bearer ${await tokenOf(sandbox)}`
  return ask(`${sandbox.url}/firework/${path}`, {
    method,
    headers: { authorization, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

describe('over a restart', () => {
  test('events and credentials stand as they stood, with all that changed', async () => {
    const first = await start({ backlog: 30, credentialBacklog: 20 })
    const [one, two] = first.addEvents(20, { groupIds: [1043] })
    const [leak] = first.addCredentials(5)
    first.addRawItem(1042, { metadata: null })
    first.raise(one!.uid, 'critical')
    first.changeEvent(one!.uid, { notes: 'look' })
    first.markIgnored(two!.uid)
    first.markRemediated(`credential/${leak!.id}`)
    const [events, credentials] = [first.events(), first.credentials()]
    const second = await restarted(first, { backlog: 30, credentialBacklog: 20 })
    expect(second.events()).toEqual(events)
    expect(second.credentials()).toEqual(credentials)
    expect(second.events()).toHaveLength(51)
  })

  test('what comes next is what would have come without it', async () => {
    const whole = await start({ backlog: 10, dataFolder: null })
    const expected = whole.addEvents(50)
    const first = await start({ backlog: 10 })
    const before = first.addEvents(20)
    const second = await restarted(first)
    expect([...before, ...second.addEvents(30)]).toEqual(expected)
  })

  test('no credential and no raw item has an id again', async () => {
    const first = await start()
    first.addCredentials(40)
    first.addRawItem(1042, 1)
    const second = await restarted(first)
    second.addCredentials(40)
    second.addRawItem(1042, 2)
    const third = await restarted(second)
    expect(new Set(third.credentials().map(({ id }) => id)).size).toBe(80)
    expect(
      new Set(third.credentials().map(({ identityName }) => identityName)).size,
    ).toBeGreaterThan(60)
    expect(third.events()).toHaveLength(2)
  })

  test('tokens are what they were: good, revoked or too old', async () => {
    const first = await start({ tokenLifetimeMs: 60_000 })
    const revoked = await tokenOf(first)
    first.tokens.revokeAll()
    const token = await tokenOf(first)
    const second = await restarted(first)
    expect((await searchGroup(second, token)).status).toBe(200)
    expect((await searchGroup(second, revoked)).status).toBe(401)
    expect(second.tokens.issued()).toBe(2)
    nowMs += 60_000
    expect((await searchGroup(second, token)).status).toBe(401)
  })

  test('a key that is refused stays so, and a token of a key that is gone is worth nothing', async () => {
    const first = await start()
    const token = await tokenOf(first)
    first.tokens.refuseKey('fw_sandbox')
    const second = await restarted(first)
    expect((await searchGroup(second, token)).status).toBe(401)
    second.tokens.admitKey('fw_sandbox')
    expect((await searchGroup(second, token)).status).toBe(200)
    const organizations = [{ id: 7, keys: [{ key: 'new', tenants: [42] }] }]
    const third = await restarted(second, { organizations })
    expect((await searchGroup(third, token)).status).toBe(401)
  })

  test('a walk goes on where it was, and one with other filters is still noticed', async () => {
    const first = await start()
    const uids = first.addEvents(25).map(({ uid }) => uid)
    const token = await tokenOf(first)
    const { json } = await searchGroup(first, token, { order: 'asc' })
    const { items, next } = json as { items: unknown[]; next: string }
    const second = await restarted(first)
    const rest = await walkGroup(second, token, { order: 'asc', from: next })
    expect(items).toHaveLength(10)
    expect(rest.uids).toHaveLength(15)
    expect(uids).toEqual(expect.arrayContaining(rest.uids))
    expect(second.violations().changedScans).toBe(0)
    await searchGroup(second, token, { order: 'asc', from: next, filters: { severity: 'low' } })
    expect(second.violations().changedScans).toBe(1)
  })

  test('a cursor that expired stays refused', async () => {
    const first = await start()
    first.addEvents(25)
    const token = await tokenOf(first)
    const { json } = await searchGroup(first, token, { order: 'asc' })
    const body = { order: 'asc', from: (json as { next: string }).next }
    first.expireCursors()
    expect((await searchGroup(await restarted(first), token, body)).status).toBe(400)
  })

  test('the quota goes on counting, and what was paid for stays paid', async () => {
    const searchQuota = { prefix: 'X-', searches: 10 }
    const query = { type: 'domain', fqdn: 'example.com' }
    const search = (sandbox: Sandbox, size: number): Promise<Answer> =>
      call(sandbox, 'POST', 'v4/credentials/global/_search', { query, size })
    const first = await start({ searchQuota })
    first.addCredentials(150, { domain: 'example.com' })
    await search(first, 150)
    expect(first.quota.remaining()).toBe(8)
    const second = await restarted(first, { searchQuota })
    expect(second.quota.remaining()).toBe(8)
    await search(second, 20)
    expect(second.quota.remaining()).toBe(8)
    nowMs += 600_000
    await search(second, 150)
    expect(second.quota.remaining()).toBe(6)
  })

  test('groups that the options do not name any more keep their events out of sight', async () => {
    const first = await start()
    first.addEvents(3, { groupIds: [1043] })
    const groups = [
      { id: 1, name: 'New', tenantId: 42, identifiers: [{ id: 1, name: 'a.example' }] },
    ]
    const second = await restarted(first, { groups })
    const token = await tokenOf(second)
    expect((await searchGroup(second, token, {}, 1043)).status).toBe(404)
    expect((await searchGroup(second, token, {}, 1)).json).toMatchObject({ items: [] })
  })
})

describe('when the process is killed right after an answer', () => {
  test('a token is good', async () => {
    const token = await tokenOf(await start())
    expect((await searchGroup(await afterKill(), token)).status).toBe(200)
  })

  test('what a page showed is there', async () => {
    const first = await start()
    first.addEvents(5)
    const second = await afterKill()
    expect(second.events()).toEqual(first.events())
  })

  test('a report that was asked for is made', async () => {
    const first = await start()
    const body = { report_title: 'Weekly' }
    const answer = await call(first, 'POST', 'v4/threat_flow/reports/requests', body)
    const { request_id: id } = answer.json as { request_id: string }
    nowMs += 20_000
    const path = `v4/threat_flow/reports/requests/${id}`
    const [event] = first.addEvents(1, { severity: 'low' })
    const read = await call(first, 'GET', path)
    expect(read).toMatchObject({ json: { status: 'completed', report: { title: 'Weekly' } } })
    first.changeEvent(event!.uid, { severity: 'critical' })
    const second = await afterKill()
    expect((await call(second, 'GET', path)).json).toEqual(read.json)
    const other = second.addReportRequest()
    expect((await call(second, 'GET', `v4/threat_flow/reports/${other.reportId}`)).status).toBe(404)
    expect(first.addReportRequest().reportId).toBe(other.reportId)
  })

  test('a new tenant is there with its group, and the next one is another', async () => {
    const first = await start()
    const path = 'v2/organizations/7/tenants'
    const made = await call(first, 'POST', path, { name: 'Acme' })
    const { id } = made.json as { id: number }
    const second = await afterKill()
    const token = await tokenOf(second, 'fw_sandbox', id)
    expect((await searchGroup(second, token, {}, 1044)).status).toBe(200)
    const next = await call(second, 'POST', path, { name: 'Acme' })
    expect((next.json as { id: number }).id).not.toBe(id)
  })

  test('assets and policies are there, and what a policy cleaned away stays away', async () => {
    const first = await start()
    first.addEvents(10, { groupIds: [1042], identifiers: [{ id: 77, name: 'example.com' }] })
    const policy = {
      name: 'None',
      type: 'INCLUDED_KEYWORDS',
      value: { keywords: ['no such word'] },
    }
    const { json } = await call(first, 'POST', 'v4/matching-policies', policy)
    const { uuid } = json as { uuid: string }
    const assignment = { identifier_ids: [77], clean_past_events: true }
    await call(first, 'POST', `v4/matching-policies/${uuid}/assignments`, assignment)
    const asset = { name: 'x', type: 'keyword', search_types: [], data: { keyword: 'x' } }
    const created = (await call(first, 'POST', 'v2/assets/', asset)).json as {
      asset: { id: number }
    }
    expect(created.asset.id).toBeTypeOf('number')
    const second = await afterKill()
    expect((await searchGroup(second, await tokenOf(second))).json).toMatchObject({ items: [] })
    const path = 'v4/matching-policies/by_identifier_id/77'
    expect((await call(second, 'GET', path)).json).toMatchObject([{ matching_policy: { uuid } }])
    const toggled = await call(second, 'POST', `v2/assets/${created.asset.id}/toggle`, {
      is_disabled: true,
    })
    expect(toggled.status).toBe(200)
  })

  test('a line cut off by it was shown to nobody, and is gone', async () => {
    const first = await start()
    first.addEvents(3)
    await stop(first)
    const text = readFileSync(file('history.jsonl'))
    writeFileSync(file('history.jsonl'), text.subarray(0, text.length - 40))
    const second = await start()
    expect(second.events()).toHaveLength(2)
    second.addEvents(1)
    expect((await restarted(second)).events()).toHaveLength(3)
  })
})

describe('on disk', () => {
  test('the history only grows, by what came', async () => {
    const sandbox = await start({ backlog: 200 })
    const before = readFileSync(file('history.jsonl'), 'utf8')
    sandbox.addEvent()
    const after = readFileSync(file('history.jsonl'), 'utf8')
    expect(after.startsWith(before)).toBe(true)
    expect(after.slice(before.length).trimEnd().split('\n')).toHaveLength(2)
  })

  test('nobody else can read the files, and none is half written', async () => {
    const sandbox = await start()
    await tokenOf(sandbox)
    const names = readdirSync(join(folder, 'data'))
    expect(names.toSorted()).toEqual(['history.jsonl', 'state.json', 'walks.json'])
    const modes = names.map((name) => statSync(file(name)).mode & 0o777)
    expect(modes).toEqual([0o600, 0o600, 0o600])
  })

  test('a request that changes nothing writes nothing', async () => {
    const sandbox = await start()
    const token = await tokenOf(sandbox)
    const { mtimeNs, ino } = statSync(file('state.json'), { bigint: true })
    await searchGroup(sandbox, token)
    await post(`${sandbox.url}/tokens/generate`, '', { authorization: 'no such key' })
    expect(statSync(file('state.json'), { bigint: true })).toMatchObject({ mtimeNs, ino })
  })
})

describe('a folder that cannot be used', () => {
  const damages: [name: string, damage: (text: string) => string, problem: string][] = [
    ['history.jsonl', (text) => text.replace('"uid"', '"uid'), 'line 3 is damaged'],
    ['history.jsonl', (text) => text.replace('"groupIds":[', '"groupIds":["x",'), 'line 3'],
    ['history.jsonl', (text) => `${text}["event changed","no/such/one",{}]\n`, 'is not there'],
    ['history.jsonl', (text) => text + text.split('\n')[2] + '\n', 'is there twice'],
    ['history.jsonl', () => 'somebody wrote a poem\n', 'no sandbox wrote it'],
    ['history.jsonl', () => '', 'no sandbox wrote it'],
    ['history.jsonl', (text) => text.replace('"version":1', '"version":2'), 'another version'],
    ['state.json', (text) => text.slice(0, 200), 'it is not whole JSON'],
    ['state.json', () => '{"name":"a package"}', 'no sandbox wrote it'],
    ['state.json', (text) => text.replace('"version":1', '"version":2'), 'it has format 2'],
    ['state.json', (text) => text.replace('"issued":0', '"issued":"x"'), 'its part "tokens"'],
    ['walks.json', (text) => text.replace('"used":0', '"used":null'), 'its part "quota"'],
  ]

  test.each(damages)('%s damaged by %s is refused: %s', async (name, damage, problem) => {
    const first = await start()
    first.addEvents(2)
    await stop(first)
    writeFileSync(file(name), damage(readFileSync(file(name), 'utf8')))
    const damaged = readFileSync(file(name), 'utf8')
    const error = await start().catch((reason: unknown) => reason as Error)
    expect(error).toMatchObject({ name: 'DataFolderError', code: 'TOCSIN_SANDBOX' })
    const { message } = error as Error
    expect(message).toContain(`cannot go on from ${file(name)}: `)
    expect(message).toContain(problem)
    expect(message).toMatch(/; put it back from a copy, or choose another folder with --data$/)
    expect(readFileSync(file(name), 'utf8')).toBe(damaged)
  })

  test('is refused where the history is missing beside the state', async () => {
    await stop(await start())
    rmSync(file('history.jsonl'))
    await expect(start()).rejects.toThrow('history.jsonl: it is missing beside state.json')
  })

  test('is refused where it is no folder', async () => {
    const dataFolder = join(folder, 'file')
    writeFileSync(dataFolder, '')
    await expect(start({ dataFolder })).rejects.toThrow(
      `${dataFolder}: it cannot be read and written (E`,
    )
  })

  test('is free again where the sandbox could not start', async () => {
    const other = await start({ dataFolder: null })
    const port = Number(new URL(other.url).port)
    await expect(start({ port })).rejects.toThrow('EADDRINUSE')
    expect(openFiles().filter((name) => name.startsWith(folder))).toEqual([])
    const sandbox = await start()
    sandbox.addEvents(1)
    expect((await restarted(sandbox)).events()).toHaveLength(1)
  })
})

test('without a folder nothing is kept', async () => {
  const first = await start({ dataFolder: null })
  first.addEvents(3)
  await post(`${first.url}/_sandbox/events`, { count: 1 })
  await stop(first)
  expect((await start({ dataFolder: null })).events()).toEqual([])
  expect(readdirSync(folder)).toEqual([])
})
