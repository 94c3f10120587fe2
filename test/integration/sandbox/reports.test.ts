import { afterEach, describe, expect, test } from 'vitest'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { knownReportRequests } from '../../../src/sandbox/reports/reports.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import {
  wireReport,
  wireReportAnswer,
  wireReportRequest,
} from '../../../src/upstream/resources/reports.ts'
import { ask, post, tokenOf, type Answer } from './client.ts'

const startMs = Date.UTC(2026, 10, 1, 12)
const open: Sandbox[] = []
let nowMs = startMs
afterEach(async () => {
  nowMs = startMs
  await Promise.all(open.splice(0).map((sandbox) => sandbox.close()))
})

async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ enforceLimits: false, now: () => nowMs, ...options })
  open.push(sandbox)
  return sandbox
}

async function read(sandbox: Sandbox, path: string, tenant = 42): Promise<Answer> {
  const token = await tokenOf(sandbox, 'fw_sandbox', tenant)
  return ask(`${sandbox.url}/firework/v4/threat_flow/reports/${path}`, {
    headers: { authorization: `Bearer ${token}` },
  })
}

async function request(sandbox: Sandbox, body: unknown): Promise<Answer> {
  const authorization = `Bearer ${await tokenOf(sandbox)}`
  return post(`${sandbox.url}/firework/v4/threat_flow/reports/requests`, body, { authorization })
}

async function requested(sandbox: Sandbox, body: object): Promise<string> {
  const answer = await request(sandbox, { report_title: 'Weekly', ...body })
  expect(answer.status).toBe(200)
  return (answer.json as { request_id: string }).request_id
}

async function relatedUids(sandbox: Sandbox, id: string): Promise<string[]> {
  const { json } = await read(sandbox, `requests/${id}`)
  return wireReport.parse(wireReportRequest.parse(json).report).related_activity_uids!
}

