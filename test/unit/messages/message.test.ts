import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { EventDetail, ThreatEvent } from '../../../src/event.ts'
import { describedTypes } from '../../../src/messages/types/families.ts'
import type { Document } from '../../../src/messages/document.ts'
import {
  messageLimits,
  renderMessage,
  type MessageSubject,
  type RenderOptions,
} from '../../../src/messages/message.ts'
import { sampleEvents } from '../../support/samples.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import { anyUnicode, linkable, unseenCharacters } from './any-unicode.ts'
import { runs } from '../../support/runs.ts'

function render(
  event: Partial<ThreatEvent> = {},
  options: Partial<RenderOptions> = {},
  rest: Partial<MessageSubject> = {},
): Document {
  const member = aMember({ event: aThreatEvent(event), fetchedAtMs: 1000 })
  return renderMessage({ ...member, ...rest }, { id: 'abc', ...options })
}

/** Every text of a message but its link. */
function textsOf({ link: _link, extract, ...message }: Document): string[] {
  return textsIn({ ...message, extract: { label: extract?.label } })
}

const detailTree = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    anyUnicode,
    fc.constantFrom(null, 0, true, [], {}),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(
      fc.constantFrom('name', 'host', 'hardware', 'display_name', 'topic_title', 'country_code'),
      tie('value'),
    ),
  ),
})).value

const detailKeys = fc.constantFrom(
  'victim_information',
  'malware_information',
  'actor',
  'context',
  'source',
  'bucket',
  'url',
  'title',
  'content',
  'domain',
  'identifier_domains',
  'identity_name',
  'password',
  'product',
)

const hostileSubject: fc.Arbitrary<MessageSubject> = fc
  .record({
    type: fc.oneof(fc.constantFrom(...describedTypes), anyUnicode),
    texts: fc.array(anyUnicode, { minLength: 8, maxLength: 8 }),
    names: fc.array(anyUnicode, { maxLength: 20 }),
    highlights: fc.dictionary(anyUnicode, fc.array(anyUnicode, { maxLength: 2 }), { maxKeys: 4 }),
    detail: fc.dictionary(detailKeys, detailTree),
    times: fc.oneof(fc.constant(null), fc.double()),
  })
  .map(({ type, texts: [a = '', b = '', c = '', d = ''], names, highlights, detail, times }) => ({
    account: a,
    feed: b,
    routes: names,
    event: aThreatEvent({
      type,
      uid: `${a}/${b}/${c}`,
      source: b,
      severity: d,
      originalSeverity: c,
      tags: names,
      notes: a.repeat(20),
      identifiers: names.map((name) => ({ id: 1, name })),
      highlights,
      url: d,
      ignoredAtMs: times,
      remediatedAtMs: times,
    }),
    detail: detail as EventDetail,
    fetchedAtMs: 0,
  }))

describe('whatever the feed says, a message', () => {
  test('holds no unseen character, no line break, no half character, no link and keeps its limits', () => {
    fc.assert(
      fc.property(hostileSubject, (subject) => {
        const options = { id: 'abc', attempt: 2, mayBeRepeat: true, isTest: true }
        const message = renderMessage(subject, options)
        const { extract, title, foot, facts, details } = message
        const block = extract?.text ?? ''
        for (const text of [...textsOf(message), block.replaceAll('\n', ' ')]) {
          expect(text).not.toMatch(unseenCharacters)
          expect(text).not.toMatch(linkable)
          expect(text.isWellFormed()).toBe(true)
        }
        expect(block).not.toContain('\n\n')
        for (const [text, max] of [
          [title, messageLimits.title],
          [foot.uid ?? '', messageLimits.uid],
          [block, messageLimits.extract],
        ] as const) {
          expect(Array.from(text).length).toBeLessThanOrEqual(max)
        }
        // the names of what matched stand in one fact
        const longest = messageLimits.names * (messageLimits.name + 2)
        for (const { value } of [...facts, ...details])
          expect(Array.from(value).length).toBeLessThanOrEqual(longest)
      }),
      { numRuns: runs({ short: 100, long: 500 }) },
    )
  })

  test('has at most ten names of each kind', () => {
    const names = Array.from({ length: 30 }, (_, index) => `n${index}`)
    const { details, foot } = render({ tags: names }, {}, { routes: names })
    expect(details.find(({ label }) => label === 'Tags')?.value).toMatch(
      /^n0, .*, n8, … and 21 more$/,
    )
    expect(foot.routes).toHaveLength(10)
  })
})

