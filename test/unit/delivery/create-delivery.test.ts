import { describe, expect, test } from 'vitest'
import { type OpenMessage, createDelivery } from '../../../src/delivery/send/attempt.ts'
import type { Member } from '../../../src/delivery/claims.ts'
import type { MemberOptions } from '../../../src/delivery/send/delivery-member.ts'
import { createPageAddress } from '../../../src/messages/page-links.ts'
import type { Delivery, Sink } from '../../../src/sinks/sink.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { bareMembers } from '../../support/delivery.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { aSummary, digestFacts } from '../../support/summaries.ts'

const ledger = { account: 'main' } as AccountLedger

function aBegunMember(overrides: Partial<Member> = {}): Member {
  const { uid } = aThreatEvent()
  return {
    id: 'item1',
    recordId: 'r1',
    uid,
    severity: 'critical',
    routes: ['urgent'],
    feed: 'brand',
    labels: { team: 'brand' },
    raisedFrom: 'low',
    destination: 'soc',
    otherDestinations: [],
    seenBefore: [],
    closed: undefined,
    title: undefined,
    payload: { event: aThreatEvent(), fetchedAtMs: 7, sealedSecret: 's2.sealed' },
    ...overrides,
  }
}

function begin(overrides: Partial<OpenMessage> = {}): OpenMessage {
  return {
    kind: 'item',
    ref: 'i:r1:0:soc',
    rank: 5,
    attempts: 1,
    tries: 1,
    createdAtMs: 0,
    mayBeRepeat: true,
    destination: 'soc',
    members: [aBegunMember()],
    about: undefined,
    total: 1,
    attempt: 2,
    ...overrides,
  }
}

function deliver(
  begun: OpenMessage,
  sink: Partial<Sink> = {},
  options: Partial<MemberOptions> = {},
): ReturnType<typeof createDelivery> {
  return createDelivery({ ledger: ledger, sink: aRehearsedSink('soc', sink) }, begun, {
    findLedger: () => ledger,
    openSecret: (account, uid, sealed) => `${account} ${uid} ${sealed}`,
    ...bareMembers,
    serviceLink: (_account, url) => `${url}#checked`,
    ...options,
  })
}

test('its times are those of the sink', async () => {
  const delivery = await deliver(begin(), { timeZone: 'Europe/Zurich' })
  expect(delivery).toMatchObject({ timeZone: 'Europe/Zurich' })
})

test('an item is sent under its own id, as its route wanted it, and says that it may be a repeat', async () => {
  expect(await deliver(begin())).toEqual({
    id: 'item1',
    destination: { id: 'soc', label: 'soc' },
    attempt: 2,
    mayBeRepeat: true,
    members: [
      {
        id: 'item1',
        account: 'main',
        feed: 'brand',
        labels: { team: 'brand' },
        routes: ['urgent'],
        event: { ...aThreatEvent(), severity: 'critical' },
        link: `${aThreatEvent().url}#checked`,
        detail: undefined,
        fetchedAtMs: 7,
        raisedFrom: 'low',
      },
    ],
  })
})

test('a batch is sent under its own id', async () => {
  const members = [aBegunMember(), aBegunMember({ id: 'item2' })]
  const delivery = await deliver(begin({ kind: 'batch', ref: 'b:0123:soc', members }))
  expect(delivery).toMatchObject({ id: 'b0123', members: [{ id: 'item1' }, { id: 'item2' }] })
})

