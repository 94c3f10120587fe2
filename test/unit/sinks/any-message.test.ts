/**
 * Whatever a feed says, each serializer stays within its receiver's limits, leaves nothing open to
 * markup, counts every event and keeps the id of the delivery.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Guidance } from '../../../src/messages/guidance.ts'
import { objectsIn } from '../../support/objects-in.ts'
import { findSlackError } from '../../../src/sandbox/receivers/slack-receiver.ts'
import { findTeamsProblem } from '../../../src/sandbox/receivers/teams-receiver.ts'
import { mailContent } from '../../../src/sinks/email/email-sink.ts'
import { renderIncident } from '../../../src/sinks/pagerduty/pagerduty-sink.ts'
import type { Delivery } from '../../../src/sinks/sink.ts'
import {
  maxBlocksLength,
  previewSlack,
  slackLimits,
} from '../../../src/sinks/slack/slack-message.ts'
import { cardText, maxRequestBytes, renderTeams } from '../../../src/sinks/teams/teams-card.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import { runs } from '../../support/runs.ts'
import { digestFacts, manyMembers, summarised } from '../../support/summaries.ts'
import { anyMember, longestMember } from './any-member.ts'
import { anySummarised } from './any-summary.ts'

type Content = Pick<Delivery, 'members'> & Partial<Delivery>

/** What a serializer made, and the checks of its own. */
interface Seen {
  said: string
  bytes: number
  maxBytes: number
  /** Events that are listed; undefined: it lists none one by one. */
  listed?: number
}

