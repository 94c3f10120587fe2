import { expect, test } from 'vitest'
import { withheldText } from '../../../src/masking/masking.ts'
import { readVictims } from '../../../src/messages/types/victims.ts'
import { aThreatEvent } from '../../support/events.ts'

test('the logins of a stealer log are those that matched, its machine is named by the full event', () => {
  const event = aThreatEvent({
    type: 'stealer_log',
    highlights: {
      'credentials.username': ['joe@acme.com', 'joe@acme.com'],
      'victim_information.username': ['admin'],
    },
  })
  expect(readVictims(event)).toEqual({ logins: ['joe@acme.com'], hosts: [] })
  const machine = { hardware: ['CPU: x', 'HOSTNAME: DESKTOP-7'], hwid: 'A1B2' }
  expect(readVictims(event, { victim_information: machine }).hosts).toEqual(['DESKTOP-7'])
  expect(readVictims(event, { user_information: { hwid: 'A1B2' } }).hosts).toEqual(['A1B2'])
})

test.each([
  ['joe@acme.com', ['joe@acme.com']],
  ['joe@acme.com:h••••2', ['joe@acme.com']],
  ['joe@acme.com | ••••', ['joe@acme.com']],
  ['h••••2', []],
  ['a b:h••••2', []],
  [`${withheldText}`, []],
])('of the identity "%s" the login is %j', (identity, logins) => {
  const event = aThreatEvent({ type: 'credential', highlights: { identity_name: [identity] } })
  expect(readVictims(event).logins).toEqual(logins)
})

test('the writer of a post is nobody whose login leaked', () => {
  const event = aThreatEvent({ type: 'forum_post', highlights: { username: ['joe'] } })
  expect(readVictims(event)).toEqual({ logins: [], hosts: [] })
})

test('at most eight logins count', () => {
  const names = Array.from({ length: 20 }, (_none, n) => `joe${n}`)
  const event = aThreatEvent({ type: 'bot', highlights: { email: names } })
  expect(readVictims(event).logins).toEqual(names.slice(0, 8))
})
