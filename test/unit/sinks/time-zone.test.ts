/** Times that readers see are theirs, beside UTC. */
import { expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/load.ts'
import { groupingSinks } from '../../../src/delivery/grouping-sinks.ts'
import { mailContent } from '../../../src/sinks/email/email-sink.ts'
import type { Delivery } from '../../../src/sinks/sink.ts'
import { previewSlack } from '../../../src/sinks/slack/slack-message.ts'
import { renderTeams } from '../../../src/sinks/teams/teams-card.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aBusyDigest } from '../../support/summaries.ts'

const event = aThreatEvent({
  createdAtMs: Date.UTC(2026, 10, 1, 12),
  matchedAtMs: Date.UTC(2026, 6, 1, 23, 30),
})

function inZone(timeZone: string | undefined, content: Partial<Delivery> = {}): string[] {
  const delivery: Delivery = {
    id: 'abc',
    destination: { id: 'soc', label: 'soc' },
    members: [aMember({ event })],
    attempt: 1,
    mayBeRepeat: false,
    timeZone,
    ...content,
  }
  const { text, html } = mailContent(delivery, 'oncall')
  return [
    text,
    html,
    JSON.stringify(previewSlack(delivery).inBlocks),
    JSON.stringify(renderTeams(delivery)),
  ]
}

test('in winter and in summer, with the day in UTC where it is another', () => {
  for (const said of inZone('Europe/Zurich')) {
    expect(said).toContain('2026-11-01 13:00 CET (12:00 UTC)')
    expect(said).toContain('2026-07-02 01:30 CEST (2026-07-01 23:30 UTC)')
  }
})

test('without a zone they are UTC', () => {
  for (const said of inZone(undefined)) {
    expect(said).toContain('2026-11-01 12:00 UTC')
    expect(said).not.toContain('(12:00 UTC)')
  }
})

test('a digest has the zone of its sink, else of its schedule', () => {
  const digest = aBusyDigest(3)
  const [own = ''] = inZone('America/New_York', digest)
  expect(own).toContain('(America/New_York)')
  const [scheduled = ''] = inZone(undefined, digest)
  expect(scheduled).toContain('(Europe/Zurich)')
})

test('where a digest’s days are of another zone than its times, the days say of which', () => {
  for (const said of inZone('America/New_York', aBusyDigest(3))) {
    expect(said).toMatch(/(?:By day|Days) \(Europe\/Zurich\)/)
  }
  for (const said of inZone('Europe/Zurich', aBusyDigest(3))) {
    expect(said).not.toMatch(/(?:By day|Days) \(/)
  }
})

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
    return groupingSinks(given.config.sinks).get('soc')?.digest?.timeZone
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
