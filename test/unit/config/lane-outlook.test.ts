import { expect, test } from 'vitest'
import { findOutlooks } from '../../../src/config/lane-outlook.ts'
import { parseConfig } from '../../../src/config/load.ts'
import type { Config } from '../../../src/config/config.ts'

function configOf(feeds: number, top = ''): Config {
  const named = Array.from(
    { length: feeds },
    (_none, at) => `  feed${at}: {type: events, identifier_group: 7}`,
  )
  const text = `
accounts: {main: {base_url: https://api.example.com, api_key: fw_key, limits: {search: 1000}}}
sinks: {soc: {type: slack, url: 'https://hooks.example.com/x'}}
route: {sinks: [soc]}
feeds:
${named.join('\n')}
${top}
`
  return parseConfig(text, { file: 'tocsin.yaml', env: {} }).config
}

test('no interval is expected that is shorter than limits.polls allows for all feeds together', () => {
  expect(findOutlooks(configOf(500))[0]).toMatchObject({ intervalMs: 5_000 })
  expect(findOutlooks(configOf(600))[0]).toMatchObject({ intervalMs: 6_000, longestMs: 6_000 })
  const slower = configOf(600, 'limits: {polls: 5}')
  expect(findOutlooks(slower)[0]).toMatchObject({ intervalMs: 120_000 })
  expect(slower.feeds[0]).toMatchObject({ lagObjectiveMs: 360_000 })
})
