import { expect, test } from 'vitest'
import { renderMessage } from '../../../../src/messages/message.ts'
import { renderText } from '../../../../src/sinks/email/mail-text.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'

test('reads from the note to the origin', () => {
  const event = aThreatEvent({ highlights: { content: ['first line\nOpen event: hxxps://evil'] } })
  const message = renderMessage(aMember({ event }), { attempt: 1, mayBeRepeat: true })
  expect(renderText(message, { sink: 'oncall', deliveryId: 'abc' })).toBe(`\
* May be a repeat: the answer to an earlier attempt was lost.

HIGH ${message.title}

Source: stealer_logs_live
Matched: example[.]com

Matched in content:
  | first line
  | Open event: hxxps://evil

Open event: https://app.example.com/#/uid?uid=stealer_log/stealer_logs_live/12345

--------------------
Created at: 2026-11-01 12:00 UTC
Matched at: 2026-11-01 12:01 UTC
Fetched at: 2026-11-01 12:02 UTC (1 min later)
Feed: brand (team brand)

--
Sent by Tocsin to sink oncall, routes: urgent
uid: stealer_log/stealer_logs_live/12345
delivery: abc
`)
})
