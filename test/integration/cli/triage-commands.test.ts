/** `events` and `credentials` `ignore|remediate|restore`, and `events tag|note|severity`. */
import { describe, expect, test, vi } from 'vitest'
import type { SandboxEvent } from '../../../src/sandbox/history/history.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene, type ServiceScene } from './service-scene.ts'

const tests = redisForTests()

const actionsPath = '/firework/v4/events/actions'

const ofTwoTenants = [
  { id: 1042, name: 'Ours', tenantId: 42, identifiers: [{ id: 77, name: 'a.example' }] },
  { id: 1050, name: 'Theirs', tenantId: 43, identifiers: [{ id: 78, name: 'b.example' }] },
]

function addEvents({ sandbox }: ServiceScene, count: number, groupId = 1042): string[] {
  return Array.from({ length: count }, (_, index) => `paste/site/${groupId}-${index}`).map(
    (uid) => sandbox.addEvent({ uid, groupIds: [groupId] }).uid,
  )
}

function eventAt({ sandbox }: ServiceScene, uid: string): SandboxEvent | undefined {
  return sandbox.events().find((event) => event.uid === uid)
}

interface Row {
  uid: string
  state: string
  by: string
  reason: string | null
}

function rowsIn(out: string): Row[] {
  return (JSON.parse(out) as { items: Row[] }).items
}

