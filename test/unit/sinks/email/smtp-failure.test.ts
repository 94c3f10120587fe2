import { describe, expect, test } from 'vitest'
import { smtpFailure } from '../../../../src/sinks/email/smtp-failure.ts'
import { redactorOf } from '../../../../src/sinks/email/smtp-reply.ts'

const asItIs = (text: string): string => text

function reasonOf(
  fields: object,
  progress: { hasBodyStarted?: boolean; isAborted?: boolean } = {},
): string {
  const error = Object.assign(new Error('failed'), fields)
  return smtpFailure(error, { hasBodyStarted: false, isAborted: false, ...progress }, asItIs).reason
}

describe('without a reply', () => {
  test.each([
    ['ECONNECTION', 'connection_lost'],
    ['ESOCKET', 'connection_lost'],
    ['EPROTOCOL', 'connection_lost'],
    ['ETIMEDOUT', 'timeout'],
  ])('%s after the message began to flow is %s', (code, reason) => {
    expect(reasonOf({ code }, { hasBodyStarted: true })).toBe(reason)
  })

  test.each([
    ['ECONNECTION', 'unavailable'],
    ['ESOCKET', 'unavailable'],
    ['ETIMEDOUT', 'unavailable'],
    ['EDNS', 'unavailable'],
    ['ETLS', 'unavailable'],
    ['EAUTH', 'unauthorized'],
    ['ECONFIG', 'misconfigured'],
    ['EENVELOPE', 'misconfigured'],
  ])('%s before it is %s', (code, reason) => {
    expect(reasonOf({ code })).toBe(reason)
  })

  test('an abort loses the answer only once the message flows', () => {
    expect(reasonOf({ code: 'EABORT' }, { isAborted: true })).toBe('unavailable')
    expect(reasonOf({ code: 'EABORT' }, { isAborted: true, hasBodyStarted: true })).toBe('timeout')
  })

  test.each(['DEPTH_ZERO_SELF_SIGNED_CERT', 'CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID'])(
    'the certificate fault %s is the operator’s',
    (originalCode) => {
      expect(reasonOf({ code: 'ESOCKET', originalCode })).toBe('misconfigured')
    },
  )
})

test('a refusal keeps the status and the server’s words', () => {
  const error = Object.assign(new Error('x'), {
    responseCode: 550,
    response: '550 5.1.1 no such user',
    command: 'RCPT TO',
  })
  const failure = smtpFailure(error, { hasBodyStarted: false, isAborted: false }, asItIs)
  expect(failure).toMatchObject({ reason: 'recipient_refused', status: 550, cause: undefined })
  expect(failure.message).toBe('the mail server refuses the recipient: 550 5.1.1 no such user')
})

describe('the server’s words', () => {
  const redact = redactorOf({
    host: 'mail.example.com',
    port: 587,
    isImplicitTls: false,
    user: 'relay',
    password: 'a/b c',
  })

  test.each([
    '535 a/b c',
    '535 a%2Fb%20c',
    `535 ${Buffer.from('a/b c').toString('base64')}`,
    `535 ${Buffer.from('\0relay\0a/b c').toString('base64')}`,
  ])('%s come without the password', (text) => {
    expect(redact(text)).toBe('535 <secret>')
  })

  test('come on one line, without what a terminal would obey', () => {
    expect(redact('550-no\r\n550 \u001B[31mnever\u202E')).toBe('550-no 550 [31mnever')
  })

  test('come short', () => {
    expect(redact('😀'.repeat(500)).length).toBeLessThanOrEqual(160)
  })
})
