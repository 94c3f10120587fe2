/**
 * A message that does not say what was found, whose it is and where is an alarm that nobody can act on. One
 * realistic item of every type, by itself, with its full event and without what matched;
 * docs/reference/messages.md shows their titles.
 */
import { describe, expect, test } from 'vitest'
import { ownFeed } from '../../../src/event.ts'
import { parseItem } from '../../../src/feeds/types/events.ts'
import { parseCredential } from '../../../src/feeds/types/credentials.ts'
import { describedTypes } from '../../../src/messages/types/families.ts'
import { renderMessage, typeLabel } from '../../../src/messages/message.ts'
import { renderSummary } from '../../../src/messages/summary-message.ts'
import { composeMail } from '../../../src/sinks/email/email-sink.ts'
import type { DeliveryMember } from '../../../src/sinks/sink.ts'
import { feedCredential, searchCredential, searchItem } from '../../fixtures/documented-items.ts'
import { eventTypeSamples, secrets } from '../../fixtures/event-types.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aCredentialFeed } from '../../support/feeds.ts'
import { delivery, typeMembers } from '../../support/scenes.ts'
import { aSummary } from '../../support/summaries.ts'

/** The item types of the public documents, as of 2026-07-23 (docs/api-notes.md, Events). */
const itemTypes =
  'account actor actor_summary ad attachment blog_post bot bucket bucket_object cc cc_bases chat_channel_summary chat_message cookie docker_image docker_repository document domain domain_certificate domain_favicon domain_dns_records domain_ip_address domain_screenshot domain_title domain_whois_rdap driller driller_forum_post driller_forum_topic driller_google driller_profile driller_source_code entity_classification entity_summarization event experimental forum_category forum_post forum_profile forum_thread_summary forum_topic host intelligence_object invalid_credential leak leaked_credential leaked_data leaked_file listing lookalike mitigated_credential paste ransomleak ransomleak_file_listing score_event sdo_attack_pattern sdo_campaign sdo_identity sdo_indicator sdo_infrastructure sdo_location sdo_malware sdo_relationship sdo_external_report sdo_threat_actor sdo_threat_actor_group sdo_tool sdo_vulnerability seller service social_media_account source_code_secret stealer_log attachment/telegram threat_flow_summary valid_credential whois'.split(
    ' ',
  )

interface Shown {
  title: string
  subject: string
  facts: string[]
  /** All that people get, in both parts of a mail. */
  all: string
}

function show(member: DeliveryMember): Shown {
  const one = delivery([member])
  const options = { sink: 'soc', from: 'tocsin@example.com', to: 'a@example.com', nowMs: 0 }
  const { subject, text, html } = composeMail(one, options) as Record<string, string>
  const message = renderMessage(member, one)
  const facts = message.facts.slice(0, 3)
  return {
    title: message.title,
    subject: subject ?? '',
    facts: facts.map(({ label, value }) => `${label}: ${value}`),
    all: JSON.stringify(message) + text + html,
  }
}

/** Which of the three a title says, and whether a phone's notification shows the first two. */
function answers({ title, subject }: Shown, label: string, whose: string, where: string): object {
  const firstLook = Array.from(subject).slice(0, 80).join('')
  const says = (text: string, part: string): boolean =>
    text.toLowerCase().includes(part.toLowerCase())
  return {
    what: title.startsWith(`${label}: `) ? 'said' : title,
    whose: says(title, whose) ? 'said' : title,
    where: says(title, where) ? 'said' : title,
    first: says(firstLook, whose) && /^\[[A-Z]+\] [A-Z]/u.test(firstLook) ? 'said' : firstLook,
  }
}

const all = { what: 'said', whose: 'said', where: 'said', first: 'said' }

test('there is a sample of each of the 76 item types, and of every type that has words', () => {
  expect(itemTypes).toHaveLength(76)
  const sampled = typeMembers.map(({ type }) => type)
  expect(sampled.slice(0, eventTypeSamples.length).toSorted()).toEqual(itemTypes.toSorted())
  expect(sampled.toSorted()).toEqual([...describedTypes].toSorted())
})

describe.each(typeMembers)('$type', ({ type, sees, item, full, fullWhere = sees.where }) => {
  const label = item.feed === ownFeed ? sees.what : typeLabel(type)

  test('its title says what, whose and where from the search item alone', () => {
    const shown = show(item)
    expect(answers(shown, label, sees.whose, sees.where)).toEqual(all)
    expect(shown.title).toContain(sees.what)
    expect(shown.facts.length).toBeGreaterThan(0)
  })

  test('its title says it with the full event, too', () => {
    expect(answers(show(full), label, sees.whose, fullWhere)).toEqual(all)
  })

  test.runIf(item.event.identifiers.length > 0)(
    'its title names what matched and the source where the item shows nothing else',
    () => {
      const uid = `${type}/a_source/4711`
      const event = { ...item.event, uid, source: 'a_source', highlights: {} }
      const shown = show({ ...item, event })
      const { name } = event.identifiers[0]!
      const where = /lookalike|^domain$/.test(type) ? '4711' : 'a_source'
      expect(answers(shown, label, name.replaceAll('.', '[.]'), where)).toEqual(all)
    },
  )

  test('a group of an account says its severity, the account and what its worst is at first look', () => {
    const ofAcme = { ...item, account: 'acme', namesAccount: true }
    const [worst, other] = ['critical', 'high'].map((severity) => {
      return { ...ofAcme, event: { ...item.event, severity } }
    })
    const members = [worst!, other!]
    const { subject } = renderSummary({ ...delivery(members), summary: aSummary(members) })
    const firstLook = Array.from(subject).slice(0, 80).join('')
    expect(firstLook).toContain(`[1 CRITICAL] 2 new events of acme, worst: ${label}: `)
  })

  test('it shows no secret in clear', () => {
    const shown = show(item).all + show(full).all
    for (const secret of secrets) expect(shown).not.toContain(secret)
  })
})

