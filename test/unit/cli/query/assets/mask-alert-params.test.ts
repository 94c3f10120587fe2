import { expect, test } from 'vitest'
import { maskAnswer } from '../../../../../src/cli/api/masks.ts'
import { assetOperations } from '../../../../../src/upstream/resources/assets.ts'
import type { Operation } from '../../../../../src/upstream/resources/operation.ts'

test('of what configures the channel of an alert only the names are shown', () => {
  const params = {
    webhook_url: 'https://u:hush@hooks.example/hush?x=hush',
    basic_auth: { username: 'soc', password: 'hush' },
    labels: ['hush'],
    pin: 1234,
  }
  const row = assetOperations.groupAlerts as Operation
  expect(maskAnswer(row, { id: 5, name: 'soc', params }, { request: {}, secrets: [] })).toEqual({
    id: 5,
    name: 'soc',
    params: { webhook_url: '••••', basic_auth: '••••', labels: '••••', pin: '••••' },
  })
})
