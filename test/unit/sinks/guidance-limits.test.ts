/** The longest guidance that a configuration takes, in the fullest messages, within each receiver's limits. */
import { expect, test } from 'vitest'
import type { Guidance } from '../../../src/messages/guidance.ts'
import { findSlackError } from '../../../src/sandbox/receivers/slack-receiver.ts'
import { composeMail } from '../../../src/sinks/email/email-sink.ts'
import type { Delivery } from '../../../src/sinks/sink.ts'
import { maxBlocksLength, previewSlack } from '../../../src/sinks/slack/slack-message.ts'
import { aMember } from '../../support/deliveries.ts'
import { delivery } from '../../support/scenes.ts'
import { aBusyDigest, manyMembers, summarised } from '../../support/summaries.ts'
import { longestMember } from './any-member.ts'

/** Escaped, each takes five characters. */
const longText = (at: number): string => `${at} ${'&'.repeat(398)}`

function longGuidance(at: number): Guidance {
  return {
    notes: [0, 1, 2, 3, 4].map((each) => longText(at * 5 + each)),
    runbookUrls: [0, 1, 2].map(
      (each) => `https://wiki.example.com/${at}-${each}/${'a'.repeat(960)}`,
    ),
    mentions: [0, 1, 2, 3, 4].map((each) => `U${at}${each}2AB3CDEFGHIJK`),
    nextStep: longText(at),
  }
}

const several = manyMembers(200).map((member, at) => ({ ...member, guidance: longGuidance(at) }))

const fullest: [string, Delivery][] = [
  ['one event', delivery([aMember({ guidance: longGuidance(0) })])],
  ['the longest event', delivery([{ ...longestMember('&'), guidance: longGuidance(0) }])],
  ['a group', delivery(several, summarised(several))],
  ['a digest', delivery(several, aBusyDigest())],
]

test.each(fullest)('Slack takes %s with all that its routes say', (_what, content) => {
  const { inBlocks, plainText } = previewSlack(content)
  for (const message of [inBlocks, plainText]) {
    expect(findSlackError(message)).toBeNull()
    expect(message.text?.length).toBeLessThanOrEqual(3_000)
  }
  expect(inBlocks.blocks?.length).toBeLessThanOrEqual(50)
  expect(JSON.stringify(inBlocks.blocks).length).toBeLessThan(maxBlocksLength)
})

test.each(fullest)(
  'a mail about %s is shown whole, with all that its routes say',
  (_what, content) => {
    const options = { sink: 'oncall', from: 't@example.com', to: 'a@example.com', nowMs: 0 }
    const { html } = composeMail(content, options)
    expect(Buffer.byteLength(html as string)).toBeLessThan(102_000)
  },
)
