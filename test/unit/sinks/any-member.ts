/** Members with any text that a feed can hold: markup, mentions, broken Unicode, far too long. */
import fc from 'fast-check'
import type { DeliveryMember } from '../../../src/sinks/sink.ts'
import { aMember, hostileTexts } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'

export const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.string({ unit: fc.constantFrom(...'&<>"\'`|*_~:@#!\\\n {}[]()='.split('')), maxLength: 2000 }),
  fc.constantFrom(...hostileTexts),
  fc
    .tuple(fc.constantFrom('&', '<', '"', '😀', 'é', '\ud800'), fc.integer({ min: 1, max: 5000 }))
    .map(([character, count]) => character.repeat(count)),
)

const anyTime = fc.option(fc.integer({ min: -8.64e15, max: 8.64e15 }))

export const anyMember: fc.Arbitrary<DeliveryMember> = fc
  .record({
    id: fc.constant('item1'),
    account: fc.constant('main'),
    feed: fc.constant('brand'),
    labels: fc.constant({}),
    routes: fc.array(anyText, { maxLength: 20 }),
    otherRecipients: fc.array(anyText, { maxLength: 6 }),
    seenBefore: fc.array(
      fc.record({
        kind: fc.constantFrom('login' as const, 'host' as const),
        times: fc.nat(),
        lastMs: fc.integer({ min: -8.64e15, max: 8.64e15 }),
      }),
      { maxLength: 4 },
    ),
    fetchedAtMs: fc.integer({ min: 0, max: 4e12 }),
    detail: fc.option(fc.dictionary(anyText, anyText, { maxKeys: 8 }), { nil: undefined }),
    event: fc.record({
      uid: anyText,
      kind: fc.constantFrom('event' as const, 'credential' as const),
      type: fc.oneof(anyText, fc.constantFrom('stealer_log', 'paste', 'ransomleak', 'cc')),
      source: anyText,
      severity: fc.oneof(anyText, fc.constantFrom('info', 'critical')),
      originalSeverity: fc.option(anyText),
      createdAtMs: anyTime,
      matchedAtMs: anyTime,
      ignoredAtMs: anyTime,
      remediatedAtMs: anyTime,
      url: fc.option(
        fc
          .tuple(fc.constantFrom('app.example.com', 'evil.example'), anyText)
          .map(([host, text]) => `https://${host}/${text}`),
      ),
      tags: fc.array(anyText, { maxLength: 15 }),
      notes: fc.option(anyText),
      identifiers: fc.array(fc.record({ id: fc.nat(), name: anyText }), { maxLength: 15 }),
      highlights: fc.dictionary(anyText, fc.array(anyText, { maxLength: 3 }), { maxKeys: 5 }),
    }),
  })
  .map(aMember)

/** An event that is as long as can be in all of its parts, of one character. */
export function longestMember(character: string): DeliveryMember {
  const long = character.repeat(5000)
  const many = Array.from({ length: 50 }, () => long)
  const event = aThreatEvent({
    uid: long,
    type: long,
    source: long,
    severity: long,
    originalSeverity: long,
    notes: long,
    tags: many,
    identifiers: many.map((name, id) => ({ id, name })),
    highlights: { content: [`${character}\n`.repeat(2000)] },
    url: `https://app.example.com/${'a'.repeat(1900)}`,
  })
  const seenBefore = (['login', 'host'] as const).map((kind) => {
    return { kind, times: 1e15, lastMs: event.createdAtMs ?? 0 }
  })
  const pageUrl = `https://tocsin.example.net/events/${'a'.repeat(200)}/${'b'.repeat(24)}`
  return aMember({ event, routes: many, otherRecipients: many, seenBefore, pageUrl })
}
