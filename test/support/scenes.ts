/** Deliveries of every type and kind, as the recorded messages and the gallery show them. */
import { ownFeed } from '../../src/event.ts'
import { parseCookie } from '../../src/feeds/types/cookies.ts'
import { parseCredential } from '../../src/feeds/types/credentials.ts'
import { parseItem } from '../../src/feeds/types/events.ts'
import { withholdIn } from '../../src/masking/masking.ts'
import { withoutExcerpts } from '../../src/masking/excerpts.ts'
import { createGuidanceFinder, type Guidance } from '../../src/messages/guidance.ts'
import type { Delivery, DeliveryMember } from '../../src/sinks/sink.ts'
import { buildBeginAlert, ownEvent } from '../../src/operator/alerts/self-alerts.ts'
import { eventTypeSamples, type EventTypeSample, type Seen } from '../fixtures/event-types.ts'
import { aThreatEvent } from './events.ts'
import { aMember } from './deliveries.ts'
import { aCookieFeed, aCredentialFeed } from './feeds.ts'
import { aBusyDigest, digestFacts, manyMembers, summarised } from './summaries.ts'

export type Scene = [name: string, delivery: Delivery]

export function delivery(members: DeliveryMember[], more: Partial<Delivery> = {}): Delivery {
  const destination = { id: 'soc', label: 'soc' }
  return { id: 'd0123456789abcde', destination, members, attempt: 1, mayBeRepeat: false, ...more }
}

const findGuidance = createGuidanceFinder({ nextSteps: {}, runbookUrls: {} }, () => undefined)

/** With the next step that a configuration without words of its own gives. */
function withNextStep(member: DeliveryMember): DeliveryMember {
  return { ...member, guidance: findGuidance(member) }
}

function typeOf({ uid, type }: EventTypeSample): string {
  return type ?? uid.split('/')[0] ?? ''
}

function memberOf(sample: EventTypeSample): DeliveryMember {
  const type = typeOf(sample)
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
  return withNextStep(aMember({ event: parsed.event, link: parsed.event.url }))
}

export const typeScenes = eventTypeSamples.flatMap((sample): Scene[] => {
  const member = memberOf(sample)
  const name = typeOf(sample)
  const bare: Scene = [name, delivery([member])]
  if (!sample.full) return [bare]
  const detail = withholdIn(sample.full.data, sample.uid)
  return [bare, [`${name}, with the full event`, delivery([{ ...member, detail }])]]
})

function credential(id = 17, name = 'joe@acme.com'): DeliveryMember {
  const raw = {
    id,
    identity_name: name,
    hash: 'hunter2-Acme!',
    domain: 'acme.com',
    imported_at: '2026-11-01T12:00:00',
    auth_domains: ['sso.acme.com'],
    source: { id: 'combolists', name: 'A list', breached_at: '2020-01-01', pii_tags: ['email'] },
  }
  const parsed = parseCredential(raw, aCredentialFeed())
  if (!parsed.ok) throw new Error(parsed.problem)
  return withNextStep(aMember({ event: parsed.event, feed: 'leaks', link: null }))
}

function cookie(given: Record<string, unknown> = {}): DeliveryMember {
  const raw = {
    uuid: '44672461-aca4-4b3b-b192-6bd5429c4c6d',
    domain: 'vpn.acme.com',
    expires_at: '2026-12-18T00:00:00+00:00',
    imported_at: '2026-11-01T12:00:00+00:00',
    name: 'sid',
    path: '/',
    event_uid: 'stealer_log/stealer_logs_live/12345',
    value: 'sess-4c1f9a77e0',
    ...given,
  }
  const parsed = parseCookie(raw, aCookieFeed())
  if (!parsed.ok) throw new Error(parsed.problem)
  return withNextStep(aMember({ event: parsed.event, feed: 'sessions', link: null }))
}

/** A type's event as a search shows it, and with its full event. */
export interface TypeMembers {
  type: string
  sees: Seen
  item: DeliveryMember
  full: DeliveryMember
  /** Of the title of the full event, where it says another place than that of the item. */
  fullWhere?: string
}

