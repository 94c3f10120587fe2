import { expect, test } from 'vitest'
import { parseConfig, type LoadedConfig } from '../../../../src/config/load.ts'

function load(more: string): LoadedConfig {
  const yaml = `
accounts: {main: {base_url: 'https://api.example.com', api_key: k}}
feeds: {brand: {type: events, identifier_group: 7}}
sinks:
  soc: {type: slack, url: 'https://hooks.example.com/a'}
  ops: {type: slack, url: 'https://hooks.example.com/b'}
  siem: {type: slack, url: 'https://hooks.example.com/c'}
route: {sinks: [soc]}
${more}`
  return parseConfig(yaml, { file: 'test.yaml', env: {} })
}

test('trouble is told after five minutes, and the canary comes each hour, unless the file says otherwise', () => {
  const { config } = load('self_alerts: {sink: ops}\ncanary: {sinks: [siem]}')
  expect(config.selfAlerts).toEqual({ sink: 'ops', fallback: undefined, afterMs: 300_000 })
  expect(config.canary).toEqual({
    everyMs: 3_600_000,
    sinks: ['siem'],
    ping: undefined,
  })
  const other = load(
    'self_alerts: {sink: ops, after: 1m}\ncanary: {sinks: [siem], every: 5m}',
  ).config
  expect(other.selfAlerts?.afterMs).toBe(60_000)
  expect(other.canary?.everyMs).toBe(300_000)
})

test('a sink for notices or the canary alone is used', () => {
  const paths = ({ warnings }: LoadedConfig): string[] => warnings.map(({ path }) => path)
  expect(paths(load(''))).toEqual(['sinks.ops', 'sinks.siem'])
  expect(paths(load('self_alerts: {sink: ops}\ncanary: {sinks: [siem]}'))).toEqual([])
  expect(paths(load('self_alerts: {sink: ops, fallback: siem}'))).toEqual([])
})

test('replicas that differ in them alone are of one generation', () => {
  expect(load('self_alerts: {sink: ops}').hash).toBe(load('canary: {sinks: [siem]}').hash)
})

test('the address of a dead-man switch is a secret', () => {
  const { config } = load("canary: {sinks: [soc], ping: 'https://ping.example.com/tok-1'}")
  expect(config.canary?.ping?.url.reveal()).toBe('https://ping.example.com/tok-1')
  expect(JSON.stringify(config)).not.toContain('tok-1')
})

test('one that is not encrypted, or private, has to be allowed', () => {
  const given = (more: string): string =>
    `canary: {sinks: [soc], ping: 'http://10.0.0.1/tok-1'${more}}`
  expect(() => load(given(''))).toThrow('canary.ping: not encrypted')
  expect(load(given(', allow_private: true')).config.canary?.ping?.allowPrivate).toBe(true)
})
