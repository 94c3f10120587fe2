/** Times that readers see are theirs, beside UTC. */
import { expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/load.ts'
import { outletsOf } from '../../../src/delivery/outlets.ts'

const head = `accounts: {main: {base_url: 'https://api.example.com', api_key: k}}
feeds: {brand: {type: events, identifier_group: 7}}
route: {sinks: [soc]}
`

test.each([
  `soc: {type: slack, url: 'https://hooks.slack.com/services/T0/B0/x', time_zone: Europe/Zurich}`,
  `soc: {type: email, smtp: 'smtps://mail.example.com', from: a@example.com, to: [b@example.com], time_zone: Europe/Zurich}`,
  `soc: {type: pagerduty, routing_key: 0123456789abcdef0123456789abcdef, time_zone: Europe/Zurich}`,
])('%s reaches the sink', (sink) => {
  const { config } = parseConfig(`${head}sinks: {${sink}}\n`, { file: 'tocsin.yaml', env: {} })
  expect(config.sinks[0]).toMatchObject({ timeZone: 'Europe/Zurich' })
})

test('the days of a digest are counted in the zone of its sink, else of its schedule', () => {
  const digest = `digest: {schedule: '0 8 * * *', timezone: Europe/Zurich}`
  const zoneWith = (own: string): string | undefined => {
    const sink = `soc: {type: slack, url: 'https://hooks.slack.com/services/T0/B0/x', ${own}${digest}}`
    const given = parseConfig(`${head}sinks: {${sink}}\n`, { file: 'tocsin.yaml', env: {} })
    return outletsOf(given.config.sinks).get('soc')?.digest?.timeZone
  }
  expect(zoneWith('time_zone: America/New_York, ')).toBe('America/New_York')
  expect(zoneWith('')).toBe('Europe/Zurich')
})

test('a zone that is none is refused with its line', () => {
  const text = `${head}sinks: {soc: {type: slack, url: 'https://hooks.slack.com/services/T0/B0/x', time_zone: Zurich}}\n`
  expect(() => parseConfig(text, { file: 'tocsin.yaml', env: {} })).toThrow(
    /time_zone: not a time zone/,
  )
})
