import { describe, expect, test } from 'vitest'
import { redisForTests } from '../../../support/ledger.ts'
import { aScene, aScriptedScene, asAnotherTenant, asked, failureOf } from './scene.ts'

const tests = redisForTests()

const root = '/firework/v4/threat_flow/reports'

describe('a report as a file', () => {
  const path = `${root}/9001/download`
  const docx = 'PK\u0003\u0004'
  const mebibyte = 1024 * 1024

  test.each([
    ['docx', docx],
    ['pdf', '%PDF-1.4\n'],
  ] as const)('is asked for as %s, and is whole', async (format, start) => {
    const { client, sent } = await aScene(tests)
    const file = Buffer.from(await client.downloadReport({ id: 9001, format, ...asked() }))
    expect(sent()).toMatchObject([{ method: 'GET', path, query: { format }, tier: 'basic' }])
    expect(file.subarray(0, start.length).toString('latin1')).toBe(start)
    expect(file.subarray(-22).toString('latin1')).toContain('## Events\n\n')
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

  test('has up to 64 MiB, and one byte more breaks the contract', async () => {
    const { service, client } = await aScriptedScene(tests)
    let bytes = 64 * mebibyte
    service.answer(() => ({ status: 200, body: docx.padEnd(bytes, 'x') }))
    const request = { id: 9001, format: 'docx' } as const
    expect(await client.downloadReport({ ...request, ...asked() })).toHaveLength(bytes)
    bytes += 1
    const error = await failureOf(client.downloadReport({ ...request, ...asked() }))
    expect(error).toMatchObject({ reason: 'contract', fault: 'too_large' })
    expect(error.message).toContain('over 64 MiB')
  })

  test('is refused where it is not made yet, unknown, no number, or another tenant’s', async () => {
    const { client } = await aScene(tests)
    const get = (id: number) => failureOf(client.downloadReport({ id, format: 'pdf', ...asked() }))
    expect(await get(9002)).toMatchObject({ reason: 'rejected', status: 404 })
    expect(await get(404)).toMatchObject({ reason: 'rejected', status: 404 })
    expect(await get(1.5)).toMatchObject({ details: [{ loc: 'report_id' }] })
    const foreign = await aScene(tests, { account: asAnotherTenant })
    const work = foreign.client.downloadReport({ id: 9001, format: 'pdf', ...asked() })
    expect(await failureOf(work)).toMatchObject({ reason: 'auth', status: 403 })
  })
})
