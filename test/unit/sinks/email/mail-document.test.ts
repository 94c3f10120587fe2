import { expect, test } from 'vitest'
import { mailContent } from '../../../../src/sinks/email/email-sink.ts'
import { otherScenes, typeScenes } from '../../../support/scenes.ts'

test.each([...otherScenes, ...typeScenes.slice(0, 4)])(
  'the mail about %s says its language and its direction',
  (_name, delivery) => {
    const [, attributes] = /<html([^>]*)>/.exec(mailContent(delivery, 'oncall').html) ?? []
    expect(attributes).toContain(' lang="en"')
    expect(attributes).toContain(' dir="ltr"')
  },
)
