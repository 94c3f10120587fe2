import { describe, expect, test } from 'vitest'
import { composeMail } from '../../../../src/sinks/email/email-sink.ts'
import type { Delivery } from '../../../../src/sinks/sink.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { aBusyDigest, summarised } from '../../../support/summaries.ts'

type Mail = ReturnType<typeof composeMail> & { html: string; text: string }

function compose(content: Partial<Delivery>): Mail {
  const delivery = {
    id: 'abc',
    destination: { id: 'oncall:1', label: 'oncall' },
    members: [],
    attempt: 1,
    mayBeRepeat: false,
    ...content,
  }
  const options = { sink: 'oncall', from: 'tocsin@example.com', to: 'a@example.com', nowMs: 0 }
  return composeMail(delivery, options) as Mail
}

describe('a digest’s mail', () => {
  test('has the id of its delivery, and stands with its sink’s digests of the local day', () => {
    const { members, summary } = aBusyDigest(3)
    const dueAtMs = Date.UTC(2026, 10, 20, 23, 30)
    const digest = { ...summary!.digest!, dueAtMs }
    const mail = compose({ members, summary: { ...summary!, digest } })
    expect(mail.messageId).toMatch(/^<abc\.[0-9a-f]{16}@example\.com>$/)
    expect(mail.references).toBe('<digest.oncall.2026-11-21.tocsin@example.com>')
    expect(mail.inReplyTo).toBe(mail.references)
    expect(mail.headers).toMatchObject({ 'List-Id': '<digest.oncall.tocsin.example.com>' })
  })

  test('carries its attachment and points to it for what it does not list', () => {
    const { html, attachments } = compose(aBusyDigest(300))
    expect(attachments).toEqual([
      {
        filename: 'tocsin-digest-2026-11-21.csv',
        contentType: 'text/csv; charset=utf-8',
        content: Buffer.from('a,b\r\n'),
      },
    ])
    expect(html).toMatch(/and \d+ more: see the attached tocsin-digest-2026-11-21\.csv/)
  })
})

describe('a critical mail', () => {
  const critical = (severity: string): Partial<Delivery> => ({
    members: [aMember({ event: aThreatEvent({ severity }) })],
  })
  const priority = (content: Partial<Delivery>): unknown => {
    const { Importance: importance, 'X-Priority': first } = compose(content).headers as Record<
      string,
      string | undefined
    >
    return { importance, first }
  }
  const urgent = { importance: 'high', first: '1' }
  const ordinary = { importance: undefined, first: undefined }

  test.each(['critical', 'none', 'sev1'])(
    'of severity %s is marked, in a thread of its own',
    (severity) => {
      expect(priority(critical(severity))).toEqual(urgent)
      expect(compose(critical(severity)).references).toBe('<abc.tocsin@example.com>')
    },
  )

  test('about a group is marked, too', () => {
    const { members = [] } = critical('critical')
    expect(priority(summarised([...members, aMember()]))).toEqual(urgent)
  })

  test('is none that is less, a digest or a TEST', () => {
    expect(priority(critical('high'))).toEqual(ordinary)
    expect(priority({ ...critical('critical'), isTest: true })).toEqual(ordinary)
    expect(priority(aBusyDigest(3))).toEqual(ordinary)
    expect(compose({ ...critical('critical'), isTest: true }).references).toMatch(/^<brand\./)
  })
})
