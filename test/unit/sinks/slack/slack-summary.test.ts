import fc from 'fast-check'
import { expect, test } from 'vitest'
import { findSlackError } from '../../../../src/sandbox/receivers/slack-receiver.ts'
import type { Delivery } from '../../../../src/sinks/sink.ts'
import {
  maxBlocksLength,
  previewSlack,
  slackLimits,
} from '../../../../src/sinks/slack/slack-message.ts'
import { aMember } from '../../../support/deliveries.ts'
import { manyMembers, summarised } from '../../../support/summaries.ts'
import { anySummarised } from '../any-summary.ts'
import { runs } from '../../../support/runs.ts'

function preview(content: Partial<Delivery>): ReturnType<typeof previewSlack> {
  return previewSlack({
    id: 'abc',
    destination: { id: 'soc', label: 'soc' },
    members: [],
    attempt: 1,
    mayBeRepeat: false,
    ...content,
  })
}

test('whatever the feed says, Slack takes the blocks and the words, and nothing is interpreted', () => {
  fc.assert(
    fc.property(anySummarised, (content) => {
      const { inBlocks, plainText: inWords } = preview({
        ...content,
        mayBeRepeat: true,
        attempt: 2,
      })
      expect(findSlackError(inBlocks)).toBeNull()
      expect(JSON.stringify(inBlocks.blocks).length).toBeLessThan(maxBlocksLength)
      for (const text of [inBlocks.text!, inWords.text!]) {
        expect(text.length).toBeLessThanOrEqual(slackLimits.text)
        expect(text).not.toMatch(/[<>`]|&(?!amp;|lt;|gt;)/)
      }
      expect(inWords.text).toContain('delivery abc')
      const found = objectsIn(inBlocks.blocks)
      const openTexts = found.filter(
        ({ type, text }) =>
          type === 'mrkdwn' ||
          (type === 'link' && text !== 'open') ||
          (type === 'plain_text' && /[<>]|&(?!amp;|lt;|gt;)/.test(String(text))),
      )
      expect(openTexts).toEqual([])
      expectCounted(inBlocks.blocks, content.summary.total)
    }),
    { numRuns: runs({ short: 20, long: 100 }), endOnFailure: true },
  )
})

test('a long list is shown as far as it is read, and the rest is counted', () => {
  const { inBlocks, plainText: inWords } = preview(summarised(manyMembers(200)))
  const shown = linesIn(inBlocks.blocks)
  expect(shown).toBeGreaterThanOrEqual(10)
  expect(shown).toBeLessThanOrEqual(25)
  expectCounted(inBlocks.blocks, 200)
  expect(inWords.text).toMatch(/and \d+ more, not listed here/)
})

test('several events without a summary are refused', () => {
  expect(() => preview({ members: [aMember(), aMember()] })).toThrow('has 2 events')
})

function expectCounted(blocks: unknown, total: number): void {
  const text = JSON.stringify(blocks)
  const more = /(?:and (\d+) more(?:: |, not)|(\d+) not listed here)/.exec(text)
  expect(linesIn(blocks) + Number(more?.[1] ?? more?.[2] ?? 0)).toBe(total)
}

function linesIn(blocks: unknown): number {
  const listed = (blocks as { block_id?: string }[]).filter(
    ({ block_id: id }) => id !== 'already_sent' && id !== 'not_delivered',
  )
  return objectsIn(listed).filter(({ type }) => type === 'rich_text_section').length
}

function objectsIn(value: unknown): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return []
  const own = Array.isArray(value) ? [] : [value as Record<string, unknown>]
  return [...own, ...Object.values(value).flatMap(objectsIn)]
}
