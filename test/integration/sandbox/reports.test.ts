import { afterEach, describe, expect, test } from 'vitest'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
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
})

describe('the file of a report', () => {
  test.each([
    ['docx', 'PK\u0003\u0004', /wordprocessingml\.document$/],
    ['pdf', '%PDF-', /^application\/pdf$/],
  ])('%s begins as its format does, and holds the text', async (format, signature, type) => {
    const sandbox = await start({ reportMs: 0 })
    const { reportId } = sandbox.addReportRequest({ title: 'Weekly', readyAtMs: 0 })
    const file = await read(sandbox, `${reportId}/download?format=${format}`)
    expect(file.headers.get('content-type')).toMatch(type)
    expect(file.text.startsWith(signature)).toBe(true)
    expect(file.text).toContain('# Weekly')
  })
})
