import { expect, test } from 'vitest'
import type { SuppressionRules, SuppressionInput } from '../../../src/grouping/flush-context.ts'
import { readMembers } from '../../../src/grouping/group-flush.ts'
import { aThreatEvent } from '../../support/events.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()
const [kept, gone] = ['paste/site/1', 'leak/forum/2']

test('a member is told by its event, and where that is kept no more by its record, which the rules judge, too', async () => {
  const ledger = await tests.ledger()
  const createdAtMs = Date.UTC(2026, 10, 1)
  const identifiers = ['one', 'two'].map((name, id) => ({ id, name }))
  const event = { uid: kept, type: 'paste', createdAtMs, identifiers }
  const other = { uid: gone, type: 'leak', severity: 'low', remediatedAtMs: 5 }
  await takeIn(ledger, [routed(event, ['soc:ab']), routed(other, ['soc:cd'])], {
    labels: { team: 'x' },
  })
  await tests.redis.del(ledger.key('pay', ledger.fingerprints.recordId(gone)))
  const judged: SuppressionInput[] = []
  const gate: SuppressionRules = {
    decide(_ledger, items) {
      judged.push(...items)
      return Promise.resolve([{ act: 'send' }, { act: 'hold', rule: 'night', untilMs: 9 }])
    },
    allowsAll: () => false,
  }
  const recordIds = [kept, gone].map((uid) => ledger.fingerprints.recordId(uid))
  const refs = recordIds.map((id) => `i:${id}:0:soc`)
  const lately: unknown = expect.toSatisfy((ms: number) => Math.abs(Date.now() - ms) < 60_000)
  const common = { account: 'main', repeatRisks: 0, itemCreatedAtMs: lately, feed: 'brand' }
  const members = [
    {
      ...common,
      ref: refs[0],
      uid: kept,
      destination: 'soc:ab',
      verdict: { act: 'send' },
      severity: 'high',
      type: 'paste',
      identifiers: ['one', 'two'],
      fetchedAtMs: lately,
      createdAtMs,
    },
    {
      ...common,
      ref: refs[1],
      uid: gone,
      destination: 'soc:cd',
      verdict: { act: 'hold', rule: 'night', untilMs: 9 },
      severity: 'low',
      type: 'leak',
      identifiers: [],
      fetchedAtMs: lately,
      createdAtMs: null,
    },
  ]
  expect(await readMembers(ledger, refs, gate)).toEqual(members)
  const about = { sink: 'soc', routes: ['root'] }
  const where = { account: 'main', feed: 'brand', labels: { team: 'x' } }
  expect(judged).toEqual([
    {
      ...about,
      recordId: recordIds[0],
      event: { ...where, event: aThreatEvent(event) },
      closed: undefined,
    },
    {
      ...about,
      recordId: recordIds[1],
      event: {
        ...where,
        event: {
          uid: gone,
          kind: 'event',
          type: 'leak',
          source: 'forum',
          severity: 'low',
          originalSeverity: null,
          createdAtMs: null,
          matchedAtMs: null,
          ignoredAtMs: null,
          remediatedAtMs: null,
          url: null,
          tags: [],
          notes: null,
          identifiers: [],
          highlights: {},
        },
      },
      closed: 'remediated',
    },
  ])
  const sealed = members.map((member) => ({ ...member, verdict: { act: 'send' } }))
  expect(await readMembers(ledger, refs)).toEqual(sealed)
})
