import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { objectsIn } from '../../../../src/sandbox/receivers/received.ts'
import { findTeamsProblem } from '../../../../src/sandbox/receivers/teams-receiver.ts'
import type { Delivery } from '../../../../src/sinks/sink.ts'
import {
  cardText,
  maxRequestBytes,
  renderTeams,
  type TeamsMessage,
} from '../../../../src/sinks/teams/teams-card.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { digestFacts, manyMembers, summarised } from '../../../support/summaries.ts'
import { anyMember, longestMember } from '../any-member.ts'
import { anySummarised } from '../any-summary.ts'
import { runs } from '../../../support/runs.ts'

function render(content: Partial<Delivery>): TeamsMessage {
  return renderTeams({
    id: 'abc',
    destination: { id: 'soc', label: 'soc' },
    members: [],
    attempt: 1,
    mayBeRepeat: false,
    ...content,
  })
}

describe('whatever the feed says, Teams shows the card, and no text is open to markup', () => {
  test('of one event', () => {
    fc.assert(
      fc.property(anyMember, (member) => {
        expect(
          findProblem(render({ members: [member], attempt: 3, mayBeRepeat: true, isTest: true })),
        ).toBeNull()
      }),
      { numRuns: runs({ short: 40, long: 200 }), endOnFailure: true },
    )
  })

  test('of several events, all counted', () => {
    fc.assert(
      fc.property(anySummarised, (content) => {
        const message = render({ ...content, mayBeRepeat: true, attempt: 2 })
        expect(findProblem(message)).toBeNull()
        expectCounted(message, content.summary.total)
      }),
      { numRuns: runs({ short: 20, long: 100 }), endOnFailure: true },
    )
  })
})

test.each(['"', '😀', 'ﷺ', '\\'])(
  'an event at the bounds of everything fits, of %s',
  (character) => {
    const members = [longestMember(character)]
    const message = render({ members, attempt: 9, mayBeRepeat: true })
    expect(findProblem(message)).toBeNull()
    expect(cardText(message)).toContain('delivery abc')
  },
)

test.each([200, 900, 1900])(
  'a digest at the bounds of everything fits, every warning in it, with links of %i characters',
  (length) => {
    const long = '😀'.repeat(500)
    const feeds = Array.from({ length: 60 }, (_, index) => ({
      feed: `${index}${long}`,
      lastCaughtUpMs: null,
      isBehind: true,
      quarantined: { fresh: 3, open: 3 },
    }))
    const link = `https://app.example.com/${'a'.repeat(length)}`
    const sent = { severity: long, type: long, uid: long, sentAtMs: 0, title: long }
    const digest = digestFacts({
      feeds,
      dead: 7,
      diverted: 7,
      alreadySent: Array.from({ length: 20 }, () => ({ ...sent, serviceLink: link })),
      alreadySentTotal: 99,
    })
    const message = render(summarised(manyMembers(50), { kind: 'digest', digest, route: long }))
    expect(findProblem(message)).toBeNull()
    expectCounted(message, 50)
    expect(eventsIn(message)).toBeGreaterThan(5)
    expect(cardText(message).match(/^⚠️/gmu)?.length).toBe(13)
  },
)

test('planted markup and mentions arrive letter by letter, and links and dates that phones would read with a blank in them', () => {
  const planted =
    '<at>Everyone</at> ![x](y) [Open event](https:evil%2Ecom) **bold** &lt; {{DATE(2026-11-23T12:00:00Z)}} {{x}}'
  const message = render({ members: [aMember({ event: aThreatEvent({ notes: planted }) })] })
  expect(cardText(message)).toContain(
    'Notes: <at>Everyone</at> ![x] (y) [Open event] (https:evil%2Ecom) **bold** &lt; { {DATE(2026-11-23T12:00:00Z)}} {{x}}',
  )
  expect(findProblem(message)).toBeNull()
})

test.each([
  ['critical', 'CRITICAL', 'attention'],
  ['high', 'HIGH', 'warning'],
  ['medium', 'MEDIUM', 'accent'],
  ['low', 'LOW', 'default'],
  ['info', 'INFO', 'default'],
  ['none', 'UNKNOWN ("none")', 'attention'],
  ['constructor', 'UNKNOWN ("constructor")', 'attention'],
])('severity %s is said as %s, in the colour %s', (severity, text, color) => {
  const message = render({ members: [aMember({ event: aThreatEvent({ severity }) })] })
  expect(runsOf(message)[0]).toMatchObject({ text, color })
})

test('a link over http can be opened, as where the web application of an intranet has no TLS', () => {
  const link = 'http://fw.intranet:8080/#/uid?uid=x'
  const members = [aMember({ link }), aMember({ link, id: 'item2' })]
  const [one, several] = [render({ members: [members[0]!] }), render(summarised(members))]
  for (const message of [one, several]) {
    expect(findProblem(message)).toBeNull()
    expect(objectsIn(message).filter(({ url }) => url === link)).not.toEqual([])
  }
})

test('events are cut whole where they are too large, and the rest is counted', () => {
  const link = `https://app.example.com/${'a'.repeat(1900)}`
  const members = manyMembers(25).map((member) => ({ ...member, link }))
  const message = render(summarised(members))
  expect(findProblem(message)).toBeNull()
  expect(eventsIn(message)).toBeGreaterThan(4)
  expect(eventsIn(message)).toBeLessThan(12)
  expectCounted(message, 25)
})

/**
 * What Teams would not show, what exceeds our bound, or what may hold a text other than a text run, which knows no
 * markup; null: nothing.
 */
function findProblem(message: TeamsMessage): string | null {
  const body = JSON.stringify(message)
  const bytes = Buffer.byteLength(body)
  if (bytes > maxRequestBytes) return `${bytes} bytes`
  const reader = /"type":"(?:TextBlock|FactSet)"|"entities"/u.exec(body)
  return findTeamsProblem(body) ?? reader?.[0] ?? null
}

function runsOf(message: TeamsMessage): Record<string, unknown>[] {
  return objectsIn(message).filter(({ type }) => type === 'TextRun')
}

function expectCounted(message: TeamsMessage, total: number): void {
  const text = cardText(message)
  const more = /^(?:and (\d+) more(?:: |, not)|(\d+) not listed here)/mu.exec(text)
  expect(eventsIn(message) + Number(more?.[1] ?? more?.[2] ?? 0)).toBe(total)
}

function eventsIn(message: TeamsMessage): number {
  const list = objectsIn(message).find(({ id }) => id === 'events')
  return (list?.['items'] as unknown[] | undefined)?.length ?? 0
}
