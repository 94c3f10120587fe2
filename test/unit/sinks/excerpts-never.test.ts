/** With `excerpts: never` nothing that a sink sends holds a text of an event; facts stay. */
import { expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/load.ts'
import { toDeliveryMember } from '../../../src/delivery/send/delivery-member.ts'
import { ownFeed } from '../../../src/event.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import { toCsvRow } from '../../../src/messages/csv.ts'
import { titleOf } from '../../../src/messages/message.ts'
import { defang } from '../../../src/messages/sanitize.ts'
import { createSink } from '../../../src/sinks/create-sink.ts'
import type { DeliveryMember } from '../../../src/sinks/sink.ts'
import { readTemplateValues } from '../../../src/sinks/templates/event-data.ts'
import { everySink, openSinks, previewOf } from '../../gallery/page.ts'
import { bareMembers } from '../../support/delivery.ts'
import { delivery, typeMembers } from '../../support/scenes.ts'
import { summarised } from '../../support/summaries.ts'

/** What the samples quote; what else they hold says whose, where or what. */
const freeFields = new Set(
  'content body title topic_title description summary about signature records subject'.split(' '),
)
/** Stands in each sample in fields that nobody knows, and where a fact is expected. */
const sentinel = 'Grey heron lands'

function textsIn(value: unknown, field = ''): string[] {
  if (typeof value === 'string') return freeFields.has(field) ? [value] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, one]) =>
    textsIn(one, Array.isArray(value) ? field : (key.split('.').at(-1) ?? key)),
  )
}

/** The words of a text that no name or address of its facts holds. */
function piecesOf(text: string): string[] {
  return text
    .split(/\S*[.@:]\S*/u)
    .flatMap((piece) => (/\S \S/u.test(piece.trim()) ? [piece.trim()] : []))
}

/** The member with texts in fields of every kind. */
function withTexts(member: DeliveryMember): DeliveryMember {
  const { event, detail } = member
  const { highlights } = event
  const long = `${sentinel} ${'and waits '.repeat(20)}`
  return {
    ...member,
    event: {
      ...event,
      notes: sentinel,
      tags: ['seen-twice', sentinel],
      highlights: {
        ...highlights,
        'data.unheard_of': [sentinel],
        'x.username': [`a\n${sentinel}`],
      },
    },
    detail: {
      ...(detail as object),
      unheard_of: sentinel,
      comments: [{ text: sentinel, by: { email: long } }],
      [sentinel]: 1,
    },
  }
}

/** As a sink gets it that hides excerpts, or shows them. */
function given(member: DeliveryMember, hidesExcerpts: boolean): DeliveryMember {
  const { id, account, feed, labels, event, detail, fetchedAtMs } = member
  const { uid, severity } = event
  const payload = { event, fetchedAtMs, ...(detail !== undefined && { detail }) }
  const title = titleOf({ feed, event, detail }) // as the ledger has it
  const about = {
    id,
    uid,
    severity,
    feed,
    labels,
    routes: [],
    raisedFrom: undefined,
    payload,
    title,
  }
  const made = toDeliveryMember({ hidesExcerpts }, account, about, bareMembers)
  if (!made) throw new Error('there is no payload')
  return { ...made, link: member.link }
}

const sinks = await openSinks()

/** All that the five sinks send of an event, of a group with it, its row and its template values. */
function shown(member: DeliveryMember): string {
  const group = [member, { ...member, id: 'other' }]
  const previews = [...sinks.keys()].flatMap((to) => [
    previewOf(sinks, to, delivery([member])),
    previewOf(sinks, to, to === 'webhook' ? delivery(group) : delivery(group, summarised(group))),
  ])
  expect(previews).not.toContain(undefined)
  return JSON.stringify([previews, toCsvRow(member), readTemplateValues(member, {})])
}

const upstream = typeMembers.filter(({ item }) => item.feed !== ownFeed)

test.each(upstream)('a sink with excerpts: never shows no text of $type', ({ item, full }) => {
  for (const member of [item, full, withTexts(full)]) {
    const { event, detail } = member
    const texts = [
      ...textsIn(event.highlights),
      ...textsIn(detail),
      ...textsIn({ content: sentinel }),
    ]
    const pieces = texts.flatMap((text) => [...piecesOf(text), ...piecesOf(defang(text))])
    const said = shown(given(member, true))
    expect(pieces.filter((piece) => said.includes(piece))).toEqual([])
    for (const { name } of event.identifiers) expect(said).toContain(defang(name))
    expect(said.includes('Excerpt withheld: this sink shows none.') || texts.length === 1).toBe(
      true,
    )
  }
})

test.each(upstream)('any other sink shows texts of $type', ({ full }) => {
  const said = shown(given(withTexts(full), false))
  expect(said).toContain(sentinel)
  expect(said).not.toContain('Excerpt withheld')
})

test.each([
  ['credentials.url', `https://${'sso.'.repeat(60)}acme.com/login`, true],
  ['credentials.url', `${'sso.'.repeat(60)}acme.com/login`, false],
  ['data.seen', '2026-11-01T12:00:00+01:00', true],
  ['data.seen', '2026-11-01 was when they met', false],
  ['data.pin', 'h••••2', true],
  ['data.pin', 'the pin is h••••2', false],
])('of a field %s the value "%s" stays: %s', (field, value, stays) => {
  const { item } = typeMembers[0]!
  const event = { ...item.event, highlights: { [field]: [value] } }
  const { highlights } = given({ ...item, event }, true).event
  expect(highlights).toEqual({ [field]: stays ? [value] : [] })
})

test('an event of facts alone looks the same at every sink', () => {
  const ofFacts = upstream.filter(
    ({ full }) => shown(given(full, true)) === shown(given(full, false)),
  )
  const types =
    'stealer_log bot cookie credential leaked_credential leak valid_credential lookalike'
  expect(ofFacts.map(({ type }) => type)).toEqual(
    expect.arrayContaining([...types.split(' '), 'whois', 'service', 'host', 'bucket', 'account']),
  )
})

test.each(typeMembers.filter(({ item }) => item.feed === ownFeed))(
  'a sink with excerpts: never keeps the words of $type, which are our own',
  ({ item }) => {
    expect(given(item, true)).toEqual(given(item, false))
  },
)

test.each([
  ['excerpts: never, ', true],
  ['excerpts: safe, ', false],
  ['', false],
])('a sink of every type takes "%s"', async (key, hidesExcerpts) => {
  const text = everySink.replaceAll('{ type: ', (given, at: number) =>
    everySink.slice(at - 8, at).includes('brand') ? given : `{ ${key}type: `,
  )
  const { config } = parseConfig(text, { file: 'tocsin.yaml', env: {} })
  const parts = { logger: createLogger({ level: 'silent' }), clock: systemClock }
  const made = await Promise.all(config.sinks.map(async (one) => createSink(one, parts)))
  expect(made.map((sink) => [sink.type, sink.hidesExcerpts])).toEqual(
    ['slack', 'teams', 'email', 'pagerduty', 'webhook'].map((type) => [type, hidesExcerpts]),
  )
})
