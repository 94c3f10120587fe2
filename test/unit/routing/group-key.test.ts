import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { groupLabels } from '../../../src/routing/router.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aRoutableEvent } from '../../support/routing.ts'

const input = aRoutableEvent({
  event: aThreatEvent({
    severity: 'apocalyptic',
    tags: ['vip', 'eu', 'vip'],
    identifiers: [
      { id: 9, name: 'example.org' },
      { id: 10, name: 'example.com' },
      { id: 11, name: 'example.org' },
    ],
  }),
  labels: { team: 'brand' },
})

describe('the labels of a group', () => {
  test.each([
    ['feed', 'brand'],
    ['type', 'stealer_log'],
    ['severity', 'apocalyptic'],
    ['team', 'brand'],
    ['tag', 'eu, vip'],
    ['identifier', 'example.com, example.org'],
    ['absent', ''],
    ['constructor', ''],
  ])('%s is %j', (name, text) => {
    expect(groupLabels([name], input)).toEqual({ [name]: text })
  })

  test('are those of group_by and no others; of nothing, none', () => {
    expect(groupLabels([], input)).toEqual({})
    expect(Object.keys(groupLabels(['type', 'feed'], input))).toEqual(['type', 'feed'])
  })

  test('do not hang on the order or the number of equal tags', () => {
    const tags = fc.array(fc.string(), { minLength: 1 })
    fc.assert(
      fc.property(tags, (given) => {
        const labels = (own: string[]): unknown =>
          groupLabels(['tag'], aRoutableEvent({ event: aThreatEvent({ tags: own }) }))
        expect(labels([...given].reverse().concat(given))).toEqual(labels(given))
      }),
    )
  })
})
