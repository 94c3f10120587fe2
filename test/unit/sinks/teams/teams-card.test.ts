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
import { aBusyDigest, digestFacts, manyMembers, summarised } from '../../../support/summaries.ts'
import { anyMember } from '../any-member.ts'
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
    const long = character.repeat(5000)
    const event = aThreatEvent({
      uid: long,
      type: long,
      source: long,
      severity: long,
      originalSeverity: long,
      notes: long,
      tags: Array.from({ length: 50 }, () => long),
      identifiers: Array.from({ length: 50 }, (_, id) => ({ id, name: long })),
      highlights: { content: [`${character}\n`.repeat(2000)] },
      url: `https://app.example.com/${'a'.repeat(1900)}`,
    })
    const routes = Array.from({ length: 50 }, () => long)
    const message = render({ members: [aMember({ event, routes })], attempt: 9, mayBeRepeat: true })
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

test('a quotation keeps its lines, and those beyond twenty are joined', () => {
  const lines = Array.from({ length: 40 }, (_, index) => `line ${index}.`)
  const event = aThreatEvent({ highlights: { content: [lines.join('\n')] } })
  const text = cardText(render({ members: [aMember({ event })] }))
  expect(text).toContain('\nline 0.\nline 1.\n')
  expect(text).toContain('\nline 18.\nline 19. line 20.')
  expect(text).toContain('line 39.\n')
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

test('what is said stands in the order of the reader: title, facts, link, origin', () => {
  const text = cardText(render({ members: [aMember()] }))
  const first = text.split('\n')[0]
  expect(first).toMatch(/^HIGH · Stealer log: /)
  expect(text).toContain('\nMatched: example[.]com\n')
  expect(text).toMatch(/\ndelivery abc · uid \S+ · routes urgent\n/)
  expect(text).toMatch(/\nOpen event: https:\/\/app\.example\.com\/\S+$/)
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

test('a long list is shown as far as it is read, and the rest is counted', () => {
  const message = render(summarised(manyMembers(200)))
  expect(eventsIn(message)).toBe(25)
  expectCounted(message, 200)
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

test('Teams takes no file, so no message points to one', () => {
  expect(cardText(render(aBusyDigest(100)))).not.toContain('.csv')
})

test('a feed that is behind comes before everything but the title', () => {
  const feeds = [{ feed: 'brand', lastCaughtUpMs: null, isBehind: true }]
  const digest = digestFacts({ feeds })
  const message = render(summarised([aMember()], { kind: 'digest', digest }))
  const alarm = '⚠️ Feed brand is behind: it was never read to its end'
  expect(cardText(message).split('\n')[1]).toContain(alarm)
})

test('what was already sent stands before what is new, with title and link', () => {
  const title = 'Ransom leak: Acme named by lockbit'
  const serviceLink = 'https://app.example.com/sent'
  const sent = { severity: 'critical', type: 'ransomleak', uid: 'a/b/c', sentAtMs: 0 }
  const alreadySent = [{ ...sent, title, serviceLink }]
  const digest = digestFacts({ alreadySent, alreadySentTotal: 3 })
  const text = cardText(render(summarised([aMember()], { kind: 'digest', digest })))
  expect(text).toContain(`CRITICAL ${title} (already sent 1970-01-01 01:00) ${serviceLink}\n`)
  expect(text).toContain('and 2 more that were already sent')
  expect(text.indexOf(title)).toBeLessThan(text.indexOf('Stealer log'))
})

test('several events without a summary are refused', () => {
  expect(() => render({ members: [aMember(), aMember()] })).toThrow('has 2 events')
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
  const more = /^(?:and (\d+) more: |(\d+) not listed here: )/mu.exec(text)
  expect(eventsIn(message) + Number(more?.[1] ?? more?.[2] ?? 0)).toBe(total)
}

function eventsIn(message: TeamsMessage): number {
  const list = objectsIn(message).find(({ id }) => id === 'events')
  return (list?.['items'] as unknown[] | undefined)?.length ?? 0
}
