/** Deliveries of several events, as the collecting parts hand them to sinks. */
import { zonedTime } from '../../src/messages/types/description.ts'
import {
  type DigestFacts,
  perDay,
  summarise,
  type Summary,
  type SummaryAbout,
} from '../../src/messages/summary.ts'
import type { Delivery, DeliveryMember } from '../../src/sinks/sink.ts'
import { aMember } from './deliveries.ts'
import { aThreatEvent } from './events.ts'
import { sampleEvents } from './samples.ts'

const hourMs = 3_600_000
const dueAtMs = Date.UTC(2026, 10, 21, 7, 0)

/** What all members come to; say only what the test is about. */
export function aSummary(
  members: readonly DeliveryMember[],
  about: Partial<SummaryAbout> = {},
): Summary {
  const parts = members.map(({ event, feed, fetchedAtMs }) => ({
    severity: event.severity,
    type: event.type,
    feed,
    identifiers: event.identifiers.map(({ name }) => name),
    fetchedAtMs,
    createdAtMs: event.createdAtMs,
  }))
  return summarise(parts, { kind: 'group', labels: {}, route: 'urgent', ...about })
}

/** What a digest of Zurich's morning covers, all well. */
export function digestFacts(overrides: Partial<DigestFacts> = {}): DigestFacts {
  return {
    fromMs: dueAtMs - 16 * hourMs,
    toMs: dueAtMs,
    dueAtMs,
    isLate: false,
    timeZone: 'Europe/Zurich',
    perDay: [],
    feeds: [
      { feed: 'brand', lastCaughtUpMs: dueAtMs - 60_000, isBehind: false },
      { feed: 'staff', lastCaughtUpMs: dueAtMs - 90_000, isBehind: false },
    ],
    held: 0,
    suppressed: 0,
    dead: 0,
    alreadySent: [],
    ...overrides,
  }
}

/** The parts of a delivery that make it one of several events. */
export function summarised(
  members: readonly DeliveryMember[],
  about: Partial<SummaryAbout> = {},
): Pick<Delivery, 'members' | 'summary'> {
  return { members, summary: aSummary(members, about) }
}

/** Of Tocsin itself: never among others. */
const ownTypes = new Set(['notice', 'canary'])

/** So many plausible members of every kind, over the days before `untilMs`, grave ones first. */
export function manyMembers(count: number, untilMs = dueAtMs, days = 6): DeliveryMember[] {
  const samples = sampleEvents(untilMs).filter(({ event }) => !ownTypes.has(event.type))
  const members = Array.from({ length: count }, (_, index) => {
    const { event, detail } = samples[(index * 7) % samples.length]!
    const fetchedAtMs = untilMs - ((index * 37) % (days * 24)) * hourMs
    const uid = `${event.type}/${event.source}/${1000 + index}`
    return aMember({
      id: `item${index}`,
      feed: ['brand', 'staff', 'leaks'][index % 3]!,
      event: aThreatEvent({
        ...event,
        uid,
        url: `https://app.example.com/#/uid?uid=${uid}`,
        createdAtMs: fetchedAtMs - hourMs,
        matchedAtMs: fetchedAtMs - 60_000,
        identifiers: [
          {
            id: index % 5,
            name: ['example.com', 'Example Bank', 'vpn.example.com', 'VIP: A. Muster', '400000'][
              index % 5
            ]!,
          },
        ],
      }),
      detail,
      fetchedAtMs,
    })
  })
  const ranks = ['critical', 'high', 'medium', 'low', 'info']
  return members.toSorted(
    (a, b) => ranks.indexOf(a.event.severity) - ranks.indexOf(b.event.severity),
  )
}

/** A week's digest with one feed behind and everything else that a digest can tell. */
export function aBusyDigest(count = 37): Pick<Delivery, 'members' | 'summary' | 'attachment'> {
  const members = manyMembers(count)
  const window = { fromMs: dueAtMs - 144 * hourMs, toMs: dueAtMs }
  const digest = digestFacts({
    ...window,
    perDay: perDay(
      members.map(({ event, fetchedAtMs }) => ({ severity: event.severity, fetchedAtMs })),
      zonedTime('Europe/Zurich').day,
      window,
    ),
    feeds: [
      ...digestFacts().feeds,
      { feed: 'leaks', lastCaughtUpMs: dueAtMs - 30 * hourMs, isBehind: true },
    ],
    held: 4,
    suppressed: 2,
    dead: 1,
    alreadySent: [{ severity: 'critical', count: 3 }],
  })
  return {
    ...summarised(members, { kind: 'digest', route: null, digest }),
    attachment: {
      fileName: 'tocsin-digest-2026-11-21.csv',
      contentType: 'text/csv; charset=utf-8',
      content: Buffer.from('a,b\r\n'),
    },
  }
}