/** Keys of the full events of all types. */
const keys = new Set(eventTypeSamples.flatMap(({ full }) => Object.keys(full?.data ?? {})))

const wrong: unknown[] = [
  null,
  undefined,
  7,
  true,
  '',
  ' ',
  [],
  [null],
  {},
  { name: {} },
  { a: [] },
]

test.each(describedTypes)('%s copes with any key missing, null or of a wrong type', (type) => {
  expect(keys.size).toBeGreaterThan(30)
  const identifiers = [{ id: 1, name: 'acme.com' }]
  const uid = `${type}/source/1`
  const event = aThreatEvent({ type, uid, source: 'source', highlights: {}, identifiers })
  for (const value of wrong) {
    const detail = Object.fromEntries([...keys].map((key) => [key, value]))
    const message = renderMessage(aMember({ event, detail }), { id: 'abc' })
    expect(message.title).toMatch(/^[A-Z][^:]+: \S/u)
    expect(JSON.stringify(message)).not.toMatch(/\[object|undefined|NaN/u)
  }
})

describe.each(eventTypeSamples.filter(({ full }) => full !== undefined))('$uid', (sample) => {
  test('with its full event adds what the item cannot say', () => {
    const { full } = typeMembers.find(({ item }) => item.event.uid === sample.uid)!
    const { title, facts } = show(full)
    for (const added of sample.full?.adds ?? [])
      expect([title, ...facts].join('\n')).toContain(added)
  })
})

const feed = aCredentialFeed()
const documented = [
  ...[feedCredential, searchCredential].map((raw) => parseCredential(raw, feed)),
  parseItem(searchItem),
].map((parsed) => {
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.event
})

test.each(documented)('the documented item $uid is titled by what, whose and where', (event) => {
  const { highlights, identifiers, type, source } = event
  const ours = identifiers[0]?.name ?? highlights['identity_name']?.[0]
  const whose = ours?.replaceAll('.', '[.]') ?? 'feed brand'
  const where = { credential: 'Sample combos', domain: 'acme-login[.]example' }[type] ?? source
  expect(answers(show(aMember({ event })), typeLabel(type), whose, where)).toEqual(all)
})

const machine = ['Accounts', 'Host', 'Windows user', 'IP address']

test.each([
  ['that matched what its title says', ['acme.com'], [...machine, 'Password', 'Account']],
  [
    'that matched something else, too',
    ['acme.com', 'VIP'],
    [...machine.slice(0, 3), 'Matched', 'IP address', 'Account'],
  ],
])(
  'the five facts of a stealer log %s name the machine that its next step isolates',
  (_what, names, labels) => {
    const { full } = typeMembers[0]!
    const event = { ...full.event, identifiers: names.map((name) => ({ id: 1, name })) }
    const { facts } = renderMessage({ ...full, event, namesAccount: true }, { id: 'abc' })
    expect(facts.map(({ label }) => label)).toEqual(labels)
  },
)

test('a stealer log with 30 of our accounts does not read as five, all that an item keeps, once the full event is there', () => {
  const accounts = Array.from({ length: 30 }, (_, at) => `u${at}@acme.com`)
  const { item } = typeMembers[0]!
  const event = { ...item.event, highlights: { 'credentials.username': accounts } }
  const others = [{ username: 'bob@other.example', url: 'https://other.example' }]
  const credentials = [...others, ...accounts.map((username) => ({ username }))]
  expect(show({ ...item, event, detail: { credentials } }).title).toMatch(
    /u0@acme\[\.\]com and 29 more/u,
  )
})

test('where not even an identifier is known, the title says by which feed', () => {
  const event = aThreatEvent({ type: 'paste', source: 'pastebin', highlights: {}, identifiers: [] })
  expect(show(aMember({ event })).title).toBe('Paste: feed brand on pastebin')
})

test.each([
  ['leaked_file', 'file_name', 'breach_forum'],
  ['ransomleak_file_listing', 'path', 'akira'],
  ['attachment', 'file_name', 'discord'],
  ['chat_channel_summary', 'conversation_name', 'telegram'],
  ['domain_dns_records', 'domain', 'flare'],
  ['bucket', 'bucket.host', 'grayhat_warfare'],
  ['ransomleak', 'title', 'lockbit'],
])(
  '%s: a name that says whose it is only at its far end has it said in front',
  (type, field, source) => {
    const event = aThreatEvent({
      uid: `${type}/${source}/1`,
      type,
      source,
      severity: 'critical',
      highlights: { [field]: [`${'long-'.repeat(15)}/acme.com`] },
      identifiers: [{ id: 7, name: 'acme.com' }],
    })
    expect(answers(show(aMember({ event })), typeLabel(type), 'acme[.]com', source)).toEqual(all)
  },
)