function sampleMembers(sample: EventTypeSample): TypeMembers {
  const item = memberOf(sample)
  const { data = dataOf(sample), where } = sample.full ?? {}
  const full = { ...item, detail: withholdIn(data, sample.uid) }
  return {
    type: typeOf(sample),
    sees: sample.sees,
    item,
    full,
    ...(where !== undefined && { fullWhere: where }),
  }
}

/** A full event that says what the item does: of types whose full event no document shows. */
function dataOf({ highlights = {} }: EventTypeSample): Record<string, unknown> {
  const data: Record<string, unknown> = {}
  for (const [path, texts] of Object.entries(highlights)) {
    const [last = path, ...parents] = path.split('.').toReversed()
    let place = data
    for (const key of parents.toReversed()) place = (place[key] ??= {}) as typeof data
    const plain = texts.map((text) => text.replaceAll(/<\/?mark>/g, ''))
    place[last] = plain.length > 1 || last.endsWith('s') ? plain : plain[0]
  }
  return data
}

/** Of Tocsin itself. */
function notice(): DeliveryMember {
  const trouble = { kind: 'feed-stalled', name: 'brand' } as const
  const sinceMs = Date.UTC(2026, 10, 1, 11, 40)
  const event = buildBeginAlert(
    trouble,
    { sinceMs, seenMs: sinceMs, dueMs: sinceMs + 22 * 60_000 },
    'no poll succeeds',
  )
  return aMember({ event, feed: ownFeed, link: null })
}

/** Of Tocsin itself. */
function canary(): DeliveryMember {
  const createdAtMs = Date.UTC(2026, 10, 1, 12)
  const given = { uid: '_tocsin/canary/0', type: 'canary', severity: 'info', createdAtMs }
  const slot = new Date(createdAtMs).toISOString()
  const event = ownEvent(given, { headline: 'test of the whole way', slot })
  return aMember({ event, feed: ownFeed, link: null })
}

function ofOneShape(type: string, item: DeliveryMember, sees: Seen): TypeMembers {
  return { type, sees, item, full: item }
}

/** Every type that has words of its own; what Tocsin makes itself has no other shape. */
export const typeMembers: readonly TypeMembers[] = [
  ...eventTypeSamples.map(sampleMembers),
  ofOneShape('credential', credential(), {
    what: 'Leaked credential',
    whose: 'joe@acme[.]com',
    where: 'A list',
  }),
  ofOneShape('notice', notice(), { what: 'Tocsin', whose: 'feed brand', where: 'feed brand' }),
  ofOneShape('canary', canary(), { what: 'Canary', whose: 'test', where: 'the whole way' }),
]

const several = manyMembers(12).map(withNextStep)
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

/** Of a feed without an identifier, as the demo has them. */
const leaks = ['joe@acme.com', 'ann@acme.com', 'bob@acme.com'].map((name, at) => ({
  ...credential(20 + at, name),
  id: `leak${at}`,
}))

/** What several feeds bring within a minute. */
const mixed = [
  ['stealer_log', 'critical'],
  ['ransomleak', 'critical'],
  ['valid_credential', 'high'],
  ['lookalike', 'high'],
  ['paste', 'medium'],
].map(([wanted, severity = ''], at): DeliveryMember => {
  const { full } = typeMembers.find(({ type }) => type === wanted) ?? {}
  if (!full) throw new Error(`there is no sample of "${wanted}"`)
  return { ...full, id: `item${at}`, event: { ...full.event, severity } }
})

export const otherScenes: Scene[] = [
  ['a leaked credential', delivery([credential()])],
  ['a stolen cookie', delivery([cookie()])],
  [
    'a stolen cookie that had expired',
    delivery([cookie({ expires_at: '2026-10-18T00:00:00Z', expired: true })]),
  ],
  ['a stolen cookie, revealed', delivery([{ ...cookie(), secret: 'sess-4c1f9a77e0' }])],
  ['a repeat, at its third attempt', delivery([aMember()], { attempt: 3, mayBeRepeat: true })],
  ['a test', delivery([aMember()], { isTest: true })],
  ['an event without a full event', delivery([aMember({ detail: 'unavailable' })])],
  ['an event with all that a configuration says', delivery([aMember(guided)])],
  ['a group with what its routes say', delivery(guidedMembers, summarised(guidedMembers))],
  ['a group', delivery(mixed, summarised(mixed))],
  ['a large group', delivery(several, summarised(several))],
  ['a backlog', delivery(several, summarised(several, { kind: 'backlog', route: null }))],
  ['a digest', delivery(several, aBusyDigest())],
  ['a group of credentials', delivery(leaks, summarised(leaks))],
  ['a storm of credentials', delivery(leaks, summarised(leaks, { kind: 'storm' }))],
  [
    'a backlog of credentials',
    delivery(leaks, summarised(leaks, { kind: 'backlog', route: null })),
  ],
  [
    'a digest of credentials',
    delivery(leaks, summarised(leaks, { kind: 'digest', route: null, digest: digestFacts() })),
  ],
  [
    'a digest of nothing',
    delivery([], summarised([], { kind: 'digest', route: null, digest: digestFacts() })),
  ],
]

