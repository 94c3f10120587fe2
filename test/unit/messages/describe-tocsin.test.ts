import { expect, test } from 'vitest'
import { buildBeginAlert } from '../../../src/self-alerts/self-alerts.ts'
import { renderMessage, type Message } from '../../../src/messages/message.ts'
import type { ThreatEvent } from '../../../src/event.ts'
import { aThreatEvent } from '../../support/events.ts'

const sinceMs = Date.UTC(2026, 10, 21, 8)
const brand = { kind: 'feed-stalled', name: 'brand' } as const
const noted = { sinceMs, seenMs: sinceMs, dueMs: sinceMs + 22 * 60_000 }

function render(event: ThreatEvent, isTest = false, feed = '_tocsin'): Message {
  const subject = { account: 'main', feed, routes: ['notices'], event, fetchedAtMs: 0 }
  return renderMessage(subject, { attempt: 1, mayBeRepeat: false, isTest })
}

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

test.each(['notice', 'canary'])("a %s of the service's own is no word of Tocsin's", (type) => {
  const event = aThreatEvent({ ...canary, uid: `${type}/tocsin/1`, type, source: 'tocsin' })
  const message = render(event, false, 'brand')
  expect(message.title).not.toMatch(/whole way|Tocsin:/u)
  expect(message.notes).not.toContain(shows)
  expect(message.extract?.text).toBe('test of the whole way')
})
