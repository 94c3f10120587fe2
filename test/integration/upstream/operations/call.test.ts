/** What the client's one call does for every operation: checks, places of fields, and writes. */
import { describe, expect, test } from 'vitest'
import { UpstreamError } from '../../../../src/upstream/error.ts'
import { assetOperations } from '../../../../src/upstream/resources/assets.ts'
import { credentialOperations } from '../../../../src/upstream/resources/credentials.ts'
import { eventOperations } from '../../../../src/upstream/resources/events.ts'
import { identifierOperations } from '../../../../src/upstream/resources/identifiers.ts'
import { legacySearchOperations } from '../../../../src/upstream/resources/legacy-search.ts'
import { policyOperations } from '../../../../src/upstream/resources/policies.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { json } from '../../../support/replica.ts'
import { aScriptedScene, asked, failureOf } from './scene.ts'

const tests = redisForTests()

const ignoring = { targets: [{ uid: 'paste/a/1' }], action: { type: 'ignore' as const } }

const asset = (type: string, data: object): object => ({ name: 'x', type, search_types: [], data })

describe('a request', () => {
  test('has each field where it belongs, lists repeated, and no cursor on the first page', async () => {
    const { client, service, sent, server } = await aScriptedScene(tests)
    service.answer(() => json(200, { items: [], next: null }))
    const page = { from: null, size: 5 }
    const listed = { types: ['domain', 'ip'], group_id: 7, ...page } as const
    await client.call(identifierOperations.list, { ...listed, types: [...listed.types] }, asked())
    await client.call(eventOperations.searchGroup, { identifier_group_id: 7, ...page }, asked())
    await client.call(legacySearchOperations.post, { from: 'a b', size: 5 }, asked())
    expect(sent()).toEqual([
      'GET /firework/v4/identifiers/?group_id=7&types=domain&types=ip&size=5',
      'POST /firework/v4/events/identifier_groups/7/_search',
      'POST /firework/v2/search/?size=5&search_after=a%20b',
    ])
    expect(JSON.parse(server.requests.at(-2)!.body)).toEqual({ size: 5 })
  })

  test('that breaks a stated limit is not sent, and every mistake is told by its field', async () => {
    const { client, server } = await aScriptedScene(tests)
    const wrong = { policy_uuid: '7', identifier_ids: [], also: 1 } as never
    const error = await failureOf(client.call(policyOperations.assign, wrong, asked()))
    expect(error.reason).toBe('invalid')
    expect(error.details.map(({ loc }) => loc)).toEqual(['policy_uuid', 'identifier_ids', ''])
    expect(server.requests).toEqual([])
  })

  test.each([
    [credentialOperations.search, { query: { type: 'secret', secret: 'Hush-4711' } }],
    [credentialOperations.cookies, { values: ['Hush-4711'] }],
    [assetOperations.create, asset('secret', { secret: 'Hush-4711' })],
    [assetOperations.replace, { asset_id: 5, ...asset('secret', { secret: 'Hush-4711' }) }],
    [
      assetOperations.create,
      asset('identity', { attributes: [{ type: 'credentials', password: 'Hush-4711' }] }),
    ],
  ])('whose secret the service quotes shows it in no error', async (row, request) => {
    const { client, service } = await aScriptedScene(tests)
    service.answer(() => json(400, { message: 'no Hush-4711 here', code: 'X' }))
    const error = await failureOf(client.call(row as never, request as never, asked()))
    expect(error.message).toContain('no ')
    expect(error.message + JSON.stringify(error.details)).not.toContain('Hush')
  })
})

describe('a write', () => {
  test('is announced right before it is sent, and not sent where that fails', async () => {
    const { client, service, sent } = await aScriptedScene(tests)
    service.answer(() => json(200, null))
    const seen: number[] = []
    const onSend = (): void => void seen.push(sent().length)
    await client.call(eventOperations.act, ignoring, { ...asked(), onSend })
    expect([seen, sent().length]).toEqual([[0], 1])
    const refuse = (): void => {
      throw new UpstreamError('invalid', 'not now')
    }
    const kept = client.call(eventOperations.act, ignoring, { ...asked(), onSend: refuse })
    expect((await failureOf(kept)).mayBeDone).toBe(false)
    expect(sent()).toHaveLength(1)
  })

  test.each([
    ['a web page', eventOperations.act, '<!doctype html><html></html>', true],
    ['nothing', eventOperations.act, '', false],
    ['another shape', eventOperations.note, '{"uid": 7}', true],
  ] as const)(
    'that is answered by %s may be done, unless nothing is to be said',
    async (_what, row, body, isOpen) => {
      const { client, service } = await aScriptedScene(tests)
      service.answer(() => ({ status: 200, body }))
      const request = row === eventOperations.act ? ignoring : { uid: 'paste/a/1', notes: 'x' }
      const ended = client.call(row as never, request as never, asked())
      const error = await ended.then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      expect(error instanceof UpstreamError && error.mayBeDone).toBe(isOpen)
    },
  )
})

describe('a report as a file', () => {
  const docx = 'PK\u0003\u0004'
  const wanted = { id: 9001, format: 'docx' } as const

  test('is taken by its first bytes, whatever content type it has, byte for byte', async () => {
    const { service, client, server, sent } = await aScriptedScene(tests)
    const body = `${docx}\u0000\r\n\u007Fé`
    service.answer(() => ({ status: 200, headers: { 'content-type': 'text/plain' }, body }))
    const file = await client.downloadReport({ ...wanted, ...asked() })
    expect(Buffer.from(file)).toEqual(Buffer.from(body))
    expect(server.requests.at(-1)?.headers['accept']).toBe('*/*')
    expect(sent()).toEqual(['GET /firework/v4/threat_flow/reports/9001/download?format=docx'])
  })

  test.each([
    ['a pdf', '%PDF-1.4', 'the answer is no file of the format docx', undefined],
    ['nothing', '', 'no file of the format docx', undefined],
    ['half of a signature', 'PK\u0003', 'no file of the format docx', undefined],
    ['a web page', '<!doctype html><p>Log in', 'the answer is a web page', 'html'],
    ['over 64 MiB', docx.padEnd(2 ** 26 + 1, 'x'), 'over 64 MiB', 'too_large'],
  ])('is not %s instead of a docx', async (_title, body, message, fault) => {
    const { service, client } = await aScriptedScene(tests)
    service.answer(() => ({ status: 200, body }))
    const error = await failureOf(client.downloadReport({ ...wanted, ...asked() }))
    expect(error).toMatchObject({ reason: 'contract', fault })
    expect(error.message).toContain(message)
  })
})
