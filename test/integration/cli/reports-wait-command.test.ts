/** `reports wait`: until a report is made, and on to a sink. */
import { expect, test } from 'vitest'
import { readRecord } from '../../../src/store/records.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene } from './service-scene.ts'

const tests = redisForTests()

test('waits for a report that is being made, and says where to read it', async () => {
  const { sandbox, run } = await aServiceScene(tests)
  const readyAtMs = Date.now() + 2_000
  const { id, reportId } = sandbox.addReportRequest({ tenantId: 42, readyAtMs })
  const { code, out, err } = await run('reports', 'wait', id)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toContain(`report ${reportId} is ready: `)
  expect(out).toContain(`read it with: tocsin reports get ${reportId}`)
  expect(Date.now()).toBeGreaterThanOrEqual(readyAtMs)
})

test('hands the report to sinks through the ledger, once', async () => {
  const { sandbox, run, prefix } = await aServiceScene(tests)
  const { id, reportId } = sandbox.addReportRequest({ tenantId: 42, readyAtMs: 0 })
  const { code, out } = await run('reports', 'wait', id, '--sink', 'soc')
  expect(code).toBe(0)
  expect(out).toContain(`tocsin items show threat_flow/report/${reportId}`)
  await run('reports', 'wait', id, '--sink', 'soc')
  const ledger = await tests.ledger({ keys: createKeys(prefix) })
  const record = await readRecord(
    ledger,
    ledger.fingerprints.recordId(`threat_flow/report/${reportId}`),
  )
  expect(record?.items).toMatchObject([{ sink: 'soc', routes: ['reports'] }])
})

test('ends with what the service says where no report is made, and when the time is over', async () => {
  const { sandbox, run } = await aServiceScene(tests)
  const failed = sandbox.addReportRequest({ tenantId: 42, readyAtMs: 0, title: '[error]' })
  const slow = sandbox.addReportRequest({ tenantId: 42, readyAtMs: Date.now() + 3_600_000 })
  const ended = await run('reports', 'wait', failed.id)
  expect(ended).toMatchObject({ code: 1, out: '' })
  expect(ended.err).toContain(`report request ${failed.id}: the service reports "error"`)
  const late = await run('reports', 'wait', slow.id, '--timeout', '1s')
  expect(late).toMatchObject({ code: 1, out: '' })
  expect(late.err).toContain('still being made after 1 s; wait again, or longer with --timeout')
})

test.each([
  [['unknown-request'], 1, 'report request unknown-request: '],
  [['a/b'], 2, 'Write the id of the request as the service gave it.'],
  [['first', '--sink', 'sok'], 2, 'there is no sink "sok"; did you mean "soc"?'],
  [['first', '--timeout', 'soon'], 2, 'Write a number and its unit, such as 90s or 30m.'],
])('%j is refused in a sentence', async (args, code, words) => {
  const { run } = await aServiceScene(tests)
  const ended = await run('reports', 'wait', ...args)
  expect(ended.code).toBe(code)
  expect(ended.err).toContain(words)
  expect(ended.err).not.toMatch(/\n\s+at /)
})
