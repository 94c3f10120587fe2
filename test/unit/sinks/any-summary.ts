/** Deliveries of several events with any text that a feed or a label can hold. */
import fc from 'fast-check'
import type { Delivery } from '../../../src/sinks/sink.ts'
import { aSummary, digestFacts } from '../../support/summaries.ts'
import { anyMember, anyText } from './any-member.ts'

const counts = fc.array(fc.record({ severity: anyText, count: fc.nat(99) }), { maxLength: 8 })

const anyDigest = fc
  .record({
    perDay: fc.array(fc.record({ day: anyText, bySeverity: counts }), { maxLength: 6 }),
    feeds: fc.array(
      fc.record({
        feed: anyText,
        lastCaughtUpMs: fc.option(fc.integer()),
        isBehind: fc.boolean(),
      }),
      { maxLength: 8 },
    ),
    alreadySent: counts,
    undelivered: fc.array(
      fc.record({ severity: anyText, type: anyText, uid: anyText, account: anyText }),
      { maxLength: 5 },
    ),
    account: anyText,
    held: fc.nat(),
    suppressed: fc.nat(),
    dead: fc.nat(),
    diverted: fc.nat(),
    isLate: fc.boolean(),
  })
  .map(digestFacts)

/** What a delivery holds of them: at least one event, and often more than are shown. */
export const anySummarised: fc.Arbitrary<
  Pick<Delivery, 'members'> & Required<Pick<Delivery, 'summary'>>
> = fc
  .record({
    members: fc.array(anyMember, { minLength: 1, maxLength: 3 }),
    times: fc.constantFrom(1, 15),
    left: fc.nat(1000),
    labels: fc.dictionary(anyText, anyText, { maxKeys: 4 }),
    route: fc.option(anyText),
    raisedFrom: fc.option(anyText, { nil: undefined }),
    kind: fc.constantFrom('group' as const, 'backlog' as const, 'held' as const, 'storm' as const),
    digest: fc.option(anyDigest),
  })
  .map(({ members, times, left, labels, route, raisedFrom, kind, digest }) => {
    const many = Array.from({ length: times }, () => members)
      .flat()
      .map((member) => ({ ...member, raisedFrom }))
    const about =
      digest === null ? { kind, labels, route } : { kind: 'digest' as const, labels, route, digest }
    const summary = aSummary(many, about)
    return { members: many, summary: { ...summary, total: summary.total + left } }
  })