describe('what the ledger knows of an event', () => {
  const labels: Record<string, string> = {
    soc: 'soc',
    'oncall:1': 'ann@example.com',
    'oncall:2': 'bob@example.com',
    'night:2': 'BOB@example.com',
  }
  const options: Partial<MemberOptions> = {
    findLabel: (destination) => labels[destination],
    pageAddress: createPageAddress('https://tocsin.example.net'),
  }
  const memberOf = async (
    overrides: Partial<Member>,
    given = options,
  ): Promise<Delivery['members'][number]> => {
    const begun = begin({ members: [aBegunMember(overrides)] })
    return ((await deliver(begun, {}, given)) as Delivery).members[0]!
  }

  test('is who gets it too, by the names that the configuration has', async () => {
    const { otherRecipients } = await memberOf({
      otherDestinations: ['oncall:1', 'gone', 'night:2'],
    })
    expect(otherRecipients).toEqual(['ann@example.com', 'BOB@example.com'])
  })

  test('names no reader as another, nor anybody twice', async () => {
    const ofBob = { destination: 'oncall:2', otherDestinations: ['night:2', 'soc', 'soc'] }
    expect((await memberOf(ofBob)).otherRecipients).toEqual(['soc'])
  })

  test('is the address of its page, percent-encoded, where one is configured', async () => {
    const recordId = 'r/1?&"<'
    expect((await memberOf({ recordId })).pageUrl).toBe(
      'https://tocsin.example.net/events/main/r%2F1%3F%26%22%3C',
    )
    expect(await memberOf({ recordId }, {})).not.toHaveProperty('pageUrl')
  })

  test('is what was seen before, but for what was learnt late', async () => {
    const login = { kind: 'login', digest: 'd', times: 1, lastMs: 5, recordId: 'r' } as const
    const seen = [login, { ...login, digest: 'e' }].map((one, at) => ({ ...one, isLate: at > 0 }))
    expect((await memberOf({ seenBefore: seen })).seenBefore).toEqual(seen.slice(0, 1))
  })

  test('is nothing where there is nothing to say', async () => {
    const member = await memberOf({})
    expect(member).not.toHaveProperty('otherRecipients')
    expect(member).not.toHaveProperty('seenBefore')
  })
})

describe('what a feed quotes', () => {
  const event = aThreatEvent({ highlights: { content: ['grey heron'] } })
  const members = [aBegunMember({ payload: { event, fetchedAtMs: 7 } })]
  const worst = { severity: 'high', type: 'paste', uid: 'paste/x/1', title: 'Paste: "grey heron"' }
  const digest = digestFacts({ dead: 1, undelivered: [worst] })
  const summary = aSummary([], { kind: 'digest', route: null, digest })
  const about = JSON.stringify({ summary, shown: [], accounts: [], repeatRisks: 0 })
  const ofDigest = begin({ kind: 'summary', ref: 'b:1:soc', members: [], about, total: 0 })

  test.each([
    ['an event', begin({ members })],
    ['a digest that names what was not delivered', ofDigest],
  ])('of %s goes to no sink that hides excerpts', async (_what, begun) => {
    const said = async (sink: Partial<Sink>): Promise<string> =>
      JSON.stringify(await deliver(begun, sink))
    expect(await said({})).toContain('grey heron')
    expect(await said({ hidesExcerpts: true })).not.toContain('grey heron')
  })
})

describe('a leaked secret', () => {
  const secretIn = async (sink: Partial<Sink>, begun = begin()): Promise<unknown> =>
    ((await deliver(begun, sink)) as Delivery).members[0]!.secret

  test('is opened, by its account and uid, for a sink that reveals', async () => {
    expect(await secretIn({ reveals: true })).toBe(`main ${aThreatEvent().uid} s2.sealed`)
  })

  test.each([[{ reveals: false }], [{}]])('stays closed for any other', async (sink) => {
    expect(await secretIn(sink)).toBeUndefined()
  })

  test('is none where none was kept', async () => {
    const payload = { event: aThreatEvent(), fetchedAtMs: 7 }
    const members = [aBegunMember({ payload })]
    expect(await secretIn({ reveals: true }, begin({ members }))).toBeUndefined()
  })
})

describe('a test event', () => {
  const payload = { event: aThreatEvent({ type: 'canary' }), fetchedAtMs: 7 }

  test('of Tocsin itself is marked as one', async () => {
    const members = [aBegunMember({ feed: '_tocsin', payload })]
    expect(await deliver(begin({ members }))).toMatchObject({ isTest: true })
  })

  test.each([
    ['of the service is an event like any other', [aBegunMember({ payload })]],
    [
      'beside another event makes no test of that',
      [aBegunMember({ feed: '_tocsin', payload }), aBegunMember({ feed: '_tocsin' })],
    ],
  ])('%s', async (_what, members) => {
    expect(await deliver(begin({ members }))).not.toHaveProperty('isTest')
  })
})

test('a recipient that left the file, and content that is no longer kept, end what cannot be sent', async () => {
  expect(await deliver(begin({ destination: 'soc:gone' }))).toBe('recipient_removed')
  const members = [aBegunMember(), aBegunMember({ payload: undefined })]
  expect(await deliver(begin({ members }))).toBe('payload_expired')
})
