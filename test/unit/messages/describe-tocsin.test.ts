import { expect, test } from 'vitest'
import { buildBeginAlert, buildEndAlert } from '../../../src/operator/alerts/self-alerts.ts'
import { renderMessage } from '../../../src/messages/message.ts'
import type { Document } from '../../../src/messages/document.ts'
import { renderSummary } from '../../../src/messages/summary-message.ts'
import type { ThreatEvent } from '../../../src/event.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import { summarised } from '../../support/summaries.ts'

const sinceMs = Date.UTC(2026, 10, 21, 8)
const brand = { kind: 'feed-stalled', name: 'brand' } as const
const noted = { sinceMs, seenMs: sinceMs, dueMs: sinceMs + 22 * 60_000 }

function render(event: ThreatEvent, isTest = false, feed = '_tocsin'): Document {
  const subject = { account: 'main', feed, routes: ['notices'], event, fetchedAtMs: 0 }
  return renderMessage(subject, { id: 'abc', isTest })
}

test('the end of a trouble says from when to when it was', () => {
  const message = render(buildEndAlert(brand, { ...noted, goneMs: sinceMs + 31 * 60_000 }, 0))
  expect(message.title).toBe('Tocsin: over after 31 min: feed brand: not read to the end')
  expect(message.facts.map(({ label, value }) => `${label} ${value}`)).toEqual([
    'Since 2026-11-21 08:00 UTC',
    'Over 2026-11-21 08:31 UTC',
  ])
})

test('a cause with hostile text stays text', () => {
  const { facts } = render(
    buildBeginAlert(brand, noted, 'paused:\u202e see\nhttps://evil.example/x'),
  )
  expect(facts[1]?.value).toBe('paused: see hxxps://evil[.]example/x')
})

const canary = {
  uid: 'canary/tocsin/1',
  type: 'canary',
  source: 'tocsin',
  severity: 'info',
  tags: ['TEST'],
  identifiers: [],
  highlights: { headline: ['test of the whole way'], slot: ['2026-11-21T08:00:00.000Z'] },
}

const shows =
  "TEST: Tocsin's own test event, which shows that messages arrive here; nothing happened."

test('a canary is marked as a test in its title, and says that nobody asked for it', () => {
  const message = render(aThreatEvent(canary), true)
  expect(message.title).toBe('TEST Canary: test of the whole way')
  expect(message.notes[0]).toBe(shows)
  expect(JSON.stringify(message)).not.toContain('asked for')
})

test('so do canaries that come together; a test of a sink was asked for', () => {
  const subject = { account: 'main', routes: ['canary'], fetchedAtMs: 0 }
  const own = { ...subject, feed: '_tocsin', event: aThreatEvent(canary) }
  const options = { id: 'abc', isTest: true }
  const { summary } = summarised([aMember(), aMember()])
  expect(renderSummary({ members: [own, own], summary: summary!, ...options }).notes).toEqual([
    shows,
  ])
  expect(renderMessage(aMember(), options).notes[0]).toContain('was asked for')
})

test.each(['notice', 'canary'])("a %s of the service's own is no word of Tocsin's", (type) => {
  const event = aThreatEvent({ ...canary, uid: `${type}/tocsin/1`, type, source: 'tocsin' })
  const message = render(event, false, 'brand')
  expect(message.title).not.toMatch(/whole way|Tocsin:/u)
  expect(message.notes).not.toContain(shows)
  expect(message.extract?.text).toBe('test of the whole way')
})
