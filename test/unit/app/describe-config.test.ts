import { expect, test } from 'vitest'
import { hashOfAll } from '../../../src/app/describe-config.ts'
import { parseConfig } from '../../../src/config/load.ts'

const base = `
accounts: {main: {base_url: https://api.example.com, api_key: fw_key}}
feeds: {brand: {type: events, identifier_group: 7}}
sinks: {soc: {type: webhook, url: 'https://hooks.example.com/x', secret: a-secret-of-24-bytes-abc}}
route: {sinks: [soc]}
`

function hashOf(text: string): number {
  return hashOfAll(parseConfig(text, { file: 'tocsin.yaml', env: {} }).config)
}

test('the hash of a configuration follows every change, also those over which no replicas fight', () => {
  const changes = [
    base.replace('example.com/x', 'example.com/y'),
    base.replace('24-bytes-abc', '24-bytes-abd'),
    base.replace('fw_key', 'fw_kez'),
    `${base}notices: {sink: soc}\n`,
    `${base}canary: {every: 2h, sinks: [soc]}\n`,
    `${base}retention: {max_bytes: 2GiB}\n`,
    `${base}http: {port: 9999}\n`,
  ]
  const hashes = [base, ...changes].map(hashOf)
  expect(new Set(hashes).size).toBe(hashes.length)
  expect(hashes.every((hash) => Number.isSafeInteger(hash) && hash > 0)).toBe(true)
  expect(hashOf(base)).toBe(hashes[0])
})
