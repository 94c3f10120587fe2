import { expect, test } from 'vitest'
import { renderMessage } from '../../../src/messages/message.ts'
import { eventPath, messagePath } from '../../../src/messages/page-links.ts'
import { type Related, relatedFacts } from '../../../src/messages/related.ts'
import { ownFeed } from '../../../src/event.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'

function say(related: Related, timeZone = 'UTC'): string[] {
  return relatedFacts(related, { name: 120, timeZone }).map(
    ({ label, value }) => `${label}: ${value}`,
  )
}

const atMs = Date.UTC(2026, 9, 21, 8, 15)

test.each([
  [['soc'], 'soc'],
  [['soc', 'siem', 'lake'], 'soc, siem, lake'],
  [['soc', 'siem', 'lake', 'a', 'b', 'c', 'd'], 'soc, siem, lake and 4 more'],
])('who gets it too is named, three at most: %j', (otherRecipients, named) => {
  expect(say({ otherRecipients })).toEqual([`Also routed to: ${named}`])
})

test('a login and a host are told apart, and the time is the reader’s', () => {
  const seenBefore = [
    { kind: 'host', times: 1, lastMs: atMs },
    { kind: 'login', times: 12, lastMs: atMs },
  ] as const
  expect(say({ seenBefore }, 'Europe/Zurich')).toEqual([
    'Seen before: same login in 12 events, last 2026-10-21 10:15 CEST (08:15 UTC); same host in 1 event, last 2026-10-21 10:15 CEST (08:15 UTC)',
  ])
})

test('of several logins the one counts that was seen most often, then last', () => {
  const seen = [
    [2, atMs + 60_000],
    [3, atMs - 60_000],
    [3, atMs],
  ].map(([times = 0, lastMs = 0]) => ({ kind: 'login' as const, times, lastMs }))
  expect(say({ seenBefore: seen })).toEqual([
    'Seen before: same login in 3 events, last 2026-10-21 08:15 UTC',
  ])
})

test('nothing is said where there is nothing to say, and nothing of a canary', () => {
  expect(say({})).toEqual([])
  const canary = aMember({
    feed: ownFeed,
    event: aThreatEvent({ type: 'canary' }),
    otherRecipients: ['soc'],
  })
  expect(renderMessage(canary, { id: 'd1' }).related).toEqual([])
})

test('the name of a recipient is text', () => {
  expect(say({ otherRecipients: ['https://evil.example\u202E\n<b>'] })).toEqual([
    'Also routed to: hxxps://evil[.]example <b>',
  ])
})

test('an address has no character that its readers act upon', () => {
  const hostile = '../a b"<>&?#\ud800'
  expect(eventPath({ account: hostile, recordId: hostile })).toMatch(
    /^\/events\/[\w.%-]+\/[\w.%-]+$/,
  )
  expect(messagePath(hostile, undefined)).toMatch(/^\/messages\/[\w.%-]+$/)
})
