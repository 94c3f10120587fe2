import { expect, test } from 'vitest'
import { parseConfig } from '../../../../src/config/load.ts'
import { type SinkConfig, sinkTypeOf } from '../../../../src/sinks/sink-types.ts'

const routingKey = 'c04d9e77b1Q4xZv8hJt2T7F3E9A51C2p'

function sinkWith(keys: string): SinkConfig {
  const yaml = `
accounts: {main: {base_url: 'https://api.example.com', api_key: key}}
feeds: {brand: {type: events, identifier_group: 7}}
sinks: {duty: {type: pagerduty, ${keys}}}
route: {sinks: [duty]}
`
  return parseConfig(yaml, { file: 'test.yaml', env: {} }).config.sinks[0]!
}

test('another key or another region is another address, of which nothing is known yet', () => {
  const addresses = [
    `routing_key: ${routingKey}`,
    `routing_key: ${routingKey.toLowerCase()}`,
    `routing_key: ${routingKey}, url: 'https://events.eu.pagerduty.com'`,
  ].map((keys) => {
    const sink = sinkWith(keys)
    return sinkTypeOf(sink).address(sink)
  })
  expect(new Set(addresses.map((address) => address.reveal())).size).toBe(3)
  expect(addresses.join()).not.toContain(routingKey)
})
