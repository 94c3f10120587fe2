/** Addresses of mail: what the configuration takes, the sink can use, and nothing else gets into a header. */
import { emailType } from '../../../src/sinks/email/config.ts'
import { composeMail } from '../../../src/sinks/email/email-sink.ts'
import { readSmtpAddress } from '../../../src/sinks/email/smtp.ts'
import { SinkError } from '../../../src/sinks/sink.ts'
import { aMember } from '../../support/deliveries.ts'
import { bytesOf } from '../engine/bytes.ts'
import { assertThat } from '../engine/target.ts'

export const dictionary = [
  'smtp://',
  'smtps://',
  '@',
  '[::1]',
  '%40',
  '%',
  ':587',
  ' <a@b.c>',
  '"a" ',
]

export function fuzz(data: Uint8Array): void {
  const [smtp = '', from = '', to = ''] = bytesOf(data).texts()
  const usual = {
    type: 'email',
    smtp: 'smtp://h.example',
    from: 'a@b.example',
    to: ['c@d.example'],
  }
  checkServer({ ...usual, smtp })
  checkHeaders({ ...usual, from })
  checkHeaders({ ...usual, to: [to] })
}

function checkServer(file: object): void {
  const { success, data } = emailType.config.safeParse(file)
  if (!success) return
  try {
    const { host, port, user } = readSmtpAddress({ name: 'oncall', ...data })
    assertThat(host !== '' && port >= 1 && port <= 65_535, 'no server', { host, port })
    assertThat(typeof user === 'string', 'no user')
  } catch (error) {
    if (!(error instanceof SinkError) || error.reason !== 'misconfigured') throw error
  }
}

function checkHeaders(file: object): void {
  const { success, data } = emailType.config.safeParse(file)
  if (!success) return
  const [to = ''] = data.to
  const delivery = {
    id: '0123456789abcdef',
    destination: { id: 'a', label: to },
    members: [aMember()],
    attempt: 1,
    mayBeRepeat: false,
  }
  const mail = composeMail(delivery, { sink: 'oncall', from: data.from, to, nowMs: 0 })
  const { envelope, messageId, inReplyTo, headers } = mail
  const said = JSON.stringify([envelope, messageId, inReplyTo, headers, mail.from, mail.to])
  const controls = said.replaceAll('\\\\', '') // a backslash in a name is none
  assertThat(!/\\[rn]|\\u000/.test(controls), 'a header may be forged', said)
  const ids = [messageId, inReplyTo].every((id) => /^<[^<>\s]+@[^<>\s@]+>$/.test(String(id)))
  assertThat(ids, 'ids that are none', said)
  assertThat(
    /^[^\s<>]+@[^\s<>@]+$/.test(JSON.stringify(envelope?.from).slice(1, -1)),
    'no sender',
    said,
  )
}
