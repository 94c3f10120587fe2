/** `reports get`: a threat-flow report to read, by its id or by its request. */
import { expect, test } from 'vitest'
import { knownReportRequests } from '../../../src/sandbox/reports/reports.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene } from './service-scene.ts'

const tests = redisForTests()

const { completed, processing, error } = knownReportRequests

test('reports get is a text to read: title, times, summary, highlights, content, events', async () => {
  const { run } = await aServiceScene(tests, { backlog: 40 })
  const { code, out } = await run('reports', 'get', '9001')
  const lines = out.split('\n')
  expect(code).toBe(0)
  expect(lines[0]).toBe('What was said about us')
  expect(out).toMatch(/^report 9001, created \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/m)
  const parts = ['Summary', 'Highlights', 'Report', 'Related events'].map((part) =>
    lines.indexOf(part),
  )
  expect(parts).toEqual(parts.toSorted((a, b) => a - b))
  expect(parts).not.toContain(-1)
  expect(lines[(parts[1] ?? 0) + 1]).toMatch(/^• critical: \w+ about /)
  expect(out).toMatch(/^Kind {2,}Events$/m)
  expect(out).not.toMatch(/^#|\*\*|^\|/m)
  expect(lines.filter((line) => line.length > 96)).toEqual([])
})

test('reports get --output json is the report as the service answered it', async () => {
  const { run } = await aServiceScene(tests, { backlog: 5 })
  const { out } = await run('reports', 'get', '9001', '--output=json')
  const report = JSON.parse(out) as Record<string, unknown>
  expect(report).toMatchObject({
    id: 9001,
    title: 'What was said about us',
    tags: expect.any(Array),
  })
  expect(Object.keys(report)).toHaveLength(17)
})

test('a report is read by its request as well, its status beside it', async () => {
  const { run } = await aServiceScene(tests, { backlog: 5 })
  const { out } = await run('reports', 'get', '--request', completed)
  expect(out).toMatch(/^What was said about us\n/)
  const json = await run('reports', 'get', '--request', completed, '--output=json')
  expect(JSON.parse(json.out)).toMatchObject({ status: 'completed', report: { id: 9001 } })
})

test.each([
  [
    'processing',
    processing,
    `the report is still being made; "tocsin reports wait ${processing}" waits for it`,
  ],
  ['error', error, 'no report was made, the service says "error"'],
])('a request that is %s has no report: exit code 1', async (status, id, said) => {
  const { run } = await aServiceScene(tests)
  const text = await run('reports', 'get', '--request', id)
  expect(text).toEqual({ code: 1, out: '', err: `report request ${id}: ${said}\n` })
  const json = await run('reports', 'get', '--request', id, '--output=json')
  expect(JSON.parse(json.out)).toEqual({ status, report: null })
  expect(json.code).toBe(1)
})

test('what reads as a secret in a report is masked without --reveal', async () => {
  const { run, sandbox } = await aServiceScene(tests, { reportMs: 0 })
  const title = 'Stolen: ann@example.com:hush-hush'
  const { id } = sandbox.addReportRequest({ title })
  for (const form of ['text', 'json']) {
    const masked = await run('reports', 'get', '--request', id, `--output=${form}`)
    expect(masked.out).toContain('ann@example.com:h••••h')
    expect(masked.out).not.toContain('hush-hush')
    const shown = await run('reports', 'get', '--request', id, `--output=${form}`, '--reveal')
    expect(shown.out).toContain(title)
  }
})

test('a report cannot move the cursor of the terminal', async () => {
  const { run, sandbox } = await aServiceScene(tests, { reportMs: 0 })
  const { id } = sandbox.addReportRequest({ title: 'red\u001B[31m \u202Eevil' })
  const { out } = await run('reports', 'get', '--request', id)
  expect(out).toContain('red[31m evil')
  // oxlint-disable-next-line no-control-regex
  expect(out).not.toMatch(/[\u001B\u202E]/)
})

test.each([
  [[], 'name a report: either its id or --request <id>'],
  [['9001', '--request', completed], 'name a report: either its id or --request <id>'],
  [['latest'], 'a whole number of at least 1'],
  [['--request', '../x'], 'write the id of the request'],
])('reports get %j is refused', async (args, said) => {
  const { run, sandbox } = await aServiceScene(tests)
  const { code, err } = await run('reports', 'get', ...args)
  expect(err.toLowerCase()).toContain(said)
  expect(code).toBe(2)
  expect(sandbox.requests).toEqual([])
})

test('a report and a request that are not there are named', async () => {
  const { run } = await aServiceScene(tests)
  const unknown = '00000000-0000-4000-8000-000000000000'
  expect(await run('reports', 'get', '77')).toMatchObject({
    code: 1,
    err: 'report 77: the service refuses the request (404): no such report\n',
  })
  expect((await run('reports', 'get', '--request', unknown)).err).toMatch(
    new RegExp(`^report request ${unknown}: the service refuses the request \\(404\\)`),
  )
})

test('reports request has a report made that reports list shows', async () => {
  const { run, sent } = await aServiceScene(tests, { reportMs: 0 })
  const asking = ['reports', 'request', '--title=Ours', '--included-keywords=acme,bank']
  const requested = await run(...asking, '--since=2026-01-01', '--until=2026-02-01')
  expect(requested.out).toMatch(/^ {4}"tocsin reports wait [\da-f-]{36}" waits for the report$/m)
  expect(sent()[0]?.body).toEqual({
    report_title: 'Ours',
    time_range_type: 'range',
    time_range_from: '2026-01-01T00:00:00.000Z',
    time_range_to: '2026-02-01T00:00:00.000Z',
    included_keywords: ['acme', 'bank'],
  })
  const { out } = await run('reports', 'list', '--order=asc')
  expect(out).toMatch(/^9001 .*What was said about us\n9002 .*\n9004 .*Ours$/m)
  expect((await run('reports', 'list', '--type=standard')).out).toBe('nothing was found\n')
})

test.each([
  [['request', '--title=a', '--range=last_7d', '--since=7d'], 'choose one'],
  [['request', '--title=a', '--until=7d'], '--until goes with --since'],
  [['request', '--title=a', '--range=last_8d'], 'last_7d'],
  [['list', '--type=mine'], 'There is no "mine"'],
])('reports %j is refused before anything is sent', async (args, said) => {
  const { run, sandbox } = await aServiceScene(tests)
  const { code, err } = await run('reports', ...args)
  expect(err).toContain(said)
  expect([code, sandbox.requests]).toEqual([2, []])
})

test.each([
  [['request', '--title=a'], 'requests for reports', 'to have reports made'],
  [['list'], 'the list of reports', 'to read reports'],
])('reports %j says which permission or server it takes', async (args, operation, permission) => {
  const { run, sandbox } = await aServiceScene(tests)
  const refuse = sandbox.faults.add({ on: '/firework/*', effect: 'status', status: 403 })
  expect((await run('reports', ...args)).err).toContain(`takes the permission ${permission},`)
  refuse()
  sandbox.faults.add({ on: '/firework/*', effect: 'status', status: 404 })
  const { code, err } = await run('reports', ...args)
  expect(err).toContain(`this server does not have ${operation}`)
  expect(code).toBe(1)
})