describe('events ignore', () => {
  test('goes in batches of ten, says what came of each, and who did it', async () => {
    const scene = await aServiceScene(tests)
    const uids = addEvents(scene, 23)
    const { code, out, err } = await scene.run(
      'events',
      'ignore',
      ...uids,
      uids[0]!,
      '--yes',
      '--by=ana',
      '--output=json',
    )
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(rowsIn(out).map(({ uid, state, by }) => [uid, state, by])).toEqual(
      uids.map((uid) => [uid, 'done', 'ana']),
    )
    const sizes = scene.sent().map(({ body }) => (body as { targets: unknown[] }).targets.length)
    expect(sizes).toEqual([10, 10, 3])
    expect(scene.sandbox.events().filter(({ ignoredAtMs }) => ignoredAtMs === null)).toEqual([])
    const told = await scene.run('items', 'show', uids[22]!)
    expect(told.out).toMatch(/"ignore" asked of the service by ana: done/)
    expect(told.out.match(/asked of/g)).toHaveLength(1)
  })

  test('asks before it acts, and does nothing without an answer', async () => {
    const scene = await aServiceScene(tests)
    const [uid = ''] = addEvents(scene, 1)
    const unasked = await scene.run('events', 'ignore', uid)
    expect(unasked.err).toContain(
      `1 event will be ignored at the service, by account main: ${uid}. Nobody is there to ask; say --yes`,
    )
    expect((await scene.runAt('n', 'events', 'ignore', uid)).err).toContain('nothing was changed')
    expect(scene.sent()).toEqual([])
    expect((await scene.runAt('y', 'events', 'ignore', uid)).code).toBe(0)
    expect(eventAt(scene, uid)?.ignoredAtMs).not.toBeNull()
  })

  test('sends a refused batch one by one, and lists what is left', async () => {
    const scene = await aServiceScene(tests, { groups: ofTwoTenants })
    const [first = '', last = ''] = addEvents(scene, 2)
    const [foreign = ''] = addEvents(scene, 1, 1050)
    const uids = [first, 'paste/unknown', foreign, last]
    const { code, out, err } = await scene.run('events', 'ignore', ...uids, '--yes', '--by=ana')
    expect(code).toBe(1)
    expect(err).toContain(`left to do: paste/unknown ${foreign}`)
    expect(out).toMatch(/^refused +paste\/unknown\n {4}.*no such event/m)
    expect(out).toMatch(/^refused +paste\/site\/1050-0\n {4}.*another tenant/m)
    expect([first, last].map((uid) => out.includes(`done       ${uid}`))).toEqual([true, true])
    expect((await scene.run('items', 'show', foreign)).out).toContain(
      'by ana: refused by the service',
    )
  })

  test('stops where an answer is lost, and says what may be done and what was not tried', async () => {
    const scene = await aServiceScene(tests)
    const uids = addEvents(scene, 21)
    const passes = { on: actionsPath, effect: 'delay', times: 1 } as const
    scene.sandbox.faults.add(passes)
    scene.sandbox.faults.add({ on: actionsPath, effect: 'lose-answer' })
    const command = ['events', 'ignore', ...uids, '--yes', '--by=ana']
    const { code, out, err } = await scene.run(...command, '--output=json')
    expect(code).toBe(1)
    expect(err).toContain('it may have been done all the same')
    expect(rowsIn(out).map(({ state }) => state)).toEqual([
      ...Array.from({ length: 10 }, () => 'done'),
      ...Array.from({ length: 10 }, () => 'unclear'),
      'not tried',
    ])
    expect(err).toContain(`left to do: ${uids.slice(10).join(' ')}`)
    expect((await scene.run('items', 'show', uids[10]!)).out).toContain('may have been done')
  })

  test('refused as a batch calls nothing refused that it did not send alone', async () => {
    const scene = await aServiceScene(tests)
    const [first = '', last = ''] = addEvents(scene, 2)
    scene.sandbox.faults.add({ on: actionsPath, effect: 'delay', times: 2 })
    scene.sandbox.faults.add({ on: actionsPath, effect: 'refuse' })
    const uids = [first, 'paste/unknown', last]
    const { code, out } = await scene.run('events', 'ignore', ...uids, '--yes', '--output=json')
    expect(code).toBe(1)
    expect(rowsIn(out).map(({ uid, state, reason }) => [uid, state, reason])).toEqual([
      [first, 'done', null],
      ['paste/unknown', 'unclear', expect.any(String)],
      [last, 'not tried', null],
    ])
  })

  test('goes on past a batch of another tenant once the key proved to change events', async () => {
    const scene = await aServiceScene(tests, { groups: ofTwoTenants })
    const own = addEvents(scene, 11)
    const foreign = addEvents(scene, 10, 1050)
    const uids = [...own.slice(0, 10), ...foreign, ...own.slice(10)]
    const { code, out, err } = await scene.run(
      'events',
      'ignore',
      ...uids,
      '--yes',
      '--output=json',
    )
    expect([code, err]).toEqual([1, `left to do: ${foreign.join(' ')}\n`])
    const done = rowsIn(out).filter(({ state }) => state === 'done')
    expect(done.map(({ uid }) => uid)).toEqual(own)
  })

  test('by Ctrl-C says what is done, what may be, and what was not tried', async () => {
    const scene = await aServiceScene(tests)
    const uids = addEvents(scene, 21)
    scene.sandbox.faults.add({ on: actionsPath, effect: 'delay', times: 1 })
    scene.sandbox.faults.add({ on: actionsPath, effect: 'hang' })
    const stop = new AbortController()
    const command = ['events', 'ignore', ...uids, '--yes', '--output=json']
    const ended = scene.runUntil(stop.signal, ...command)
    await vi.waitUntil(() => scene.sent()[1], { timeout: 45_000 })
    stop.abort()
    const { code, out, err } = await ended
    expect([code, err]).toEqual([130, `left to do: ${uids.slice(10).join(' ')}\n`])
    const states = rowsIn(out).map(({ state }) => state)
    expect([states[9], states[10], states[19], states[20]]).toEqual([
      'done',
      'unclear',
      'unclear',
      'not tried',
    ])
  })

  test('that Redis cannot record is not done', async () => {
    const scene = await aServiceScene(tests)
    const [uid = ''] = addEvents(scene, 1)
    await scene.run('items', 'show', uid) // opens the account ledger
    const key = `{${scene.prefix}:main}:triage`
    await tests.redis.set(key, 'no stream')
    const { code } = await scene.run('events', 'ignore', uid, '--yes')
    expect([code, scene.sent()]).toEqual([1, []])
  })
})

test.each([
  [[], ['unignore', 'unremediate'], [null, null]],
  [['--ignored'], ['unignore'], [null, 7]],
  [['--remediated'], ['unremediate'], [7, null]],
])('events restore %j undoes what it says', async (options, types, times) => {
  const scene = await aServiceScene(tests)
  const given = { groupIds: [1042], ignoredAtMs: 7, remediatedAtMs: 7 }
  const { uid } = scene.sandbox.addEvent(given)
  expect((await scene.run('events', 'restore', uid, '--yes', ...options)).code).toBe(0)
  const sentTypes = scene.sent().map(({ body }) => (body as { action: { type: string } }).action)
  expect(sentTypes).toEqual(types.map((type) => ({ type })))
  const { ignoredAtMs, remediatedAtMs } = eventAt(scene, uid) ?? {}
  expect([ignoredAtMs, remediatedAtMs]).toEqual(times)
})

