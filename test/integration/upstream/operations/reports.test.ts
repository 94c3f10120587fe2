import { describe, expect, test } from 'vitest'
import { knownReportRequests } from '../../../../src/sandbox/reports/reports.ts'
import type { ReportCreation } from '../../../../src/upstream/resources/reports.ts'
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

test('a report is requested as it is asked for, and listed once it is made', async () => {
  const { client, sent } = await aScene(tests, { sandbox: { reportMs: 0 } })
  const report = {
    report_title: 'Ours',
    question: 'Who?',
    time_range_type: 'last_7d',
    included_keywords: ['acme'],
  } satisfies ReportCreation
  const requestId = await client.requestReport({ report, ...asked() })
  const known = await client.getReportRequest({ requestId, ...asked() })
  expect(known).toMatchObject({ status: 'completed', report: { title: 'Ours' } })
  const first = await client.listReports({ from: null, size: 1, order: 'desc', ...asked() })
  expect(first.items).toMatchObject([{ title: 'Ours', intel_type: expect.any(String) }])
  const request = { from: first.next ?? null, size: 2, order: 'desc', types: ['custom'] } as const
  const rest = await client.listReports({ ...request, ...asked() })
  expect(rest).toMatchObject({ items: [{ id: 9002 }, { id: 9001 }], next: null })
  const query = { size: '1', order: 'desc' }
  expect(sent(root)).toMatchObject([
    { method: 'POST', path: `${root}/requests`, body: report },
    { method: 'GET', path: `${root}/requests/${requestId}` },
    { method: 'GET', path: `${root}/`, query },
    {
      method: 'GET',
      path: `${root}/`,
      query: { size: '2', order: 'desc', from: '1', report_types: 'custom' },
    },
  ])
})

describe('a report as a file', () => {
  const path = `${root}/9001/download`
  const docx = 'PK\u0003\u0004'
  const mebibyte = 1024 * 1024

  test.each([
    ['docx', docx, 'PK\u0005\u0006'],
    ['pdf', '%PDF-1.4\n', '%%EOF\n'],
  ] as const)('is asked for as %s, and is whole', async (format, start, end) => {
    const { client, sent } = await aScene(tests)
    const file = Buffer.from(await client.downloadReport({ id: 9001, format, ...asked() }))
    expect(sent()).toMatchObject([{ method: 'GET', path, query: { format }, tier: 'basic' }])
    expect(file.subarray(0, start.length).toString('latin1')).toBe(start)
    expect(file.subarray(-22).toString('latin1')).toContain(end)
  })

  test('is taken by its first bytes, whatever content type it has, byte for byte', async () => {
    const { service, client, server } = await aScriptedScene(tests)
    const body = `${docx}\u0000\r\n\u007Fé`
    service.answer(() => ({ status: 200, headers: { 'content-type': 'text/plain' }, body }))
    const file = await client.downloadReport({ id: 9001, format: 'docx', ...asked() })
    expect(Buffer.from(file)).toEqual(Buffer.from(body))
    expect(server.requests.at(-1)?.headers['accept']).toBe('*/*')
  })

  test.each([
    ['a pdf', '%PDF-1.4', 'the answer is no file of the format docx', undefined],
    ['JSON', '{"url":"https://files.example/1"}', 'no file of the format docx', undefined],
    ['nothing', '', 'no file of the format docx', undefined],
    ['half of a signature', 'PK\u0003', 'no file of the format docx', undefined],
    ['a web page', '<!doctype html><p>Log in', 'the answer is a web page', 'html'],
  ])('is not %s instead of a docx', async (_title, body, message, fault) => {
    const { service, client } = await aScriptedScene(tests)
    service.answer(() => ({ status: 200, body }))
    const error = await failureOf(client.downloadReport({ id: 9001, format: 'docx', ...asked() }))
    expect(error).toMatchObject({ reason: 'contract', status: 200, fault })
    expect(error.message).toContain(message)
  })

  test('has up to 32 MiB, and one byte more breaks the contract', async () => {
    const { service, client } = await aScriptedScene(tests)
    let bytes = 32 * mebibyte
    service.answer(() => ({ status: 200, body: docx.padEnd(bytes, 'x') }))
    const request = { id: 9001, format: 'docx' } as const
    expect(await client.downloadReport({ ...request, ...asked() })).toHaveLength(bytes)
    bytes += 1
    const error = await failureOf(client.downloadReport({ ...request, ...asked() }))
    expect(error).toMatchObject({ reason: 'contract', fault: 'too_large' })
    expect(error.message).toContain('larger than 32 MiB')
  })

  test('is refused where it is not made yet, unknown, no number, or another tenant’s', async () => {
    const { client } = await aScene(tests)
    const get = (id: number) => failureOf(client.downloadReport({ id, format: 'pdf', ...asked() }))
    expect(await get(9002)).toMatchObject({ reason: 'rejected', status: 404 })
    expect(await get(404)).toMatchObject({ reason: 'rejected', status: 404 })
    expect(toldBy(await get(1.5))).toEqual(['path.report_id: not an integer'])
    const foreign = await aScene(tests, { account: asAnotherTenant })
    const work = foreign.client.downloadReport({ id: 9001, format: 'pdf', ...asked() })
    expect(await failureOf(work)).toMatchObject({ reason: 'auth', status: 403 })
  })
})
