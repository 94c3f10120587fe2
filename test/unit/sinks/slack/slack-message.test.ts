import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { eventDocument, renderMessage } from '../../../../src/messages/message.ts'
import {
  maxBlocksLength,
  renderPlainSlack,
  renderSlack,
  slackLimits,
  type SlackMessage,
} from '../../../../src/sinks/slack/slack-message.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { anyMember, longestMember } from '../any-member.ts'
import { runs } from '../../../support/runs.ts'

const firstTry = { attempt: 1, mayBeRepeat: false }

describe('whatever the feed says', () => {
  test('the message keeps within every length that Slack allows', () => {
    fc.assert(
      fc.property(anyMember, (member) => {
        const message = renderMessage(member, { attempt: 3, mayBeRepeat: true, isTest: true })
        const document = eventDocument(message, 'a'.repeat(64))
        const payload = renderSlack(document)
        expectWithinLimits(payload)
        expect(renderPlainSlack(document).text!.length).toBeLessThanOrEqual(slackLimits.text)
      }),
      { numRuns: runs({ short: 60, long: 300 }) },
    )
  })

  test('no text is open to a mention, a link or markup', () => {
    fc.assert(
      fc.property(anyMember, (member) => {
        const document = eventDocument(renderMessage(member, firstTry), 'abc')
        const { text, blocks } = renderSlack(document)
        for (const escaped of [text!, renderPlainSlack(document).text!]) {
          expect(escaped).not.toMatch(/[<>`]|&(?!amp;|lt;|gt;)/)
        }
        for (const found of objectsIn(blocks)) {
          expect(found['type']).not.toBe('mrkdwn')
          if (found['type'] !== 'plain_text') continue
          expect(found['emoji']).toBe(false)
          expect(found['text']).not.toMatch(/[<>]|&(?!amp;|lt;|gt;)/)
        }
      }),
      { numRuns: runs({ short: 60, long: 300 }) },
    )
  })
})

test('an event at the bounds of everything still fits', () => {
  for (const character of ['&', '"', '<', '😀', 'ﷺ']) {
    const message = renderMessage(longestMember(character), { attempt: 9, mayBeRepeat: true })
    const facts = Array.from({ length: 12 }, () => ({
      label: character.repeat(40),
      value: character.repeat(300),
      kind: 'text' as const,
    }))
    const payload = renderSlack(eventDocument({ ...message, facts }, 'a'.repeat(64)))
    expectWithinLimits(payload)
    expect(JSON.stringify(payload.blocks)).toContain('delivery aaaa')
  }
})

test('the button leads to the event; without a link there is none', () => {
  expect(objectsIn(blocksOf()).find(({ type }) => type === 'button')).toMatchObject({
    url: 'https://app.example.com/#/uid?uid=stealer_log/stealer_logs_live/12345',
  })
  const without = objectsIn(blocksOf(aThreatEvent({ url: 'javascript:alert(1)' })))
  expect(without.some(({ type }) => type === 'button')).toBe(false)
})

test('nothing unfurls, is formatted or is parsed for names', () => {
  const payload = renderSlack(eventDocument(renderMessage(aMember(), firstTry), 'abc'))
  expect(Object.keys(payload).toSorted()).toEqual([
    'blocks',
    'mrkdwn',
    'text',
    'unfurl_links',
    'unfurl_media',
  ])
  expect(payload).toMatchObject({ mrkdwn: false, unfurl_links: false, unfurl_media: false })
})

function blocksOf(event = aThreatEvent()): Record<string, unknown>[] {
  const { blocks } = renderSlack(eventDocument(renderMessage(aMember({ event }), firstTry), 'abc'))
  return blocks as unknown as Record<string, unknown>[]
}

function expectWithinLimits({ text, blocks }: SlackMessage): void {
  expect(text!.length).toBeLessThanOrEqual(slackLimits.text)
  expect(text!.length).toBeGreaterThan(0)
  expect(blocks!.length).toBeLessThanOrEqual(slackLimits.blocks)
  expect(JSON.stringify(blocks).length).toBeLessThan(maxBlocksLength)
  expect(JSON.stringify(blocks).isWellFormed()).toBe(true)
  for (const block of blocks as unknown as Record<string, unknown>[]) expectBlockWithinLimits(block)
}

function expectBlockWithinLimits(block: Record<string, unknown>): void {
  const {
    type,
    text,
    fields = [],
    elements = [],
  } = block as {
    type: string
    text?: { text: string }
    fields?: { text: string }[]
    elements?: { text?: string; url?: string }[]
  }
  if (text) {
    expect(text.text.length).toBeGreaterThan(0)
    expect(text.text.length).toBeLessThanOrEqual(
      type === 'header' ? slackLimits.header : slackLimits.section,
    )
  }
  expect(fields.length).toBeLessThanOrEqual(10)
  for (const field of fields) expect(field.text.length).toBeLessThanOrEqual(slackLimits.field)
  expect(elements.length).toBeLessThanOrEqual(slackLimits.contextElements)
  for (const { url = '' } of elements) expect(url.length).toBeLessThanOrEqual(slackLimits.url)
}

function objectsIn(value: unknown): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return []
  const own = Array.isArray(value) ? [] : [value as Record<string, unknown>]
  return [...own, ...Object.values(value).flatMap(objectsIn)]
}
