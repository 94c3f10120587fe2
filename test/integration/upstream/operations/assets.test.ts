import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import { type AssetCreation, assetOperations } from '../../../../src/upstream/resources/assets.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { json } from '../../../support/replica.ts'
import { aScene, aScriptedScene, asked, failureOf, toldBy } from './scene.ts'

const tests = redisForTests()

const asset: AssetCreation = {
  name: 'Acme',
  type: 'domain',
  search_types: ['leak', 'ads'],
  data: { fqdn: 'acme.test' },
}

function create(
  client: UpstreamClient,
  given: Record<string, unknown> = {},
): Promise<{ id: number }> {
  return client.call(assetOperations.create, { ...asset, ...given } as AssetCreation, asked())
}

function replace(
  client: UpstreamClient,
  id: number,
  given: Record<string, unknown> = {},
): Promise<unknown> {
  const whole = { ...asset, search_types: ['leak'], ...given } as never
  return client.call(
    assetOperations.replace,
    { asset_id: id, ...(whole as object) } as never,
    asked(),
  )
}

describe('an asset', () => {
  const secrets: [string, Record<string, unknown>][] = [
    ['a secret', { type: 'secret', data: { secret: 'hush-hush' } }],
    [
      'an identity',
      { type: 'identity', data: { attributes: [{ type: 'secret', secret: 'hush-hush' }] } },
    ],
    [
      'an identity with a login',
      {
        type: 'identity',
        data: { attributes: [{ type: 'credentials', username: 'anna', password: 'hush-hush' }] },
      },
    ],
  ]
  test.each(secrets)('that is %s stands in no error', async (_title, given) => {
    const { service, client } = await aScriptedScene(tests)
    const refusal = { message: 'bad data: hush-hush', code: 'hush-hush' }
    service.answer(() => json(400, refusal))
    for (const work of [() => create(client, given), () => replace(client, 5, given)]) {
      const error = await failureOf(work())
      expect(error.message).toContain('bad data: <secret>')
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('hush')
    }
  })
})

describe('an asset that breaks a stated rule is never sent', () => {
  test('where it is created or changed', async () => {
    const { client, sent } = await aScene(tests)
    for (const act of [
      create,
      (one: UpstreamClient, given: object) => replace(one, 77, { ...given }),
    ]) {
      const error = await failureOf(act(client, { name: '' }))
      expect(error).toMatchObject({ reason: 'invalid', status: undefined })
      expect(toldBy(error)).toEqual(['name: empty; write at least 1 character'])
    }
    expect(sent('/')).toEqual([])
  })

  test.each(['ad', 'ads'])('"%s" in the place of what was there', async (word) => {
    const { client, sent } = await aScene(tests)
    const error = await failureOf(replace(client, 77, { search_types: ['leak', word] }))
    expect(toldBy(error)).toEqual([
      `search_types.1: "${word}" may be given when an asset is created, not when it is replaced`,
    ])
    expect(sent('/')).toEqual([])
    expect(await create(client, { search_types: [word] })).toMatchObject({ search_types: [word] })
  })

  test('as a creation, with fields that are the service’s', async () => {
    const { client, sent } = await aScene(tests)
    const error = await failureOf(create(client, { id: 5, urn: 'x' }))
    expect(toldBy(error)).toEqual([': unknown: id, urn'])
    expect(sent('/')).toEqual([])
  })
})
