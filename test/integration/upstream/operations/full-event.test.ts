/** A full event, or why there is none. */
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

  const none: [string, ScriptedAnswer, string][] = [
    ['its type has no model', json(400, { error: { code: 'UNSUPPORTED' } }), 'unsupported'],
    ['the uid is unknown', json(404, { error: { code: 'NOT_FOUND' } }), 'not_found'],
    ['the answer is about another', json(200, { metadata: { uid: 'b' }, data: {} }), 'mismatch'],
    ['its data is empty', json(200, { metadata: { uid: 'a' }, data: {} }), 'empty'],
  ]
  test.each(none)('is none where %s', async (_title, answer, why) => {
    const { service, client } = await aScriptedScene(tests)
    service.answer(() => answer)
    expect(await client.getEvent({ uid: 'a', ...asked() })).toEqual({ kind: 'none', why })
  })

  test('of another tenant is forbidden', async () => {
    const { sandbox, client } = await aScene(tests, { account: asAnotherTenant })
    const { uid } = sandbox.addEvent({ groupIds: [1042] })
    const error = await failureOf(client.getEvent({ uid, ...asked() }))
    expect(error).toMatchObject({ reason: 'auth', status: 403 })
  })
})
