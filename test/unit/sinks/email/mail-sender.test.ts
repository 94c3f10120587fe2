import { expect, test } from 'vitest'
import { emailType } from '../../../../src/sinks/email/config.ts'
import { composeMail } from '../../../../src/sinks/email/email-sink.ts'
import { aMember } from '../../../support/deliveries.ts'

const usual = { type: 'email', smtp: 'smtp://h.example', from: 'a@b.example', to: ['c@d.example'] }

function senderOf(from: string): unknown {
  const delivery = {
    id: '0123456789abcdef',
    destination: { id: 'a', label: 'c@d.example' },
    members: [aMember()],
    attempt: 1,
    mayBeRepeat: false,
  }
  return composeMail(delivery, { sink: 'oncall', from, to: 'c@d.example', nowMs: 0 }).from
}

test.each([
  ['a@b.example', 'Tocsin'],
  ['<a@b.example>', 'Tocsin'],
  ['Night watch <a@b.example>', 'Night watch'],
  ['"Watch, night" <a@b.example>', 'Watch, night'],
  ['The "night" watch <a@b.example>', 'The "night" watch'],
  ['"night" watch<a@b.example>', '"night" watch'],
])('%j is the sender a@b.example, called %j', (from, name) => {
  expect(emailType.config.safeParse({ ...usual, from }).success).toBe(true)
  expect(senderOf(from)).toEqual({ name, address: 'a@b.example' })
})

test.each(['\u0007', '\u0000', '\u009F', '\u001B'])(
  'the control character %j stands in no address and no name',
  (character) => {
    for (const wrong of [
      { from: `a@b${character}.example` },
      { from: `N${character} <a@b.example>` },
      { to: [`a${character}@b.example`] },
    ]) {
      expect(emailType.config.safeParse({ ...usual, ...wrong }).success).toBe(false)
    }
  },
)
