/** Which facts of an event are said first, and which can wait. */
import { expect, test } from 'vitest'
import { arrangeFacts, type Message, renderMessage } from '../../../src/messages/message.ts'
import { aMember } from '../../support/deliveries.ts'

const facts = ['What', 'Whose', 'Where', 'How', 'Why', 'Since'].map(
  (label) => ({ kind: 'text', label, value: label }) as const,
)

function arrange(given: Partial<Message>): { first: string[]; rest: string[] } {
  const message = renderMessage(aMember(), { attempt: 1, mayBeRepeat: false })
  const { first, rest } = arrangeFacts({ ...message, facts, tags: ['vip'], ...given })
  return { first: first.map(({ label }) => label), rest: rest.map(({ label }) => label) }
}

const matchedFourth = ['What', 'Whose', 'Where', 'Matched', 'How']
const matchedLast = ['What', 'Whose', 'Where', 'How', 'Why']

test.each<[string, Partial<Message>, string[]]>([
  ['the fourth', { title: 'a leak', identifiers: ['acme[.]com'] }, matchedFourth],
  [
    'the last where the title says it',
    { title: 'acme[.]com', identifiers: ['acme[.]com'] },
    matchedLast,
  ],
  [
    'the fourth where it says one of several',
    { title: 'a', identifiers: ['a', 'b'] },
    matchedFourth,
  ],
])('what matched is %s', (_where, given, first) => {
  expect(arrange(given).first).toEqual(first)
})

test('the account follows where there are several', () => {
  expect(arrange({ namesAccount: true }).first.at(-1)).toBe('Account')
})

test('where a template gives the words all facts can wait, before tags, times and feed', () => {
  const { first, rest } = arrange({ body: ['own words'], identifiers: ['other[.]com'] })
  const all = ['What', 'Whose', 'Where', 'Matched', 'How', 'Why', 'Since']
  expect([first, rest.slice(0, 8), rest.at(-1)]).toEqual([[], [...all, 'Tags'], 'Feed'])
})
