/** Invented events of many types, beside the one that `tocsin sinks test` sends. */
import type { EventDetail, ThreatEvent } from '../../src/event.ts'
import { type Sample, sampleEvent } from '../../src/messages/sample.ts'

interface Seed {
  severity: string
  detail: EventDetail
  highlights?: ThreatEvent['highlights']
}

const seeds: Record<string, Seed> = {
  leaked_credential: {
    severity: 'high',
    detail: {
      identity_name: 'test.user@example.com',
      password: 't••••t',
      imported_at: '2026-01-05T00:00:00',
      source: { id: 'test', name: 'TEST combolist' },
    },
  },
  leak: {
    severity: 'high',
    detail: {
      source: { id: 'test', name: 'TEST breach' },
      leaked_credential_count: 3,
      pii_tags: ['email', 'phone'],
    },
  },
  mitigated_credential: {
    severity: 'info',
    detail: { identity_name: 'test.user@example.com', mitigation_action: 'password reset' },
  },
  ransomleak: {
    severity: 'critical',
    detail: {
      url: 'http://test.example/victim',
      content: 'TEST: invented text of an extortion site.',
      victim_information: { name: 'TEST Example Ltd', domain: 'example.com', country: 'CH' },
    },
  },
  lookalike: {
    severity: 'medium',
    detail: {
      domain: 'examp1e.test',
      identifier_domains: ['example.com'],
      registered_at: '2026-01-05T00:00:00',
      issuer: 'TEST CA',
    },
  },
  service: {
    severity: 'high',
    detail: {
      hostname: 'vpn.example.com',
      port: 443,
      product: 'TEST appliance',
      vulnerabilities: ['CVE-2000-0001'],
    },
  },
  bucket: {
    severity: 'medium',
    detail: {
      url: 'https://test.example/backup',
      bucket: { host: 'test.example', provider: 'aws' },
    },
  },
  listing: {
    severity: 'medium',
    detail: {
      title: 'TEST listing',
      price: 12.5,
      currency: 'USD',
      actor: { name: 'test_seller' },
      content: 'TEST: invented goods.',
    },
  },
  bot: {
    severity: 'high',
    detail: {
      name: 'TEST-BOT',
      price: '9.00',
      currency: 'USD',
      victim_information: { country_code: 'CH', isp: 'TEST provider' },
    },
  },
  cc: {
    severity: 'high',
    detail: { bin: '400000', bank: 'TEST bank', brand: 'VISA', expiration: '2030-01-01T00:00:00' },
  },
  chat_message: {
    severity: 'low',
    detail: {
      actor: { name: 'test_author' },
      context: { conversation_name: 'TEST channel' },
      content: 'TEST: does anybody have example.com?',
    },
    highlights: { content: ['TEST: does anybody have example.com?'] },
  },
  forum_post: {
    severity: 'low',
    detail: {
      actor: { name: 'test_author' },
      context: { topic_title: 'TEST topic' },
      content: 'TEST: invented post about example.com.',
    },
  },
  blog_post: {
    severity: 'info',
    detail: { description: 'TEST post', content: 'TEST: invented post about example.com.' },
  },
  paste: {
    severity: 'low',
    detail: { title: 'TEST paste', content: 'TEST: invented paste about example.com.' },
  },
  social_media_account: {
    severity: 'info',
    detail: { site: 'test', username: 'example_test', url: 'https://test.example/example_test' },
  },
  notice: {
    severity: 'high',
    detail: {
      headline: 'TEST feed has not been read to its end for 22 min',
      since: '2026-01-05T08:30:00Z',
      cause: 'TEST: no poll succeeds',
      what_to_do: 'tocsin feeds list',
    },
  },
  canary: {
    severity: 'info',
    detail: { headline: 'test of the whole way', slot: '2026-01-05T08:00:00Z' },
  },
  test_type: { severity: 'info', detail: { title: 'TEST of a type that no version knows' } },
}

/** One event per family, as if matched at `atMs`; each says TEST in its uid, tags and notes. */
export function sampleEvents(atMs: number): Sample[] {
  const sample = sampleEvent(atMs)
  const others = Object.entries(seeds).map(
    ([type, { severity, detail, highlights = {} }]): Sample => {
      const uid = `${type}/tocsin-test/TEST`
      return { event: { ...sample.event, uid, type, severity, highlights }, detail }
    },
  )
  return [sample, ...others]
}
