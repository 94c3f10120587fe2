import fc from 'fast-check'
import { expect, test } from 'vitest'
import { eventDocument, type Message, renderMessage } from '../../../../src/messages/message.ts'
import { renderHtml } from '../../../../src/sinks/email/mail-html.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { anyMember, longestMember } from '../any-member.ts'
import { runs } from '../../../support/runs.ts'

/** The HTML part of a message about one event. */
function show(message: Message): string {
  return renderHtml(eventDocument(message, 'abc'), 'oncall')
}

const ownTags = new Set(
  'a body br div h1 head html meta p pre span title !doctype'
    .split(' ')
    .flatMap((tag) => [tag, `/${tag}`]),
)

test('whatever the feed says, no tag, attribute or entity comes from it, and the part stays small', () => {
  fc.assert(
    fc.property(anyMember, (member) => {
      const message = renderMessage(member, { attempt: 2, mayBeRepeat: true, isTest: true })
      const html = show(message)
      expect(Buffer.byteLength(html)).toBeLessThan(100_000)
      for (const [tag, name = ''] of html.matchAll(/<([^\s>]*)[^>]*>?/g)) {
        expect(ownTags).toContain(name)
        const bare = tag.replaceAll(/"[^"<>]*"/g, '""')
        expect(bare).toMatch(/^<[!/]?[\w]+(?:\s+(?:html|[a-z-]+=""))*>$/)
        expect(bare).not.toMatch(/\s(?:on|src)/)
      }
      expect(html).not.toMatch(/&(?!amp;|lt;|gt;|quot;|#39;|middot;|nbsp;&zwnj;|zwnj;)/)
      expect(html).not.toMatch(/url\(|javascript:[^&]*"/i)
    }),
    { numRuns: runs({ short: 60, long: 300 }) },
  )
})

test('an event at the bounds of everything stays under what mail programs clip', () => {
  for (const character of ['"', '&', '😀']) {
    const options = { attempt: 2, mayBeRepeat: true, isTest: true }
    const message = renderMessage(longestMember(character), options)
    const facts = Array.from({ length: 12 }, () => ({
      label: character.repeat(40),
      value: character.repeat(300),
      kind: 'code' as const,
    }))
    expect(Buffer.byteLength(show({ ...message, facts }))).toBeLessThan(100_000)
  }
})

test('the mail loads nothing and lets the reader choose between light and dark', () => {
  const html = show(renderMessage(aMember(), { attempt: 1, mayBeRepeat: false }))
  expect(html).toContain('<meta name="color-scheme" content="light dark">')
  expect(html).toContain('<meta name="viewport"')
  expect(html).toContain('content="telephone=no, date=no, address=no, email=no, url=no"')
  expect(html).toContain('<meta name="x-apple-disable-message-reformatting">')
  expect(html).not.toMatch(/<(?:img|link|style|script|iframe)|src=/)
})

test('an inbox and a locked phone, which show the beginning of a mail, show no leaked secret', () => {
  const event = aThreatEvent({ type: 'leaked_credential' })
  const detail = { identity_name: 'alice', domain: 'acme.com', password: 'h••••2' }
  const message = renderMessage(aMember({ event, detail, secret: 'hunter2-in-clear' }), {
    attempt: 1,
    mayBeRepeat: false,
  })
  for (const body of [undefined, ['hunter2-in-clear of alice']]) {
    const html = show({ ...message, body })
    const [, lead = '', rest = ''] = /display:none[^>]*>([^<]*)<\/div>(.*)/s.exec(html) ?? []
    expect(lead).toContain('Fetched at: ')
    expect(lead).not.toContain('hunter2')
    const length = lead.replaceAll(/&#?\w+;/g, '_').length
    expect(length).toBeGreaterThanOrEqual(300) // behind it an inbox goes on with the page
    expect(rest).toContain('hunter2-in-clear')
  }
})
