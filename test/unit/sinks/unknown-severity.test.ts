/** Of an unknown severity nobody knows that it is harmless, so it must look as grave as the gravest. */
import { describe, expect, test } from 'vitest'
import { historyLines } from '../../../src/cli/ledger/item-text.ts'
import { formatSeverity, severityLabel } from '../../../src/messages/summary.ts'
import { composeMail } from '../../../src/sinks/email/email-sink.ts'
import { previewSlack } from '../../../src/sinks/slack/slack-message.ts'
import type { Delivery } from '../../../src/sinks/sink.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import { digestFacts, summarised } from '../../support/summaries.ts'

const member = aMember({ event: aThreatEvent({ severity: 'none' }) })
const critical = aMember({ event: aThreatEvent({ severity: 'critical' }) })
const redOfCritical = '#c62828'

function delivery(content: Partial<Delivery>): Delivery {
  const destination = { id: 'soc', label: 'soc' }
  return { id: 'b1', destination, members: [member], attempt: 1, mayBeRepeat: false, ...content }
}

function mailOf(content: Partial<Delivery> = {}): { subject: string; text: string; html: string } {
  const options = { sink: 'soc', from: 'tocsin@example.com', to: 'a@example.com', nowMs: 0 }
  return composeMail(delivery(content), options) as ReturnType<typeof mailOf>
}

describe('the word of an unknown severity', () => {
  test.each([
    ['none', 'UNKNOWN ("none")'],
    ['unknown', 'UNKNOWN'],
    ['', 'UNKNOWN'],
    ['\u202E', 'UNKNOWN'],
    ['see "evil.com"\n', `UNKNOWN ("see 'evil[.]com'")`],
    ['x'.repeat(40), `UNKNOWN ("${'x'.repeat(19)}…")`],
  ])('%j reads %s', (severity, label) => {
    expect(severityLabel(severity)).toBe(label)
    expect(formatSeverity(severity)).toBe(label)
  })

  test('a known one reads as ever', () => {
    expect([severityLabel('high'), formatSeverity('high')]).toEqual(['HIGH', 'high'])
  })
})

test('a message in Slack has the critical mark and says UNKNOWN', () => {
  const { inBlocks, plainText: inWords } = previewSlack(delivery({}))
  expect(inBlocks.blocks?.[0]).toMatchObject({
    text: { text: expect.stringMatching(/^🟥 UNKNOWN \("none"\) · /) },
  })
  expect(inWords.text).toMatch(/^UNKNOWN \("none"\) /)
})

test('a mail has the critical colour and says UNKNOWN in subject and both parts', () => {
  const { subject, text, html } = mailOf()
  expect(subject).toMatch(/^\[UNKNOWN \("none"\)\] /)
  expect(text).toMatch(/^UNKNOWN \("none"\) /m)
  expect(html).toContain('UNKNOWN (&quot;none&quot;)</span> &middot;')
  expect(html).toContain(redOfCritical)
})

test('a group says UNKNOWN in subject, title and line, before what is critical', () => {
  const group = summarised([critical, member])
  const { inBlocks } = previewSlack(delivery(group))
  const text = JSON.stringify(inBlocks.blocks)
  expect(inBlocks.text).toMatch(/^\[1 UNKNOWN \("none"\), 1 CRITICAL\] 2 new events/)
  expect(text).toContain(String.raw`🟥 UNKNOWN (\"none\") · 2 new events, worst: `)
  expect(text).toContain(String.raw`2 new events: 1 UNKNOWN (\"none\"), 1 critical`)
  expect(mailOf(group).html).toContain('1 UNKNOWN (&quot;none&quot;)&nbsp;</span>')
})

test('a digest says UNKNOWN in its subject, and of what was already sent', () => {
  const sent = { severity: 'none', type: 'paste', uid: 'paste/x/1', sentAtMs: 0 }
  const digest = digestFacts({ alreadySent: [sent], alreadySentTotal: 1 })
  const { subject, text } = mailOf(summarised([member], { kind: 'digest', digest }))
  expect(subject).toContain('1 UNKNOWN ("none")')
  expect(text).toMatch(/UNKNOWN \("none"\) {2}Paste: content no longer stored, uid paste\/x\/1/)
})

test('items show says UNKNOWN', () => {
  const record = {
    account: 'main',
    recordId: 'r',
    uid: 'paste/x/1',
    type: 'paste',
    severity: 'none',
    firstSeenMs: 0,
    sightings: [{ feed: 'brand', atMs: 0, severity: 'none', labels: {}, decisions: [] }],
    items: [],
    closed: undefined,
    seenAgain: undefined,
  }
  const [head, taken] = historyLines(record, new Map())
  expect(head).toContain('UNKNOWN ("none")')
  expect(taken).toContain('severity UNKNOWN ("none")')
})
