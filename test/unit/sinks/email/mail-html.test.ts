import { expect, test } from 'vitest'
import { renderMessage } from '../../../../src/messages/message.ts'
import { renderHtml } from '../../../../src/sinks/email/mail-html.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'

test('the mail loads nothing and lets the reader choose between light and dark', () => {
  const html = renderHtml(renderMessage(aMember(), { id: 'abc' }), 'oncall')
  expect(html).toContain('<meta name="color-scheme" content="light dark">')
  expect(html).toContain('<meta name="viewport"')
  expect(html).toContain('content="telephone=no, date=no, address=no, email=no, url=no"')
  expect(html).toContain('<meta name="x-apple-disable-message-reformatting">')
  expect(html).not.toMatch(/<(?:img|link|style|script|iframe)|src=/)
})

test('an inbox and a locked phone, which show the beginning of a mail, show no leaked secret', () => {
  const event = aThreatEvent({ type: 'leaked_credential' })
  const detail = { identity_name: 'alice', domain: 'acme.com', password: 'h••••2' }
  const member = aMember({ event, detail, secret: 'hunter2-in-clear' })
  for (const body of [undefined, ['hunter2-in-clear of alice']]) {
    const html = renderHtml(renderMessage(member, { id: 'abc', own: { body } }), 'oncall')
    const [, lead = '', rest = ''] = /display:none[^>]*>([^<]*)<\/div>(.*)/s.exec(html) ?? []
    expect(lead).toContain('Fetched at: ')
    expect(lead).not.toContain('hunter2')
    const length = lead.replaceAll(/&#?\w+;/g, '_').length
    expect(length).toBeGreaterThanOrEqual(300) // behind it an inbox goes on with the page
    expect(rest).toContain('hunter2-in-clear')
  }
})