describe('a request for a report', () => {
  test('is processing until its time has come, then completed with what was seen', async () => {
    const sandbox = await start({ reportMs: 60_000 })
    const seen = sandbox.addEvents(5, { type: 'paste', severity: 'high' })
    const id = await requested(sandbox, { question: 'Are we named?' })
    nowMs += 59_999
    const early = await read(sandbox, `requests/${id}`)
    expect(early).toMatchObject({ status: 200, json: { status: 'processing', report: null } })
    nowMs += 1
    const answer = wireReportRequest.parse((await read(sandbox, `requests/${id}`)).json)
    expect(answer.status).toBe('completed')
    const report = wireReport.parse(answer.report)
    expect(report.related_activity_uids!.toSorted()).toEqual(seen.map(({ uid }) => uid).toSorted())
    expect(report.summary).toContain('Are we named?')
    expect(report.content).toMatch(/^# Weekly\n/)
    expect(report).toMatchObject({ title: 'Weekly', tags: ['paste'] })
    expect(report.highlights).toHaveLength(5)
    expect(report).not.toHaveProperty('reading_time')
  })

  test('ends in error by a word in its title', async () => {
    const sandbox = await start({ reportMs: 0 })
    const marked = await requested(sandbox, { report_title: 'Weekly [error]' })
    expect((await read(sandbox, `requests/${marked}`)).json).toEqual({
      status: 'error',
      report: null,
    })
  })

  test.each([
    [{}, ['body', 'report_title']],
    [{ report_title: '' }, ['body', 'report_title']],
    [{ report_title: 'x', time_range_type: 'last_year' }, ['body', 'time_range_type']],
    [{ report_title: 'x', included_keywords: 'word' }, ['body', 'included_keywords']],
  ])('of the body %j is refused with its place', async (body, loc) => {
    expect(await request(await start(), body)).toMatchObject({
      status: 422,
      json: { detail: [{ loc }] },
    })
  })

  test('stands from the start under known ids, one in each state', async () => {
    const sandbox = await start()
    const stateOf = async (id: string): Promise<unknown> =>
      wireReportRequest.parse((await read(sandbox, `requests/${id}`)).json).status
    const { completed, processing, error } = knownReportRequests
    expect([await stateOf(completed), await stateOf(processing), await stateOf(error)]).toEqual([
      'completed',
      'processing',
      'error',
    ])
    nowMs += 20_000
    expect(await stateOf(processing)).toBe('completed')
  })

  test('of another tenant is forbidden, an unknown one is not found', async () => {
    const sandbox = await start()
    const { id } = sandbox.addReportRequest({ tenantId: 43 })
    expect(await read(sandbox, `requests/${id}`)).toMatchObject({
      status: 403,
      json: { error: { code: 'FORBIDDEN' } },
    })
    expect((await read(sandbox, `requests/${id}`, 43)).status).toBe(200)
    const unknown = id.replace(/^../, id.startsWith('00') ? 'ff' : '00')
    expect((await read(sandbox, `requests/${unknown}`)).status).toBe(404)
  })

  test('tells of its own tenant only', async () => {
    const groups = [
      { id: 1, name: 'One', tenantId: 42, identifiers: [{ id: 5, name: 'one.example' }] },
      { id: 2, name: 'Two', tenantId: 43, identifiers: [{ id: 6, name: 'two.example' }] },
    ]
    const sandbox = await start({ groups, reportMs: 0 })
    const own = sandbox.addEvent({ groupIds: [1] })
    sandbox.addEvent({ groupIds: [2] })
    sandbox.addRawItem(1, { metadata: null })
    expect(await relatedUids(sandbox, await requested(sandbox, {}))).toEqual([own.uid])
  })
})

describe('a report by its id', () => {
  test('has every field, and at most twenty events', async () => {
    const sandbox = await start()
    sandbox.addEvents(30)
    const { reportId } = sandbox.addReportRequest({ readyAtMs: nowMs })
    const { report } = wireReportAnswer.parse((await read(sandbox, String(reportId))).json)
    expect(report).toMatchObject({ id: reportId, organization_id: 7, intel_type: 'custom_intel' })
    expect(report.related_activity_uids).toHaveLength(20)
  })

  test('is not found before it is completed, and never where it ended in error', async () => {
    const sandbox = await start({ reportMs: 1000 })
    const { reportId } = sandbox.addReportRequest()
    const failed = sandbox.addReportRequest({ outcome: 'error' })
    expect((await read(sandbox, String(reportId))).status).toBe(404)
    nowMs += 1000
    expect((await read(sandbox, String(reportId))).status).toBe(200)
    expect((await read(sandbox, String(failed.reportId))).status).toBe(404)
  })

  test('of another tenant is forbidden, a word for an id is refused', async () => {
    const sandbox = await start()
    const { reportId } = sandbox.addReportRequest({ tenantId: 43, readyAtMs: 0 })
    expect((await read(sandbox, String(reportId))).status).toBe(403)
    expect((await read(sandbox, String(reportId), 43)).status).toBe(200)
    expect((await read(sandbox, '1')).status).toBe(404)
    expect(await read(sandbox, 'latest')).toMatchObject({
      status: 422,
      json: { detail: [{ loc: ['path', 'report_id'] }] },
    })
  })

  test('counts as a basic request', async () => {
    const sandbox = await start()
    await read(sandbox, 'requests/x')
    expect(sandbox.requests.at(-1)?.tier).toBe('basic')
  })
})

describe('the file of a report', () => {
  test('is a docx unless a pdf is asked for, with the text of the report', async () => {
    const sandbox = await start({ reportMs: 0 })
    const id = await requested(sandbox, { report_title: 'R&D (<ours>)' })
    const answer = await read(sandbox, `requests/${id}`)
    const report = wireReport.parse(wireReportRequest.parse(answer.json).report)
    const docx = await read(sandbox, `${report.id}/download`)
    expect(docx.headers.get('content-type')).toBe(
      'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    )
    expect(docx.text).toContain('<w:t xml:space="preserve">R&amp;D (&lt;ours&gt;)</w:t>')
    const pdf = await read(sandbox, `${report.id}/download?format=pdf`)
    expect(pdf.headers.get('content-type')).toBe('application/pdf')
    expect(pdf.text).toContain(String.raw`(R&D \(<ours>\)) Tj`)
    const table = Number(/startxref\n(\d+)/.exec(pdf.text)?.[1])
    expect(pdf.text.slice(table)).toMatch(/^xref\n/)
  })

  test('is refused in another format, and to another tenant', async () => {
    const sandbox = await start()
    expect(await read(sandbox, '9001/download?format=odt')).toMatchObject({ status: 422 })
    expect(await read(sandbox, 'seven/download')).toMatchObject({ status: 422 })
    expect(await read(sandbox, '77/download')).toMatchObject({ status: 404 })
    expect(await read(sandbox, '9001/download', 43)).toMatchObject({ status: 403 })
  })
})
