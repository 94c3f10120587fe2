import { expect, test } from 'vitest'
import { createAddressHasher } from '../../../src/delivery/sink-address.ts'
import { parseConfig } from '../../../src/config/load.ts'

function printOf(url: string, key = 'fw_key'): string {
  const yaml = `
accounts: {main: {base_url: https://api.example.com, api_key: ${key}}}
feeds: {brand: {type: events, identifier_group: 7}}
sinks: {soc: {type: slack, url: '${url}'}}
route: {sinks: [soc]}
`
  return createAddressHasher(parseConfig(yaml, { file: 'tocsin.yaml', env: {} }).config)('soc')
}

test("an address is known again by a print that shows nothing of it, under the account's key", () => {
  const url = 'https://hooks.example.com/services/T1/B2/s3cr3t'
  expect(printOf(url)).toMatch(/^[0-9a-f]{24}$/)
  expect(printOf(url)).toBe(printOf(url))
  expect(printOf(`${url}x`)).not.toBe(printOf(url))
  expect(printOf(url, 'fw_other')).not.toBe(printOf(url))
})

test('it stays the same when another account comes on top of the file', () => {
  const printUnder = (accounts: string): string => {
    const yaml = `
accounts: {${accounts}}
feeds: {brand: {type: events, account: main, identifier_group: 7}}
sinks: {soc: {type: slack, url: 'https://hooks.example.com/x'}}
route: {sinks: [soc]}
`
    const { config } = parseConfig(yaml, { file: 'tocsin.yaml', env: {} })
    return createAddressHasher(config, [{ account: 'main' }])('soc')
  }
  const account = (name: string): string =>
    `${name}: {base_url: https://api.example.com, api_key: fw_${name}}`
  expect(printUnder(`${account('a')}, ${account('main')}`)).toBe(printUnder(account('main')))
})