const severalMembers = manyMembers(6)
const accountMembers = severalMembers.map((member, at) => {
  return { ...member, account: at < 3 ? 'acme' : 'globex', namesAccount: true }
})

const page = 'https://tocsin.example.net'
const ofAcme = accountMembers.slice(0, 3)
const undeliveredOfAcme = ['critical', 'high', 'high'].map((severity, at) => ({
  severity,
  type: 'stealer_log',
  uid: `stealer_log/stealer_logs_live/${80 + at}`,
  ...(at < 2 && { title: `Stealer log: u${at}@acme[.]com at sso[.]acme[.]com` }),
  pageUrl: `${page}/events/acme/5f2c9a1b7d3e4f6a8b0c1d${at}e`,
}))

/** What the ledger knows of an event beside its content. */
const related = {
  pageUrl: `${page}/events/main/5f2c9a1b7d3e4f6a8b0c1d2e`,
  otherRecipients: ['soc', 'ann@example.com', 'bob@example.com', 'siem', 'archive'],
  seenBefore: [
    { kind: 'login', times: 3, lastMs: Date.UTC(2026, 9, 21, 8, 15) },
    { kind: 'host', times: 1, lastMs: Date.UTC(2026, 9, 2, 17, 0) },
  ],
} satisfies Partial<DeliveryMember>

const quoting = typeMembers.find(({ type }) => type === 'forum_post')!.full

/** What other tests of messages do not need, for the recordings and the gallery alone. */
export const moreScenes: Scene[] = [
  ['a raised severity', delivery([aMember({ raisedFrom: 'low' })])],
  [
    'an unknown severity, and a link that nobody vouches for',
    delivery([
      aMember({
        event: aThreatEvent({ severity: 'none', url: 'https://evil.example/login' }),
        link: null,
      }),
    ]),
  ],
  [
    'a reminder of a sink that was down',
    delivery(severalMembers, summarised(severalMembers, { divertedFrom: 'oncall' })),
  ],
  ['a storm', delivery(severalMembers, summarised(severalMembers, { kind: 'storm' }))],
  ['what was held', delivery(severalMembers, summarised(severalMembers, { kind: 'held' }))],
  [
    'a group of one account of several',
    delivery(accountMembers.slice(0, 3), summarised(accountMembers.slice(0, 3))),
  ],
  [
    'a digest of several accounts',
    delivery(accountMembers, { ...aBusyDigest(), members: accountMembers }),
  ],
  [
    'a digest of one account of several',
    delivery(ofAcme, {
      ...summarised(ofAcme, {
        kind: 'digest',
        route: null,
        digest: digestFacts({ account: 'acme', dead: 3, undelivered: undeliveredOfAcme }),
      }),
      pageUrl: `${page}/messages/b0123456789abcde`,
    }),
  ],
  ['an event for a sink that shows no excerpts', delivery([withoutExcerpts(quoting)])],
  ['an event with its page and its past', delivery([{ ...aMember(), ...related }])],
  ['a leaked credential with its page', delivery([{ ...credential(), ...related }])],
  [
    'a group with its page',
    delivery(several, {
      ...summarised(several),
      pageUrl: `${page}/messages/b0123456789abcde`,
    }),
  ],
  ['of Tocsin itself: notice', delivery([notice()])],
  ['of Tocsin itself: canary', delivery([canary()], { isTest: true })],
]
