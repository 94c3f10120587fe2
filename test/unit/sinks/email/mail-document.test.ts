import { expect, test } from 'vitest'
import { mailContent } from '../../../../src/sinks/email/email-sink.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { aMember } from '../../../support/deliveries.ts'
import { otherScenes, typeScenes } from '../../../support/scenes.ts'

test.each([...otherScenes, ...typeScenes.slice(0, 4)])(
  'the mail about %s says its language and its direction',
  (_name, delivery) => {
    const [, attributes] = /<html([^>]*)>/.exec(mailContent(delivery, 'oncall').html) ?? []
    expect(attributes).toContain(' lang="en"')
    expect(attributes).toContain(' dir="ltr"')
  },
)

test('what the feed says in another direction has its own, and does not turn what stands beside it', () => {
  const hebrew = '\u05E9\u05DC\u05D5\u05DD'
  const event = aThreatEvent({
    highlights: { content: [hebrew] },
    identifiers: [{ id: 1, name: hebrew }],
  })
  const delivery = { ...typeScenes[0]![1], members: [aMember({ event })] }
  const { html } = mailContent(delivery, 'oncall')
  const [, body = ''] = html.split('<body')
  const quoted = [...body.matchAll(/<(\w+)([^<>]*)>([^<]*)/g)].filter(([, , , text]) =>
    text!.startsWith(hebrew),
  )
  expect(quoted.length).toBeGreaterThan(0)
  expect(quoted.filter(([, , attributes]) => !attributes!.includes('dir="auto"'))).toEqual([])
})