const looks: Record<string, (delivery: Delivery) => Seen> = {
  'Slack in blocks'(delivery) {
    const { text, blocks = [] } = previewSlack(delivery).inBlocks
    expect(findSlackError(previewSlack(delivery).inBlocks)).toBeNull()
    expectInertInSlack(text)
    const found = objectsIn(blocks)
    const open = found.filter(
      ({ type, text: shown, emoji }) =>
        (type === 'mrkdwn' && !pings.test(String(shown))) ||
        (type === 'link' && shown !== 'open') ||
        (type === 'plain_text' &&
          (emoji !== false || /[<>]|&(?!amp;|lt;|gt;)/.test(String(shown)))),
    )
    expect(open).toEqual([])
    const lists = blocks.filter((one) => one.type === 'rich_text' && one.block_id === undefined)
    const rows = objectsIn(lists).filter(({ type }) => type === 'rich_text_list')
    const listed = rows.flatMap(({ elements }) => elements as unknown[]).length
    const said = JSON.stringify(blocks)
    expect(said.isWellFormed()).toBe(true)
    return { said, bytes: said.length, maxBytes: maxBlocksLength - 1, listed }
  },
  'Slack in plain words'(delivery) {
    const { text: said } = previewSlack(delivery).plainText
    const [first = '', second = '', ...rest] = said.split('\n')
    const isPing = pings.test(second)
    expectInertInSlack([first, ...(isPing ? [] : [second]), ...rest].join('\n'))
    return { said, bytes: said.length, maxBytes: slackLimits.text }
  },
  Teams(delivery) {
    const card = renderTeams(delivery)
    const body = JSON.stringify(card)
    expect(findTeamsProblem(body)).toBeNull()
    expect(body).not.toMatch(/"type":"(?:TextBlock|FactSet)"|"entities"/)
    const list = objectsIn(card).find(({ id }) => id === 'events')
    const listed = (list?.['items'] as unknown[] | undefined)?.length ?? 0
    return {
      said: cardText(card),
      bytes: Buffer.byteLength(body),
      maxBytes: maxRequestBytes,
      listed,
    }
  },
  'mail in HTML'(delivery) {
    const { html: said, subject } = mailContent(delivery, 'oncall')
    expect(Array.from(subject).length).toBeLessThanOrEqual(180)
    for (const [tag, name = ''] of said.matchAll(/<([^\s>]*)[^>]*>?/g)) {
      expect(ownTags).toContain(name)
      expect(tag.replaceAll(/"[^"<>]*"/g, '""')).not.toMatch(/\s(?:on\w+|src)|"[^"]*</)
    }
    expect(said).not.toMatch(/&(?!amp;|lt;|gt;|quot;|#39;|middot;|nbsp;|zwnj;|#9888;)/)
    const tags = said.match(/<[^>]*>/g)?.join('')
    expect(tags).not.toMatch(/url\(|="javascript:|<(?:img|link|style|script)/i)
    const listed = said.match(/<td width="4" bgcolor="[^"]*" style="width:4px/g)?.length ?? 0
    return { said, bytes: Buffer.byteLength(said), maxBytes: 99_000, listed }
  },
  'mail in text'(delivery) {
    const { text: said } = mailContent(delivery, 'oncall')
    return { said, bytes: Buffer.byteLength(said), maxBytes: 102_000 }
  },
  PagerDuty(delivery) {
    const incident = renderIncident(delivery)
    const said = JSON.stringify(incident)
    const { Events: events = [], Delivery: id } = incident.payload.custom_details
    const listed = events.length
    return {
      said: `${said} delivery ${String(id)}`,
      bytes: Buffer.byteLength(said),
      maxBytes: 500_000,
      listed,
    }
  },
}

const pings = /^(?:<[@!][^<>]+> ?)+(?:and \d+ more who are not pinged)?$/

function expectInertInSlack(text: string): void {
  expect(text.length).toBeLessThanOrEqual(slackLimits.text)
  expect(text).not.toMatch(/[<>`]|&(?!amp;|lt;|gt;)/)
}

const ownTags = new Set(
  'a b body br div h1 h2 head html meta p pre span table td title tr'
    .split(' ')
    .flatMap((tag) => [tag, `/${tag}`])
    .concat('!doctype', '!--[if', '![endif]--'),
)

function deliveryOf(content: Content): Delivery {
  const destination = { id: 'soc', label: 'soc' }
  return { id: 'abc', destination, attempt: 3, mayBeRepeat: true, ...content }
}

const kept = { excessBytes: 0, hasId: true, uncounted: 0 }

function judge(look: (delivery: Delivery) => Seen, content: Content): typeof kept {
  const { said, bytes, maxBytes, listed } = look(deliveryOf(content))
  const [, more, none = 0] = /(?:and (\d+) more(?:: |, not)|(\d+) not listed here)/.exec(said) ?? []
  const { total = 0 } = content.summary ?? {}
  return {
    excessBytes: Math.max(0, bytes - maxBytes),
    hasId: /delivery:? abc/.test(said), // also in plain words, whatever is cut
    uncounted: total === 0 || listed === undefined ? 0 : total - listed - Number(more ?? none),
  }
}

/** The longest that a configuration takes; escaped, each character takes five. */
function longGuidance(at: number): Guidance {
  const long = (each: number): string => `${at}-${each} ${'&'.repeat(395)}`
  return {
    notes: [0, 1, 2, 3, 4].map(long),
    runbookUrls: [0, 1, 2].map(
      (each) => `https://wiki.example.com/${at}-${each}/${'a'.repeat(960)}`,
    ),
    mentions: [0, 1, 2, 3, 4].map((each) => `U${at}${each}2AB3CDEFGHIJK`),
    nextStep: long(9),
  }
}

const guided = manyMembers(200).map((member, at) => ({ ...member, guidance: longGuidance(at) }))
const long = '😀'.repeat(500)
const longLink = `https://app.example.com/${'a'.repeat(1900)}`
const fullDigest = digestFacts({
  feeds: Array.from({ length: 60 }, (_, index) => ({
    feed: `${index}${long}`,
    lastCaughtUpMs: null,
    isBehind: true,
    quarantined: 3,
  })),
  dead: 7,
  diverted: 7,
  alreadySent: Array.from({ length: 20 }, () => ({ severity: long, count: 5 })),
})

const several: [string, Content][] = [
  ['a group with all that its routes say', summarised(guided)],
  [
    'events with long links',
    summarised(manyMembers(25).map((one) => ({ ...one, link: longLink }))),
  ],
  ['a digest', summarised(manyMembers(50), { kind: 'digest', digest: fullDigest, route: long })],
]
const fullest: [string, Content][] = [
  ...['"', '&', '<', '\\', '😀', 'ﷺ'].map((character): [string, Content] => [
    `one event, all of ${character}`,
    { members: [{ ...longestMember(character), guidance: longGuidance(0) }], isTest: true },
  ]),
  ...several,
]

describe.each(Object.entries(looks))('%s keeps its limits', (_name, look) => {
  test('for any event', () => {
    fc.assert(
      fc.property(anyMember, (member) => {
        expect(judge(look, { members: [member], isTest: true })).toEqual(kept)
      }),
      { numRuns: runs({ short: 30, long: 300 }), endOnFailure: true },
    )
  })

  test('for any events together', () => {
    fc.assert(
      fc.property(anySummarised, (content) => {
        expect(judge(look, content)).toEqual(kept)
      }),
      { numRuns: runs({ short: 15, long: 100 }), endOnFailure: true },
    )
  })

  test.each(fullest)('for %s', (_what, content) => {
    expect(judge(look, content)).toEqual(kept)
  })

  test.each(several)('and lists the worst of %s', (_what, content) => {
    expect(look(deliveryOf(content)).listed ?? Infinity).toBeGreaterThan(3)
  })
})

test('several events without a summary are refused', () => {
  const content = { id: 'abc', destination: { id: 'soc', label: 'soc' }, attempt: 1 }
  const members = [aMember(), aMember({ event: aThreatEvent() })]
  expect(() => previewSlack({ ...content, mayBeRepeat: false, members })).toThrow('has 2 events')
})
