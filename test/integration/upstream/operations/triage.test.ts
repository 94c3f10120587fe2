import { describe, expect, test } from 'vitest'
import { redisForTests } from '../../../support/ledger.ts'
import { aScene, asAnotherTenant, asked, failureOf } from './scene.ts'

const tests = redisForTests()

const actions = '/firework/v4/events/actions'

describe('events', () => {
  test.each([
    ['ignore', { ignoredAtMs: expect.any(Number), remediatedAtMs: null }],
    ['remediate', { ignoredAtMs: null, remediatedAtMs: expect.any(Number) }],
    ['unignore', { ignoredAtMs: null, remediatedAtMs: 5 }],
    ['unremediate', { ignoredAtMs: 5, remediatedAtMs: null }],
  ] as const)('%s changes each of them', async (action, change) => {
    const { sandbox, client, sent } = await aScene(tests)
    const closed = action.startsWith('un') ? 5 : null
    const given = { groupIds: [1042], ignoredAtMs: closed, remediatedAtMs: closed }
    const uids = ['a', 'b'].map((name) => sandbox.addEvent({ ...given, uid: `paste/${name}` }).uid)
    await client.actOnEvents({ action, uids, ...asked() })
    const targets = [{ uid: 'paste/a' }, { uid: 'paste/b' }]
    const body = { targets, action: { type: action } }
    expect(sent()).toEqual([{ method: 'POST', path: actions, query: {}, tier: 'basic', body }])
    expect(uids.map((uid) => sandbox.events().find((one) => one.uid === uid))).toMatchObject([
      change,
      change,
    ])
  })

  test('of which one is unknown are all refused, and none is changed', async () => {
    const { sandbox, client } = await aScene(tests)
    const { uid } = sandbox.addEvent({ groupIds: [1042] })
    const request = { action: 'ignore', uids: [uid, 'paste/unknown'] } as const
    const error = await failureOf(client.actOnEvents({ ...request, ...asked() }))
    expect(error).toMatchObject({ status: 404, mayBeDone: false })
    expect(sandbox.events().map(({ ignoredAtMs }) => ignoredAtMs)).toEqual([null])
  })

  test('of another tenant are refused, and more than ten are never sent', async () => {
    const { sandbox, client, sent } = await aScene(tests, { account: asAnotherTenant })
    const { uid } = sandbox.addEvent({ groupIds: [1042] })
    const foreign = client.actOnEvents({ action: 'ignore', uids: [uid], ...asked() })
    expect(await failureOf(foreign)).toMatchObject({ status: 403 })
    const uids = Array.from({ length: 11 }, (_, index) => `paste/${index}`)
    const many = await failureOf(client.actOnEvents({ action: 'ignore', uids, ...asked() }))
    expect(many).toMatchObject({ reason: 'invalid', status: undefined })
    expect(sent(actions)).toHaveLength(1)
  })

  test('are not taken as changed when a web page answers', async () => {
    const { sandbox, client } = await aScene(tests)
    const page = { status: 200, body: 'text', message: '<html>sign in</html>' } as const
    sandbox.faults.add({ on: actions, effect: 'status', ...page })
    const request = { action: 'ignore', uids: ['paste/a'], ...asked() } as const
    const error = await failureOf(client.actOnEvents(request))
    expect(error).toMatchObject({ reason: 'contract', fault: 'html', mayBeDone: true })
  })

  test('keep what a note leaves out', async () => {
    const { sandbox, client } = await aScene(tests)
    const { uid } = sandbox.addEvent({ groupIds: [1042], tags: ['vip'], override: 'low' })
    const noted = await client.noteOnEvent({ uid, note: { notes: 'ours' }, ...asked() })
    expect(noted).toEqual({ uid, notes: 'ours', tags: ['vip'], severity: 'low' })
  })
})

test('credentials are known by the hash that a record shows', async () => {
  const { sandbox, client } = await aScene(tests)
  sandbox.addCredentials(3, { identifierIds: [77] })
  const request = { identifier: 77, from: null, size: 20, ...asked() }
  const { items } = (await client.credentialFeed(request)).page
  const hashes = await searchHashes(client)
  expect([items.length, new Set(hashes).size]).toEqual([3, 3])
  const [hash = ''] = hashes
  await client.actOnCredentials({ action: 'ignore', hashes: [hash], ...asked() })
  expect(sandbox.credentials().filter(({ ignoredAtMs }) => ignoredAtMs !== null)).toHaveLength(1)
  const unknown = client.actOnCredentials({ action: 'ignore', hashes: ['nobody'], ...asked() })
  expect(await failureOf(unknown)).toMatchObject({ status: 404 })
})

async function searchHashes(client: Awaited<ReturnType<typeof aScene>>['client']) {
  const query = { type: 'domain', fqdn: 'example.com' } as const
  const body = { query, size: 100, order: 'asc' } as const
  const { items } = (await client.searchCredentials({ body, ...asked() })).page
  return items.map((item) => (item as { credential_hash: string }).credential_hash)
}