test.each([408, 409])('events restore says when its second request fails by %d', async (status) => {
  const scene = await aServiceScene(tests)
  const given = { groupIds: [1042], ignoredAtMs: 7, remediatedAtMs: 7 }
  const { uid } = scene.sandbox.addEvent(given)
  scene.sandbox.faults.add({ on: actionsPath, effect: 'delay', times: 1 })
  scene.sandbox.faults.add({ on: actionsPath, effect: 'status', status })
  const { code, out } = await scene.run('events', 'restore', uid, '--yes', '--output=json')
  expect([code, eventAt(scene, uid)?.ignoredAtMs]).toEqual([1, null])
  const reason = expect.stringContaining('unignore is done, unremediate failed')
  expect(rowsIn(out)).toMatchObject([{ uid, state: 'unclear', reason }])
  expect((await scene.run('items', 'show', uid)).out).toContain(
    'may have been done, in whole or in part',
  )
})

test('credentials remediate marks every record of the pair, in batches of a hundred', async () => {
  const scene = await aServiceScene(tests)
  scene.sandbox.addCredentials(130, { identifierIds: [77], domain: 'example.com' })
  const search = ['credentials', 'search', '--domain=example.com', '--all', '--reveal']
  const hashes = (await scene.run(...search, '--output=ndjson')).out
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { credential_hash: string | null }).credential_hash)
    .filter((hash) => hash !== null)
  const before = scene.sent().length
  const { code, err } = await scene.run('credentials', 'remediate', ...hashes, '--yes')
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(scene.sent().slice(before)).toHaveLength(Math.ceil(new Set(hashes).size / 100))
  const open = scene.sandbox.credentials().filter((one) => one.remediatedAtMs === null)
  expect(open.filter(({ hash }) => hash !== null)).toEqual([])
})

test('tag, note and severity change one thing of each event', async () => {
  const scene = await aServiceScene(tests)
  const uids = addEvents(scene, 2)
  const yes = ['--yes', '--by=ana']
  expect((await scene.run('events', 'tag', ...uids, '--tags=vip,2026', ...yes)).code).toBe(0)
  expect((await scene.run('events', 'note', uids[0]!, '--text', 'ours', ...yes)).code).toBe(0)
  expect((await scene.run('events', 'severity', uids[1]!, '--to=low', ...yes)).code).toBe(0)
  expect(uids.map((uid) => eventAt(scene, uid))).toMatchObject([
    { tags: ['vip', '2026'], notes: 'ours', override: null },
    { tags: ['vip', '2026'], override: 'low' },
  ])
  expect((await scene.run('items', 'show', uids[1]!)).out).toMatch(
    /"tag" asked.*\n.*"severity" asked/,
  )
})

test.each([
  ['events', 'paste/a', 'events'],
  ['credentials', 'ab12', 'credentials'],
])('%s ignore says which permission or server it takes', async (noun, target, things) => {
  const { run, sandbox } = await aServiceScene(tests)
  const refuse = sandbox.faults.add({ on: '/firework/*', effect: 'status', status: 403 })
  const forbidden = await run(noun, 'ignore', target, '--yes')
  expect(forbidden.err).toContain(`triage of ${things} takes the permission to change ${things}`)
  refuse()
  sandbox.faults.add({ on: '/firework/*', effect: 'status', status: 405 })
  const missing = await run(noun, 'ignore', target, '--yes')
  expect(missing.err).toContain(`this server does not have triage of ${things}`)
  expect([forbidden.code, missing.code]).toEqual([1, 1])
})

test.each([
  [['events', 'ignore']],
  [['events', 'severity', 'paste/a', '--to=worst', '--yes']],
  [['events', 'tag', 'paste/a', '--yes']],
  [['credentials', 'ignore', 'e••••6', '--yes']],
])('%j is refused before anything is sent', async (args) => {
  const { run, sandbox } = await aServiceScene(tests)
  expect((await run(...args)).code).toBe(2)
  expect(sandbox.requests).toEqual([])
})
