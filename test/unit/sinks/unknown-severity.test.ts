/** Of an unknown severity nobody knows that it is harmless, so it must look as grave as the gravest. */
import { describe, expect, test } from 'vitest'
import { formatSeverity, severityLabel } from '../../../src/messages/summary.ts'
import { composeMail } from '../../../src/sinks/email/email-sink.ts'
import { previewSlack } from '../../../src/sinks/slack/slack-message.ts'
import type { Delivery } from '../../../src/sinks/sink.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'

const member = aMember({ event: aThreatEvent({ severity: 'none' }) })
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
  expect(inWords.text).toMatch(/^🟥 UNKNOWN \("none"\) · /)
})

test('a mail has the critical colour and says UNKNOWN in subject and both parts', () => {
  const { subject, text, html } = mailOf()
  expect(subject).toMatch(/^\[UNKNOWN \("none"\)\] /)
  expect(text).toMatch(/^UNKNOWN \("none"\) /m)
  expect(html).toContain('UNKNOWN (&quot;none&quot;)</span> &middot;')
  expect(html).toContain(redOfCritical)
})
