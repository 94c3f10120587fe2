import { describe, expect, test } from 'vitest'
import { knownReportRequests } from '../../../../src/sandbox/reports/reports.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { json } from '../../../support/replica.ts'
import { aScene, aScriptedScene, asAnotherTenant, asked, failureOf, toldBy } from './scene.ts'

const tests = redisForTests()

const root = '/firework/v4/threat_flow/reports'
const { completed, processing, error: failed } = knownReportRequests

describe('a report by its request', () => {
  test('is asked for by the request’s id alone, and comes back once it is made', async () => {
    const { client, sent } = await aScene(tests)
    const answer = await client.getReportRequest({ requestId: completed, ...asked() })
    const path = `${root}/requests/${completed}`
    expect(sent()).toEqual([{ method: 'GET', path, query: {}, body: undefined, tier: 'basic' }])
    expect(answer.status).toBe('completed')
    expect(answer.report).toMatchObject({ id: 9001, title: 'What was said about us' })
    expect(answer.report).not.toHaveProperty('intel_type')
  })

  test.each([
    ['processing', processing],
    ['error', failed],
  ])('is not there while its state is %s', async (status, requestId) => {
    const { client } = await aScene(tests)
    const answer = await client.getReportRequest({ requestId, ...asked() })
    expect(answer).toEqual({ status, report: null })
  })

  test('may be in a state of tomorrow, without a word on the report', async () => {
    const { service, client } = await aScriptedScene(tests)
    service.answer(() => json(200, { status: 'queued' }))
    const answer = await client.getReportRequest({ requestId: 'a/b', ...asked() })
    expect(answer).toEqual({ status: 'queued' })
    expect(service.count(`${root}/requests/a%2Fb`)).toBe(1)
  })

  test('is refused for an id that is unknown, none at all, or another tenant’s', async () => {
    const { client } = await aScene(tests)
    const ask = (requestId: string) => failureOf(client.getReportRequest({ requestId, ...asked() }))
    const unknown = await ask('7e5f1c70-0000-4000-8000-000000000999')
    expect(unknown).toMatchObject({ reason: 'rejected', status: 404, serviceCode: 'NOT_FOUND' })
    const none = await ask('seven')
    expect(none).toMatchObject({ reason: 'rejected', status: 422 })
    expect(toldBy(none)).toEqual(['path.request_info_id: not a UUID'])
    const foreign = await aScene(tests, { account: asAnotherTenant })
    const work = foreign.client.getReportRequest({ requestId: completed, ...asked() })
    expect(await failureOf(work)).toMatchObject({ reason: 'auth', status: 403 })
  })
})

describe('a report by its id', () => {
  test('is asked for by its id alone, and comes back in full', async () => {
    const { client, sent } = await aScene(tests)
    const report = await client.getReport({ id: 9001, ...asked() })
    const path = `${root}/9001`
    expect(sent()).toEqual([{ method: 'GET', path, query: {}, body: undefined, tier: 'basic' }])
    expect(report).toMatchObject({
      id: 9001,
      content: expect.stringContaining('# What was said about us') as string,
      reading_time: expect.any(Number) as number,
      intel_type: expect.any(String) as string,
    })
  })

  test('passes with fields of tomorrow and without most of today’s', async () => {
    const { service, client } = await aScriptedScene(tests)
    const report = { id: 1, title: null, format_type: 'of_tomorrow', extra: {} }
    service.answer(() => json(200, { report }))
    expect(await client.getReport({ id: 1, ...asked() })).toMatchObject(report)
  })

  test('without a report in the answer breaks the contract', async () => {
    const { service, client } = await aScriptedScene(tests)
    service.answer(() => json(200, { report: null }))
    const error = await failureOf(client.getReport({ id: 1, ...asked() }))
    expect(error).toMatchObject({ reason: 'contract', status: 200 })
  })

  test('is refused where it is not made yet, unknown, no number, or another tenant’s', async () => {
    const { client } = await aScene(tests)
    const get = (id: number) => failureOf(client.getReport({ id, ...asked() }))
    expect(await get(9002)).toMatchObject({ reason: 'rejected', status: 404 })
    expect(await get(404)).toMatchObject({ reason: 'rejected', status: 404 })
    expect(toldBy(await get(1.5))).toEqual(['path.report_id: not an integer'])
    const foreign = await aScene(tests, { account: asAnotherTenant })
    const work = foreign.client.getReport({ id: 9001, ...asked() })
    expect(await failureOf(work)).toMatchObject({ reason: 'auth', status: 403 })
  })
})