test.each([
  ['https://evil.example/a?b=c.d', 'hxxps://evil[.]example/a?b=c.d'],
  ['https://app.example.com.evil.example/', 'hxxps://app[.]example[.]com[.]evil[.]example/'],
])('%j, which nobody vouches for, is a text that no client links', (url, unverifiedLink) => {
  const { link, details } = render({ url }, {}, { link: undefined })
  expect(link).toBeNull()
  expect(details).toContainEqual({ label: 'Unverified link', value: unverifiedLink, kind: 'text' })
})

test('a link is ASCII without quotes and angle brackets', () => {
  const { link } = render({ url: 'https://app.example.com/"><b>\u202E#"<é>' })
  expect(link).toMatch(/^https:\/\/[!#-;=?-~]+$/u)
})

describe('the extract', () => {
  test('is the most telling highlight', () => {
    const highlights = { 'a.b': ['less'], 'data.content': ['find\r\n\r\nhttps://evil.com'] }
    expect(render({ highlights }).extract).toEqual({
      label: 'Matched in data, content',
      text: 'find\nhxxps://evil[.]com',
    })
  })

  test('is not what a fact says already', () => {
    const highlights = { 'victim_information.username': ['alice'] }
    expect(render({ highlights }).extract).toBeNull()
  })
})

test('the lines of a template stand instead of facts and extract', () => {
  const event = aThreatEvent({ highlights: { content: ['a find'] }, identifiers: [] })
  const own = { title: 'ours', body: ['one', 'two'] }
  const message = renderMessage(aMember({ event }), { id: 'abc', own })
  expect(message).toMatchObject({ ...own, notification: 'HIGH ours', facts: [], extract: null })
})

describe('the notes tell the reader', () => {
  test.each<[what: string, event: Partial<ThreatEvent>, note: string]>([
    ['of an override', { originalSeverity: 'low' }, 'the service says low'],
    ['of an ignored event', { ignoredAtMs: 0 }, 'ignored on 1970-01-01 00:00'],
    ['of a remediated event', { remediatedAtMs: 0 }, 'remediated on 1970'],
    ['what the tenant wrote', { notes: 'our\nVPN' }, 'Notes: our VPN'],
  ])('%s', (_what, event, note) => {
    expect(render(event).notes.join()).toContain(note)
    expect(render().notes).toEqual([])
  })

  test('that it is a test, as title and notification do', () => {
    const message = render({}, { isTest: true })
    expect(message.notes[0]).toContain('TEST')
    expect(message.title).toMatch(/^TEST /u)
    expect(message.notification).toBe(`HIGH ${message.title}`)
  })
})

test('a password that nobody masked is masked', () => {
  const message = render({ type: 'leaked_credential' }, {}, { detail: { password: 'hunter22' } })
  expect(JSON.stringify(message)).not.toContain('hunter22')
})

test.each([
  ['a long name', `${'a'.repeat(120)}.evil.com`],
  ['a name of many parts', `${'a.'.repeat(120)}evil.com`],
  ['a name that begins with ours', `login.acme.com.${'a'.repeat(60)}.evil.com`],
])('%s of a host keeps its end in the title, which says whose it is', (_what, domain) => {
  const { title } = render({ type: 'lookalike' }, {}, { detail: { domain } })
  expect(title).toMatch(/^Lookalike domain: (?:.* – )?…\S*a\[\.\]evil\[\.\]com/u)
})

test.each([32, 60])(
  'a matched name of a host keeps its end where room is scarce (%d)',
  (length) => {
    const identifiers = [{ id: 1, name: `${'a'.repeat(length)}.acme.com` }]
    const { title } = render({ type: 'paste', identifiers, highlights: { content: ['dump'] } })
    expect(title).toMatch(/^Paste: …a+\[\.\]acme\[\.\]com in "dump"/u)
  },
)

test('each sample renders without a bare fallback, and says TEST', () => {
  for (const { event, detail } of sampleEvents(0)) {
    const isOwn = event.type === 'notice' || event.type === 'canary'
    const feed = isOwn ? '_tocsin' : 'brand'
    const { facts, details, foot } = render(event, { isTest: true }, { detail, feed })
    expect(facts.length).toBeGreaterThan(event.type === 'canary' ? 0 : 1)
    expect(JSON.stringify(details)).toContain('TEST')
    expect(foot.uid).toContain('TEST')
  }
})

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}
