import { expect, test } from 'vitest'
import { parseCredential } from '../../../src/feed-types/credentials.ts'
import { renderMessage, type Message } from '../../../src/messages/message.ts'
import { refang } from '../../../src/messages/sanitize.ts'

const record = {
  id: 12,
  source_id: 'combolists',
  imported_at: '2026-01-05T16:30:37.589388+00:00',
  identity_name: 'joe@acme.com',
  hash: 'hunter2-of-joe',
  hash_type: 'bcrypt',
  domain: 'acme.com',
  auth_domains: ['vpn.acme.com', 'mail.acme.com'],
  source: {
    id: 'combolists',
    name: 'Combo of 2026',
    breached_at: '2025-12-01T00:00:00',
    leaked_at: '2025-12-24',
    pii_tags: ['email', 'phone_number'],
  },
  remediated_at: '2026-01-06T00:00:00Z',
}

function messageOf(changes: Record<string, unknown> = {}, secret?: string): Message {
  const parsed = parseCredential({ ...record, ...changes }, 'high')
  if (!parsed.ok) throw new Error(parsed.problem)
  const subject = {
    account: 'main',
    feed: 'staff',
    routes: ['urgent'],
    event: parsed.event,
    fetchedAtMs: 0,
    secret: secret ?? undefined,
  }
  return renderMessage(subject, { attempt: 1, mayBeRepeat: false })
}

const factsOf = (message: Message): [string, string][] =>
  message.facts.map(({ label, value }) => [label, value])

test('a credential message says whose, where, since when, and what it opens', () => {
  const message = messageOf()
  expect(message.title).toBe('Leaked credential: joe@acme[.]com in Combo of 2026')
  expect(message.summary).toBe('HIGH Leaked credential: joe@acme[.]com in Combo of 2026')
  expect(factsOf(message)).toEqual([
    ['Identity', 'joe@acme[.]com'],
    ['Domain', 'acme[.]com'],
    ['Source', 'Combo of 2026'],
    ['Imported', '2026-01-05 16:30 UTC'],
    ['Password', 'h••••e'],
    ['Hash type', 'bcrypt'],
    ['Signs in to', 'vpn[.]acme[.]com, mail[.]acme[.]com'],
    ['Breached', '2025-12-01 00:00 UTC'],
    ['Leaked', '2025-12-24 00:00 UTC'],
    ['Personal data', 'email, phone_number'],
  ])
  expect(message.notes).toEqual(['Marked as remediated on 2026-01-06 00:00 UTC.'])
})

test('of a credential within an event the last fact is the uid that events get takes', () => {
  const uid = 'stealer_log/stealer_logs/d41d8cd98f00b204e9800998ecf8427e_12345'
  expect(factsOf(messageOf({ event_uid: uid })).at(-1)).toEqual(['In event', uid])
  const dotted = factsOf(messageOf({ event_uid: 'leak/source.example/1' })).at(-1)?.[1] ?? ''
  expect(dotted).toBe('leak/source[.]example/1')
  expect(refang(dotted)).toBe('leak/source.example/1')
  for (const event_uid of [null, undefined, '', {}]) {
    expect(Object.fromEntries(factsOf(messageOf({ event_uid })))).not.toHaveProperty('In event')
  }
})

test('its values are not quoted once more as an extract', () => {
  expect(messageOf().extract).toBeNull()
})

test('the secret in clear is a fact, and nowhere else', () => {
  const message = messageOf({}, 'hunter2-of-joe')
  expect(factsOf(message)).toContainEqual(['Password', 'hunter2-of-joe'])
  const others = { ...message, facts: message.facts.filter(({ label }) => label !== 'Password') }
  expect(JSON.stringify(others)).not.toContain('hunter2')
  expect(JSON.stringify(messageOf())).not.toContain('hunter2')
})

test('what is missing is left out, and the title says what there is', () => {
  const nothing = { source: null, source_id: null, hash: null, hash_type: null, auth_domains: null }
  expect(messageOf({ ...nothing, identity_name: null }).title).toBe(
    'Leaked credential: an account at acme[.]com',
  )
  const bare = messageOf({ ...nothing, identity_name: null, domain: null, imported_at: null })
  expect(bare.title).toBe('Leaked credential: credential/12')
  expect(bare.facts).toEqual([])
  expect(messageOf({ source: null }).title).toBe('Leaked credential: joe@acme[.]com in combolists')
})
