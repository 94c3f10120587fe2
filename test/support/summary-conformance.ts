/** What every sink for people promises of messages about several events, next to sink-conformance.ts. */
import { describe, expect, test } from 'vitest'
import type { Delivery, DeliveryMember } from '../../src/sinks/sink.ts'
import { aDelivery, aMember } from './deliveries.ts'
import { aThreatEvent } from './events.ts'
import {
  arrange,
  hostileMember,
  hostileTexts,
  patience,
  type Bench,
  type Received,
  type SinkConformance,
  type SinkDriver,
} from './sink-conformance.ts'
import { aBusyDigest, aSummary, digestFacts, manyMembers, summarised } from './summaries.ts'

export function describeSummaryConformance<D extends SinkDriver>(suite: SinkConformance<D>): void {
  describe(`${suite.name} keeps the promises of every sink with several events in a message`, () => {
    test('every kind of summary is accepted once, under the delivery’s id', async () => {
      const bench = await arrange(suite)
      const members = manyMembers(12)
      for (const kind of ['group', 'backlog', 'held', 'storm'] as const) {
        const message = await send(bench, { id: `is${kind}`, ...summarised(members, { kind }) })
        expect(message).toMatchObject({ saysRepeat: false })
        expect(message.id).toContain(`is${kind}`)
      }
      const { members: some, summary } = aBusyDigest()
      expect(
        (await send(bench, { id: 'isdigest', members: some, summary: summary! })).id,
      ).toContain('isdigest')
      expect(bench.driver.received()).toHaveLength(5)
    })

    test('a summary that may be a repeat says so, and one that is a test', async () => {
      const bench = await arrange(suite)
      const some = summarised(withoutTest(manyMembers(3)))
      expect(await send(bench, { ...some, mayBeRepeat: true, attempt: 2 })).toMatchObject({
        saysRepeat: true,
        saysTest: false,
      })
      expect(await send(bench, { ...some, isTest: true })).toMatchObject({ saysTest: true })
    })

    test('hostile text in a summary arrives as inert text', async () => {
      const bench = await arrange(suite)
      for (const text of hostileTexts) {
        bench.driver.expectInert(await send(bench, hostileDigest(text)))
        const members = [hostileMember(text), hostileMember(text)]
        const labels = { type: text, [text]: text }
        bench.driver.expectInert(await send(bench, summarised(members, { labels, route: text })))
      }
      expect(bench.driver.received()).toHaveLength(2 * hostileTexts.length)
    })

    test('a summary of ten thousand events of the longest texts is accepted', async () => {
      const bench = await arrange(suite)
      for (const character of ['&', '"', '😀']) {
        const members = Array.from({ length: 300 }, () => longest(character.repeat(3000)))
        const summary = { ...aSummary(members), total: 10_000 }
        bench.driver.expectInert(await send(bench, { members, summary }))
      }
      expect(bench.driver.received()).toHaveLength(3)
    })

    test('the address of a message’s page arrives whole, however many its events are', async () => {
      const bench = await arrange(suite)
      const pageUrl = 'https://tocsin.example.net/messages/b0123456789abcdef'
      for (const text of ['short', '&'.repeat(3000), '😀'.repeat(3000)]) {
        const members = Array.from({ length: 300 }, () => longest(text))
        const summary = { ...aSummary(members), total: 10_000 }
        const { text: raw, decoded = raw } = await send(bench, { members, summary, pageUrl })
        expect(decoded).toContain(pageUrl)
      }
    })

    test('a leaked secret stands in no summary, even where the sink shows secrets', async () => {
      const bench = await arrange(suite)
      const secret = 'clear-7f3e9a51c2'
      const event = aThreatEvent({ type: 'leaked_credential' })
      const members = [aMember({ event, secret }), aMember({ event, secret })]
      const { text } = await send(bench, summarised(members))
      expect(text).not.toContain(secret)
      const single = await send(bench, { members: [members[0]!] })
      expect(single.text).toContain(secret)
    })
  })
}

async function send<D extends SinkDriver>(
  { driver, sink }: Bench<D>,
  delivery: Partial<Delivery>,
): Promise<Received> {
  await sink.send(aDelivery(sink, delivery), { signal: patience() })
  return driver.received().at(-1)!
}

function withoutTest(members: DeliveryMember[]): DeliveryMember[] {
  return members.map((member) => ({
    ...member,
    detail: undefined,
    event: { ...member.event, source: 'somewhere' },
  }))
}

function hostileDigest(text: string): Pick<Delivery, 'members' | 'summary'> {
  const members = [hostileMember(text)]
  const digest = digestFacts({
    feeds: [{ feed: text, lastCaughtUpMs: null, isBehind: true }],
    perDay: [
      { day: text, bySeverity: [{ severity: text, count: 3 }] },
      { day: '2026-11-21', bySeverity: [{ severity: 'high', count: 1 }] },
    ],
    alreadySent: [{ severity: text, count: 9 }],
    account: text,
    dead: 1,
    undelivered: [{ severity: text, type: text, uid: text, account: text, title: text }],
  })
  return summarised(members, { kind: 'digest', digest, route: text })
}

function longest(long: string): DeliveryMember {
  return aMember({
    event: aThreatEvent({
      uid: long,
      type: long,
      source: long,
      severity: long,
      url: `https://app.example.com/${'a&'.repeat(900)}`,
      identifiers: [{ id: 1, name: long }],
    }),
    raisedFrom: long,
  })
}
