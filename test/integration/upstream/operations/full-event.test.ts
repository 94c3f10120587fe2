/** A full event, from the newer operation or the older one. */
import { describe, expect, test } from 'vitest'
import { redisForTests } from '../../../support/ledger.ts'
import type { ScriptedAnswer } from '../../../support/http-server.ts'
import { json } from '../../../support/replica.ts'
import { aScene, aScriptedScene, asAnotherTenant, asked, failureOf } from './scene.ts'

const tests = redisForTests()

describe('an event', () => {
  test('is asked for by its uid alone and comes back with its data', async () => {
    const { sandbox, client, sent } = await aScene(tests)
    const given = { type: 'paste', uid: 'paste/of a/b?c&d=é', data: { title: 'hello' } }
    const { uid } = sandbox.addEvent({ ...given, groupIds: [1042] })
    const answer = await client.getEvent({ uid, ...asked() })
    expect(answer).toMatchObject({ kind: 'detail', event: { metadata: { uid } } })
    expect(answer).toMatchObject({ data: { title: 'hello' } })
    const path = '/firework/v4/events/'
    expect(sent()).toEqual([
      { method: 'GET', path, query: { uid }, body: undefined, tier: 'basic' },
    ])
  })

  test('is asked of the older operation where its type has no model', async () => {
    const { sandbox, client, sent } = await aScene(tests)
    const highlights = { body: ['<mark>acme</mark> for sale'] }
    const none = { type: 'forum_topic', data: null, highlights, groupIds: [1042] }
    const { uid } = sandbox.addEvent(none)
    const answer = await client.getEvent({ uid, ...asked() })
    expect(answer).toMatchObject({ kind: 'detail', event: { event_type: 'forum_topic' } })
    expect(answer).toMatchObject({ data: { uid, body: 'acme for sale' } })
    const request = { method: 'GET', query: { uid }, body: undefined, tier: 'basic' }
    expect(sent()).toEqual([
      { ...request, path: '/firework/v4/events/' },
      { ...request, path: '/firework/v2/activities/' },
    ])
  })

  const unsupported = json(400, { error: { code: 'UNSUPPORTED', message: 'no model' } })
  const older: [string, ScriptedAnswer, number][] = [
    ['does not have it', json(404, { detail: 'Not Found' }), 3],
    ['closes it to the key', json(403, { message: 'no', code: 'FORBIDDEN' }), 4],
    ['answers nonsense', { status: 200, body: '<html>' }, 4],
    ['does not know the event', json(404, { message: 'no such event', code: 'NOT_FOUND' }), 4],
    ['tells of another event', json(200, { activity: { header: { uid: 'b' }, data: {} } }), 4],
    ['has nothing in it', json(200, { activity: { header: { uid: 'a' }, data: {} } }), 4],
  ]
  test.each(older)(
    'has no detail where the older operation of a server %s',
    async (_title, answer, requests) => {
      const { service, client, sent } = await aScriptedScene(tests)
      service.answer(({ path }) => (path.includes('/activities/') ? answer : unsupported))
      for (const _time of [1, 2]) {
        const told = await client.getEvent({ uid: 'a', ...asked() })
        expect(told).toEqual({ kind: 'none', why: 'unsupported' })
      }
      expect(sent()).toHaveLength(requests)
    },
  )

  test('is asked for again where the older operation fails for now', async () => {
    const { service, client } = await aScriptedScene(tests)
    service.answer(({ path }) => (path.includes('/activities/') ? json(503, {}) : unsupported))
    expect(await failureOf(client.getEvent({ uid: 'a', ...asked() }))).toMatchObject({
      reason: 'unavailable',
    })
  })

  test('of another tenant is forbidden', async () => {
    const { sandbox, client } = await aScene(tests, { account: asAnotherTenant })
    const { uid } = sandbox.addEvent({ groupIds: [1042] })
    const error = await failureOf(client.getEvent({ uid, ...asked() }))
    expect(error).toMatchObject({ reason: 'auth', status: 403 })
  })
})
