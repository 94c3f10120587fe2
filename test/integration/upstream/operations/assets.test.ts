import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { UpstreamClient } from '../../../../src/upstream/client.ts'
import { type AssetCreation, assetOperations } from '../../../../src/upstream/resources/assets.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { json } from '../../../support/replica.ts'
import { aScene, aScriptedScene, asked, failureOf } from './scene.ts'

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

test('an asset that breaks a stated rule is never sent', async () => {
  const { client, sent } = await aScene(tests)
  const placesOf = async (work: Promise<unknown>): Promise<string[]> =>
    (await failureOf(work)).details.map(({ loc }) => loc)
  expect(await placesOf(create(client, { name: '' }))).toEqual(['name'])
  expect(await placesOf(replace(client, 77, { name: '' }))).toEqual(['name'])
  expect(await placesOf(create(client, { id: 5, urn: 'x' }))).toEqual([''])
  expect(sent('/')).toEqual([])
})
