/**
 * A message that does not say what was found, whose it is and where is an alarm that nobody can act on. One
 * realistic search item of every type, by itself and with its full event; `-t printed` prints the table.
 */
import { describe, expect, test } from 'vitest'
import { parseItem } from '../../../src/feed-types/events.ts'
import { maskDetail } from '../../../src/masking/masking.ts'
import { describedTypes } from '../../../src/messages/families.ts'
import { renderMessage } from '../../../src/messages/message.ts'
import { composeMail } from '../../../src/sinks/email/email-sink.ts'
import { arrangeFacts, type DeliveryMember } from '../../../src/sinks/sink.ts'
import { type EventTypeSample, eventTypeSamples, secrets } from '../../fixtures/event-types.ts'
import { aMember } from '../../support/deliveries.ts'

/** The item types of the public documents, as of 2026-07-23 (docs/api-notes.md, Events). */
const itemTypes =
  'account actor actor_summary ad attachment blog_post bot bucket bucket_object cc cc_bases chat_channel_summary chat_message cookie docker_image docker_repository document domain domain_certificate domain_favicon domain_dns_records domain_ip_address domain_screenshot domain_title domain_whois_rdap driller driller_forum_post driller_forum_topic driller_google driller_profile driller_source_code entity_classification entity_summarization event experimental forum_category forum_post forum_profile forum_thread_summary forum_topic host intelligence_object invalid_credential leak leaked_credential leaked_data leaked_file listing lookalike mitigated_credential paste ransomleak ransomleak_file_listing score_event sdo_attack_pattern sdo_campaign sdo_identity sdo_indicator sdo_infrastructure sdo_location sdo_malware sdo_relationship sdo_external_report sdo_threat_actor sdo_threat_actor_group sdo_tool sdo_vulnerability seller service social_media_account source_code_secret stealer_log attachment/telegram threat_flow_summary valid_credential whois'.split(
    ' ',
  )

function typeOf({ uid, type }: EventTypeSample): string {
  return type ?? uid.split('/')[0] ?? ''
}

interface Shown {
  title: string
  subject: string
  facts: string[]
  /** All that people get, in both parts of a mail. */
  all: string
}

function show(sample: EventTypeSample, changes: Partial<DeliveryMember> = {}): Shown {
  const parsed = parseItem({
    metadata: { uid: sample.uid, type: typeOf(sample), severity: 'critical' },
    highlights: sample.highlights ?? {},
    identifiers: [{ id: 7, name: sample.identifier ?? 'acme.com' }],
  })
  if (!parsed.ok) throw new Error(parsed.problem)
  const member = aMember({ event: parsed.event, ...changes })
  const delivery = {
    id: 'e1',
    destination: { id: 'soc', label: 'soc' },
    members: [member],
    attempt: 1,
    mayBeRepeat: false,
  }
  const options = { sink: 'soc', from: 'tocsin@example.com', to: 'a@example.com', nowMs: 0 }
  const { subject, text, html } = composeMail(delivery, options) as Record<string, string>
  const message = renderMessage(member, delivery)
  const facts = arrangeFacts(message).first.slice(0, 3)
  return {
    title: message.title,
    subject: subject ?? '',
    facts: facts.map(({ label, value }) => `${label}: ${value}`),
    all: JSON.stringify(message) + text + html,
  }
}

function full(sample: EventTypeSample): Shown {
  return show(sample, { detail: maskDetail(sample.full?.data ?? {}) })
}

const cases = eventTypeSamples.map((sample) => ({ type: typeOf(sample), sample }))

test('there is a sample of each of the 76 item types, and words for each', () => {
  expect(itemTypes).toHaveLength(76)
  expect(cases.map(({ type }) => type).toSorted()).toEqual(itemTypes.toSorted())
  expect(itemTypes.filter((type) => !describedTypes.includes(type))).toEqual([])
})

describe.each(cases)('$type', ({ sample }) => {
  const { sees } = sample

  test('says what, whose and where from the search item alone', () => {
    const { title, subject, facts } = show(sample)
    const seen = [title, ...facts].join('\n')
    expect(title).toContain(sees.what)
    expect(title).toContain(sees.whose)
    expect(seen).toContain(sees.where)
    expect(facts.length).toBeGreaterThan(1)
    const firstLook = Array.from(subject).slice(0, 80).join('')
    expect(firstLook).toMatch(/^\[CRITICAL\] [A-Z]/u)
    expect(firstLook).toContain(sees.whose)
  })

  test('says it with the full event too, and more', () => {
    const { title, subject, facts } = full(sample)
    const seen = [title, ...facts].join('\n')
    expect(seen.toLowerCase()).toContain(sees.whose.toLowerCase())
    expect(Array.from(subject).slice(0, 80).join('')).toContain(sees.whose)
    for (const added of sample.full?.adds ?? []) expect(seen).toContain(added)
  })

  test('shows no secret in clear', () => {
    const shown = show(sample).all + full(sample).all
    for (const secret of secrets) expect(shown).not.toContain(secret)
  })
})

test('the first fact of a stealer log is the stolen account, then its login page and masked password', () => {
  const [stealer] = eventTypeSamples
  expect(show(stealer!).facts).toEqual([
    'Accounts: joe@acme[.]com, ann@acme[.]com',
    'Login page: hxxps://sso[.]acme[.]com/login',
    'Password: h••••!',
  ])
  expect(full(stealer!).title).toBe(
    'Stealer log: joe@acme[.]com and 1 more at sso[.]acme[.]com, Lumma on DESKTOP-7 (CH)',
  )
})

test('a stealer log with 30 of our accounts does not read as five, all that an item keeps, once the full event is there', () => {
  const accounts = Array.from({ length: 30 }, (_, at) => `u${at}@acme.com`)
  const sample = {
    uid: 'stealer_log/lumma/1',
    highlights: { 'credentials.username': accounts },
    sees: { what: '', whose: '', where: '' },
  }
  const others = [{ username: 'bob@other.example', url: 'https://other.example' }]
  const credentials = [...others, ...accounts.map((username) => ({ username }))]
  expect(show(sample, { detail: { credentials } }).title).toMatch(/u0@acme\[\.\]com and 29 more/u)
})

test('where nothing matched but the type, the title still says where and by which feed', () => {
  const { title } = show({ uid: 'bot/russian_market/1', sees: { what: '', whose: '', where: '' } })
  expect(title).toBe('Bot for sale: acme[.]com at russian_market')
  const event = parseItem({ metadata: { uid: 'paste/pastebin/1' } })
  if (!event.ok) throw new Error(event.problem)
  const bare = renderMessage(aMember({ event: event.event }), { attempt: 1, mayBeRepeat: false })
  expect(bare.title).toBe('Paste: feed brand on pastebin')
})

test('as a table, printed', () => {
  const rows = cases.flatMap(({ type, sample }) => [
    [type, show(sample)] as const,
    ...(sample.full ? [[`${type} (full)`, full(sample)] as const] : []),
  ])
  const table = rows.map(
    ([type, { title, subject, facts }]) =>
      `${type}\n  ${title}\n  ${subject}\n  ${facts.join(' | ')}`,
  )
  process.stdout.write(`${table.join('\n')}\n`)
  expect(rows.length).toBeGreaterThan(76)
})
