import { describe, expect, test } from 'vitest'
import type { EventDetail, ThreatEvent } from '../../../src/event.ts'
import { describedTypes } from '../../../src/messages/families.ts'
import { renderMessage, type Message } from '../../../src/messages/message.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'

function render(event: Partial<ThreatEvent>, detail?: EventDetail | 'unavailable'): Message {
  const identifiers = [{ id: 1, name: 'acme.com' }]
  const subject = aMember({
    event: aThreatEvent({ highlights: {}, identifiers, ...event }),
    detail,
  })
  return renderMessage(subject, { attempt: 1, mayBeRepeat: false })
}

interface Family {
  uid: string
  detail: EventDetail
  title: string
  facts: Record<string, string>
  extract?: string
  /** What is said of it from the search item alone. */
  bare: string
}

const families: Family[] = [
  {
    uid: 'stealer_log/stealer_logs_live/1',
    detail: {
      victim_information: {
        country_code: 'CH',
        os: 'Windows 11',
        ip_address: '10.1.2.3',
        hardware: ['CPU: x', 'Computer Name: DESKTOP-7'],
      },
      malware_information: { malware_family: 'LummaC2', infected_at: '2026-01-05T08:30:00' },
      credentials: [{}, {}],
    },
    title: 'Stealer log: LummaC2 on DESKTOP-7 (CH) (matched acme[.]com) in stealer_logs_live',
    facts: {
      Malware: 'LummaC2',
      Infected: '2026-01-05 08:30 UTC',
      Host: 'DESKTOP-7',
      Country: 'CH',
      System: 'Windows 11',
      'IP address': '10[.]1[.]2[.]3',
      Credentials: '2',
    },
    bare: 'Stealer log: acme[.]com in stealer_logs_live',
  },
  {
    uid: 'bot/market/1',
    detail: {
      price: '9.00',
      currency: 'USD',
      victim_information: { country_code: 'CH', isp: 'Swisscom' },
    },
    title: 'Bot for sale: acme[.]com on a machine in CH, Swisscom for 9.00 USD at market',
    facts: { Price: '9.00 USD', Country: 'CH', Provider: 'Swisscom' },
    bare: 'Bot for sale: acme[.]com at market',
  },
  {
    uid: 'leaked_credential/combolists/0cc175b9c0f1b6a831c399e269772661',
    detail: {
      identity_name: 'joe@acme.com',
      password: 'hunter22',
      imported_at: '2026-01-05T00:00:00+00:00',
      source: { id: 'combolists', name: 'Combo of 2026' },
    },
    title: 'Leaked credential: joe@acme[.]com in Combo of 2026',
    facts: {
      Identity: 'joe@acme[.]com',
      Source: 'Combo of 2026',
      Imported: '2026-01-05 00:00 UTC',
      Password: 'h••••2',
    },
    bare: 'Leaked credential: acme[.]com in combolists',
  },
  {
    uid: 'leak/breach/1',
    detail: {
      source: { id: 'x', name: 'Acme breach' },
      leaked_credential_count: 1204,
      pii_tags: ['email', 'phone'],
      term: 'acme.com',
    },
    title: 'Leak: acme[.]com in Acme breach with 1204 credentials',
    facts: { Source: 'Acme breach', Credentials: '1204', 'Personal data': 'email, phone' },
    bare: 'Leak: acme[.]com in breach',
  },
  {
    uid: 'mitigated_credential/entra/1',
    detail: {
      identity_name: 'joe@acme.com',
      tenant_integration_id: 'abc-1',
      mitigation_action: 'disabled',
    },
    title: 'Mitigated credential: joe@acme[.]com checked by entra – disabled',
    facts: { Identity: 'joe@acme[.]com', Mitigation: 'disabled', Integration: 'abc-1' },
    bare: 'Mitigated credential: acme[.]com checked by entra',
  },
  {
    uid: 'ransomleak/lockbit/1',
    detail: {
      url: 'http://abc.onion/acme',
      content: 'We have your files',
      victim_information: { name: 'Acme Ltd', domain: 'acme.com', city: 'Bern', country: 'CH' },
    },
    title: 'Ransom leak: Acme Ltd (matched acme[.]com) named by lockbit',
    facts: {
      Victim: 'Acme Ltd',
      Domain: 'acme[.]com',
      Group: 'lockbit',
      Place: 'Bern, CH',
      'Leak page': 'hxxp://abc[.]onion/acme',
    },
    extract: 'We have your files',
    bare: 'Ransom leak: acme[.]com mentioned by lockbit',
  },
  {
    uid: 'lookalike/flare/acme-login.com',
    detail: {
      domain: 'acme-login.com',
      identifier_domains: ['acme.com'],
      issuer: 'Free CA',
      registered_at: '2026-01-05T00:00:00',
    },
    title: 'Lookalike domain: acme-login[.]com resembles acme[.]com',
    facts: { Domain: 'acme-login[.]com', Resembles: 'acme[.]com', Issuer: 'Free CA' },
    bare: 'Lookalike domain: acme-login[.]com resembles acme[.]com',
  },
  {
    uid: 'service/scan/1',
    detail: {
      hostname: 'vpn.acme.com',
      port: 443,
      product: 'nginx',
      vulnerabilities: ['CVE-2024-1', 'CVE-2024-2', 'c', 'd', 'e', 'f', 'g'],
    },
    title: 'Exposed service: vpn[.]acme[.]com:443 runs nginx, 7 known vulnerabilities',
    facts: {
      Host: 'vpn[.]acme[.]com:443',
      Product: 'nginx',
      Vulnerabilities: 'CVE-2024-1, CVE-2024-2, c, d, e and 2 more',
    },
    bare: 'Exposed service: acme[.]com found by scan',
  },
  {
    uid: 'bucket_object/grayhat_warfare/1',
    detail: {
      url: 'https://b.s3.example/x.sql',
      bucket: { host: 'b.s3.example', provider: 'aws' },
    },
    title: 'File in an open bucket: acme[.]com – x[.]sql in b[.]s3[.]example at aws',
    facts: {
      Bucket: 'b[.]s3[.]example',
      Provider: 'aws',
      Address: 'hxxps://b[.]s3[.]example/x[.]sql',
    },
    bare: 'File in an open bucket: acme[.]com at grayhat_warfare',
  },
  {
    uid: 'listing/apollon_market/9861',
    detail: {
      title: 'Acme logins',
      price: 12.5,
      currency: 'USD',
      actor: { name: 'vendor1' },
      content: 'Fresh!',
    },
    title: 'Market listing: acme[.]com in "Acme logins" for 12.5 USD by vendor1 on apollon_market',
    facts: { Price: '12.5 USD', Seller: 'vendor1', Market: 'apollon_market' },
    extract: 'Fresh!',
    bare: 'Market listing: acme[.]com mentioned on apollon_market',
  },
  {
    uid: 'cc/shop/1',
    detail: {
      bin: '400000',
      bank: 'Acme Bank',
      brand: 'VISA',
      expiration: '2027-03-01T00:00:00',
      has_cvv: true,
      has_pin: false,
    },
    title: 'Payment card: BIN 400000, Acme Bank, VISA (matched acme[.]com) on shop',
    facts: { BIN: '400000', Bank: 'Acme Bank', Expires: '2027-03', 'Sold with': 'CVV' },
    bare: 'Payment card: acme[.]com on shop',
  },
  {
    uid: 'chat_message/telegram/-100/7',
    detail: {
      actor: { id: '5', name: 'bad_guy' },
      context: { conversation_name: 'Logs & more' },
      content: 'who has acme?',
    },
    title: 'Chat message: acme[.]com mentioned by bad_guy in channel Logs & more on telegram',
    facts: { Conversation: 'Logs & more', Author: 'bad_guy', Platform: 'telegram' },
    extract: 'who has acme?',
    bare: 'Chat message: acme[.]com mentioned on telegram',
  },
  {
    uid: 'forum_post/xss/1',
    detail: {
      actor: { name: 'bad_guy' },
      context: { topic_title: 'Selling access' },
      posted_at: '2026-01-05T10:00:00+05:30',
      content: 'RDP to acme',
    },
    title: 'Forum post: acme[.]com in "Selling access" by bad_guy on xss',
    facts: { Topic: 'Selling access', Author: 'bad_guy', Posted: '2026-01-05 04:30 UTC' },
    extract: 'RDP to acme',
    bare: 'Forum post: acme[.]com mentioned on xss',
  },
  {
    uid: 'forum_topic/xss/1',
    detail: { title: 'Selling access', actor: 'bad_guy', first_post_preview: 'RDP' },
    title: 'Forum topic: acme[.]com in "Selling access" by bad_guy on xss',
    facts: { Topic: 'Selling access' },
    extract: 'RDP',
    bare: 'Forum topic: acme[.]com mentioned on xss',
  },
  {
    uid: 'blog_post/news/1',
    detail: { url: 'https://news.example/1', description: 'Acme hacked', content: 'Text' },
    title: 'Blog post: acme[.]com in "Acme hacked" on news',
    facts: { Page: 'hxxps://news[.]example/1' },
    extract: 'Text',
    bare: 'Blog post: acme[.]com mentioned on news',
  },
  {
    uid: 'paste/pastebin/1',
    detail: { title: 'dump', actor: { name: 'anon' }, content: 'Text', syntax: 'sql' },
    title: 'Paste: acme[.]com in "dump" by anon on pastebin',
    facts: { Title: 'dump', Author: 'anon', Site: 'pastebin', Syntax: 'sql' },
    extract: 'Text',
    bare: 'Paste: acme[.]com mentioned on pastebin',
  },
  {
    uid: 'social_media_account/x/1',
    detail: { site: 'X', username: 'acme_help', url: 'https://x.example/acme_help' },
    title: 'Social media account: acme_help (matched acme[.]com) on X',
    facts: { 'User name': 'acme_help', Site: 'X' },
    bare: 'Social media account: acme[.]com on x',
  },
  {
    uid: 'source_code_files/github/1',
    detail: { title: 'config.py', content: 'x = 1', actor: { name: 'dev' } },
    title: 'Source code files: acme[.]com in "config[.]py" by dev on github',
    facts: { Title: 'config[.]py', Author: 'dev', Source: 'github' },
    extract: 'x = 1',
    bare: 'Source code files: acme[.]com mentioned on github',
  },
]

