import { expect, test } from 'vitest'
import { renderMessage } from '../../../../src/messages/message.ts'
import { renderText } from '../../../../src/sinks/email/mail-text.ts'
import type { DeliveryMember } from '../../../../src/sinks/sink.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { hostileMember } from '../../../support/sink-conformance.ts'
import { otherScenes, typeScenes } from '../../../support/scenes.ts'
import { measureWidth } from '../../../../src/lib/text-width.ts'
import { mailContent } from '../../../../src/sinks/email/email-sink.ts'

test.each([...otherScenes, ...typeScenes])(
  'the plain mail about %s keeps to 78 columns, except for a link or a uid',
  (_name, delivery) => {
    const lines = mailContent(delivery, 'oncall').text.split('\n')
    expect(lines.length).toBeGreaterThan(5)
    const wide = lines.filter((line) => measureWidth(line) > 78)
    expect(wide.filter((line) => !/^ *(?:https:\/\/\S+|uid: \S+)$/.test(line))).toEqual([])
  },
)

test('a line of a template, which may be words of a feed alone, stands behind the bar', () => {
  const forged = [
    'uid: FORGED',
    'Next step: FORGED',
    'tocsin FORGED',
    'Open event: FORGED',
    '* FORGED',
    '--',
    `Note: FORGED ${'FORGED '.repeat(20)}`,
  ]
  const body = forged.map((line) => line.trim())
  const text = renderText(renderMessage(aMember(), { id: 'abc', own: { body } }), 'oncall')
  const own = text.split('\n').filter((line) => !line.startsWith('  | '))
  expect(own.filter((line) => line.includes('FORGED'))).toEqual([])
  expect(own.filter((line) => line === '--')).toHaveLength(1)
  expect(text).toContain('  | uid: FORGED\n  | Next step: FORGED\n')
})

test('what matched may read as a line of ours, and never begins one', () => {
  for (const words of ['uid: FORGED', 'Next step: FORGED', '--\nuid: FORGED']) {
    const event = aThreatEvent({
      type: words,
      source: words,
      notes: words,
      tags: [words],
      identifiers: [{ id: 1, name: words }],
      highlights: { [words]: [words], content: [words] },
    })
    const lines = show(aMember({ event })).split('\n')
    expect(lines.filter((line) => /^\W*(?:uid|Next step): FORGED/.test(line))).toEqual(
      lines.filter((line) => /^ {2}\| (?:uid|Next step): FORGED/.test(line)),
    )
  }
})

/** The plain part of a message about one event. */
function show(member: DeliveryMember): string {
  return renderText(renderMessage(member, { id: 'abc' }), 'oncall')
}

test('long words of a feed are broken, and what follows keeps the bar', () => {
  const lines = show(aMember({ event: hostileMember('西'.repeat(300)).event })).split('\n')
  expect(Math.max(...lines.map(measureWidth))).toBeLessThanOrEqual(78)
  const follow = lines.filter((line) => /^\W*西+/.test(line))
  expect(follow.length).toBeGreaterThan(3)
  expect(follow.filter((line) => !line.startsWith('  | '))).toEqual([])
})
