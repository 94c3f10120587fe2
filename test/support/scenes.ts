/** Deliveries of every type and kind, as the recorded messages and the gallery show them. */
import { parseCredentialItem } from '../../src/feed-types/credentials.ts'
import { parseItem } from '../../src/feed-types/events.ts'
import { parseReport } from '../../src/feed-types/reports.ts'
import { maskDetail } from '../../src/masking/masking.ts'
import type { Guidance } from '../../src/messages/guidance.ts'
import type { Delivery, DeliveryMember } from '../../src/sinks/sink.ts'
import { eventTypeSamples, type EventTypeSample } from '../fixtures/event-types.ts'
import { aMember } from './deliveries.ts'
import { aCredentialFeed } from './feeds.ts'
import { aBusyDigest, digestFacts, manyMembers, summarised } from './summaries.ts'

export type Scene = [name: string, delivery: Delivery]

export function delivery(members: DeliveryMember[], more: Partial<Delivery> = {}): Delivery {
  const destination = { id: 'soc', label: 'soc' }
  return { id: 'd0123456789abcde', destination, members, attempt: 1, mayBeRepeat: false, ...more }
}

function memberOf(sample: EventTypeSample): DeliveryMember {
  const type = sample.type ?? sample.uid.split('/')[0] ?? ''
  const parsed = parseItem({
    metadata: {
      uid: sample.uid,
      type,
      severity: 'critical',
      estimated_created_at: '2026-11-01T12:00:00Z',
      flare_url: `https://api.example.com/#/uid?uid=${sample.uid}`,
    },
    highlights: sample.highlights ?? {},
    identifiers: [{ id: 7, name: sample.identifier ?? 'acme.com' }],
  })
  if (!parsed.ok) throw new Error(parsed.problem)
  return aMember({ event: parsed.event, link: parsed.event.url })
}

export const typeScenes = eventTypeSamples.flatMap((sample): Scene[] => {
  const member = memberOf(sample)
  const name = sample.type ?? sample.uid.split('/')[0] ?? ''
  const bare: Scene = [name, delivery([member])]
  if (!sample.full) return [bare]
  const detail = maskDetail(sample.full.data, sample.uid)
  return [bare, [`${name}, with the full event`, delivery([{ ...member, detail }])]]
})

function credential(): DeliveryMember {
  const raw = {
    id: 17,
    identity_name: 'joe@acme.com',
    hash: 'hunter2-Acme!',
    domain: 'acme.com',
    imported_at: '2026-11-01T12:00:00',
    auth_domains: ['sso.acme.com'],
    source: { id: 'combolists', name: 'A list', breached_at: '2020-01-01', pii_tags: ['email'] },
  }
  const parsed = parseCredentialItem(raw, aCredentialFeed())
  if (!parsed.ok) throw new Error(parsed.problem)
  return aMember({ event: parsed.event, feed: 'leaks', link: null })
}

function report(): DeliveryMember {
  const content = { id: 'r1', title: 'A flow of threats', summary: 'Much happened.' }
  const end = { requestId: 'q1', outcome: 'completed', report: content } as const
  return aMember({ event: parseReport(end, 'high'), feed: 'flows', link: null })
}

const several = manyMembers(12)
const guidance: Guidance = {
  notes: ['Ask the owner of <acme> & call #soc', 'Weekends: the second line'],
  runbookUrls: ['https://wiki.example.com/run?a=1&b=2'],
  mentions: ['U012AB3CD', 'S012AB3CD', 'here'],
  nextStep: 'Reset the login, then close its sessions.',
}

const guided = { guidance, tenantId: 17, namesAccount: true }

const guidedMembers = several.slice(0, 3).map((member, at) => ({
  ...member,
  guidance: { ...guidance, nextStep: `Step for event ${at}.` },
}))

export const otherScenes: Scene[] = [
  ['a leaked credential', delivery([credential()])],
  ['a report', delivery([report()])],
  ['a repeat, at its third attempt', delivery([aMember()], { attempt: 3, mayBeRepeat: true })],
  ['a test', delivery([aMember()], { isTest: true })],
  ['an event without a full event', delivery([aMember({ detail: 'unavailable' })])],
  ['an event with all that a configuration says', delivery([aMember(guided)])],
  ['a group with what its routes say', delivery(guidedMembers, summarised(guidedMembers))],
  ['a group', delivery(several.slice(0, 5), summarised(several.slice(0, 5)))],
  ['a large group', delivery(several, summarised(several))],
  ['a backlog', delivery(several, summarised(several, { kind: 'backlog', route: null }))],
  ['a digest', delivery(several, aBusyDigest())],
  [
    'a digest of nothing',
    delivery([], summarised([], { kind: 'digest', route: null, digest: digestFacts() })),
  ],
]