function eventOf(uid: string): Partial<ThreatEvent> {
  const [type = '', source = ''] = uid.split('/')
  return { uid, type, source }
}

describe.each(families)('$uid', ({ uid, detail, title, facts, extract, bare }) => {
  test('with its detail says what matters', () => {
    const message = render(eventOf(uid), detail)
    const said = Object.fromEntries(message.facts.map(({ label, value }) => [label, value]))
    expect(message.title).toBe(title)
    expect(said).toMatchObject(facts)
    expect(message.extract?.text).toBe(extract)
  })

  test('without its detail says what the search item gives', () => {
    const message = render(eventOf(uid), 'unavailable')
    expect(message.title).toBe(bare)
    expect(message.notes.join()).toContain('not available in time')
    expect(message.link).toBe(
      'https://app.example.com/#/uid?uid=stealer_log/stealer_logs_live/12345',
    )
  })
})

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
  const keys = families.flatMap(({ detail }) => Object.keys(detail))
  for (const value of wrong) {
    const detail = Object.fromEntries(keys.map((key) => [key, value]))
    const message = render({ type, uid: `${type}/source/1`, source: 'source' }, detail)
    expect(message.title).toMatch(/^[A-Z][^:]+: \S/u)
    expect(JSON.stringify(message)).not.toMatch(/\[object|undefined|NaN/u)
  }
})

test('a hint in the highlights is used where there is no detail', () => {
  const highlights = { identity_name: ['joe@acme.com'], imported_at: ['2026-01-05'] }
  const message = render({ ...eventOf('leaked_credential/combolists/1'), highlights })
  expect(message.title).toBe('Leaked credential: joe@acme[.]com in combolists')
  expect(message.facts).toContainEqual({
    label: 'Imported',
    value: '2026-01-05 00:00 UTC',
    kind: 'time',
    atMs: Date.UTC(2026, 0, 5),
  })
})
