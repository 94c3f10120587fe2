/** Whose fault a failed mail is; test/golden/recorded/smtp-codes.md has each code at each stage. */
import { describe, expect, test } from 'vitest'
import {
  type Blame,
  errorFromFailure,
  judgeReply,
  type SmtpStage,
} from '../../../../src/sinks/email/smtp-blame.ts'
import { createRedactor } from '../../../../src/sinks/email/smtp-redaction.ts'

const asItIs = (text: string): string => text

const atMail = {
  isNamed: false,
  hasBegun: false,
  isAborted: false,
  isTrial: false,
  isAnonymous: false,
}

function reasonOf(
  fields: object,
  progress: { hasBegun?: boolean; isAborted?: boolean } = {},
): string {
  const error = Object.assign(new Error('failed'), fields)
  return errorFromFailure(error, { ...atMail, ...progress }, asItIs).reason
}

describe('without a reply', () => {
  test.each([
    ['ECONNECTION', 'connection_lost'],
    ['ESOCKET', 'connection_lost'],
    ['EPROTOCOL', 'connection_lost'],
    ['ETIMEDOUT', 'timeout'],
  ])('%s after the message began to flow is %s', (code, reason) => {
    expect(reasonOf({ code }, { hasBegun: true })).toBe(reason)
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
    expect(reasonOf({ code: 'EABORT' }, { isAborted: true, hasBegun: true })).toBe('timeout')
  })

  test.each(['EAI_AGAIN', 'ENOTFOUND'])(
    '%s of a host called after certificates is no fault of theirs',
    (code) => {
      const message = `getaddrinfo ${code} mail.cert-bund.example`
      expect(reasonOf({ code: 'EDNS', originalCode: code, message })).toBe('unavailable')
    },
  )

  test.each(['DEPTH_ZERO_SELF_SIGNED_CERT', 'CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID'])(
    'the certificate fault %s is the operator’s',
    (originalCode) => {
      expect(reasonOf({ code: 'ESOCKET', originalCode })).toBe('misconfigured')
    },
  )
})

test('a port without TLS is said with what to write, and without the words of OpenSSL', () => {
  const words =
    '40AD:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:x.c:77:'
  const error = Object.assign(new Error(words), { code: 'ESOCKET', command: 'CONN' })
  const failure = errorFromFailure(error, atMail, asItIs)
  expect(failure).toMatchObject({ reason: 'misconfigured' })
  expect(failure.message).toBe(
    'the mail server cannot be used as configured: what answers there speaks no TLS: smtps:// needs a port that does',
  )
})

test('a refusal keeps the status and the server’s words', () => {
  const error = Object.assign(new Error('x'), {
    responseCode: 550,
    response: '550 5.1.1 no such user',
    command: 'RCPT TO',
  })
  const failure = errorFromFailure(error, atMail, asItIs)
  expect(failure).toMatchObject({ reason: 'recipient_refused', status: 550, cause: undefined })
  expect(failure.message).toBe('the mail server refuses the recipient: 550 5.1.1 no such user')
})

test('a refusal before the close that ends no line is the recipient’s, once he was named', () => {
  const response = '550 5.1.1 no such user'
  const fields = { code: 'ECONNECTION', command: 'CONN', responseCode: 550, response }
  const error = Object.assign(new Error('x'), fields)
  const refused = { reason: 'recipient_refused', scope: 'destination' }
  expect(errorFromFailure(error, { ...atMail, isNamed: true }, asItIs)).toMatchObject(refused)
  const unnamed = { reason: 'misconfigured', scope: undefined }
  expect(errorFromFailure(error, atMail, asItIs)).toMatchObject(unnamed)
})

test.each([
  [{ code: 'ESOCKET' }, 'the mail server cannot be used now: failed'],
  [
    { responseCode: 421, response: '421 4.3.2 later' },
    'the mail server cannot be used now: 421 4.3.2 later',
  ],
  [
    { responseCode: 535, response: '535 no', code: 'EAUTH', command: 'AUTH PLAIN' },
    'the mail server refuses the sign-in: 535 no',
  ],
])('where no message was to be sent, %j speaks of none', (fields, said) => {
  const error = Object.assign(new Error('failed'), fields)
  expect(errorFromFailure(error, { ...atMail, isTrial: true }, asItIs).message).toBe(said)
})

describe('the server’s words', () => {
  const redact = createRedactor({ user: 'relay', password: 'a/b c' })

  test.each([
    '535 a/b c',
    '535 a%2Fb%20c',
    `535 ${Buffer.from('a/b c').toString('base64')}`,
    `535 ${Buffer.from('\0relay\0a/b c').toString('base64')}`,
  ])('%s come without the password', (text) => {
    expect(redact(text)).toBe('535 <secret>')
  })

  test.each([
    ['554 5.7.1 refused: hunter2 is spam', '554 5.7.1 (the rest may quote the leaked secret)'],
    ['554-5.7.1 cut "hunt', '554-5.7.1 (the rest may quote the leaked secret)'],
    ['250 queued', '250 (the rest may quote the leaked secret)'],
    ['55412 hunter2', '(the rest may quote the leaked secret)'],
  ])('%j, about a mail that shows leaked secrets, come as %j', (text, shown) => {
    expect(createRedactor({ user: '', password: '' }, true)(text)).toBe(shown)
  })
})

test.each<[SmtpStage, string, Blame]>([
  ['rcpt', '550-5.1.1 over\n550 5.1.1 two lines', 'recipient'],
  ['rcpt', '553 sorry, not among my rcpthosts (#5.7.1)', 'sender'],
  ['rcpt', '550 #5.1.0 Address rejected', 'recipient'],
  ['rcpt', '550 5.01.001 zeros', 'recipient'],
  ['rcpt', '451 4.3.0 lookup failure', 'server'],
  ['rcpt', '452 4.3.1 insufficient storage', 'server'],
  ['rcpt', '451 4.3.5 server configuration error', 'server'],
  ['rcpt', '450 4.7.25 Client host rejected: cannot find your hostname', 'server'],
  ['rcpt', '450 4.7.1 Client host rejected: cannot find your reverse hostname', 'server'],
  ['rcpt', '450 4.7.1 <tocsin>: Helo command rejected: Host not found', 'server'],
  ['rcpt', '454 4.7.1 <ann@example.com>: Relay access denied', 'server'],
  ['rcpt', '450 4.7.1 <ann@example.com>: Relay access denied', 'server'],
  ['rcpt', '450 Client host rejected', 'server'],
  ['rcpt', '451 4.7.650 The mail server has been temporarily rate limited', 'server'],
  ['rcpt', '450 4.1.8 <x@example.com>: Sender address rejected: Domain not found', 'server'],
  ['data', '450 4.1.7 <x@example.com>: Sender address rejected', 'server'],
  ['rcpt', '450 4.7.1 <ann@relay.example>: come again later', 'mailbox'],
  ['rcpt', '451 4.7.1 Greylisting in action, helo unknown yet', 'mailbox'],
  ['rcpt', '451 4.7.1 Gray-listed', 'mailbox'],
  ['rcpt', '451 4.7.0 Please try again', 'mailbox'],
  ['rcpt', '452 4.5.3 Too many recipients', 'mailbox'],
  ['rcpt', '450 4.1.1 unverified address', 'mailbox'],
  ['message', '550 5.7.512 not compliant', 'message'],
  ['message', '550 5.7.708 traffic not accepted from this IP', 'sender'],
  ['message', '550-5.7.26 unauthenticated', 'sender'],
])('at %s %j is the fault of the %s', (stage, reply, blame) => {
  expect(judgeReply(stage, reply)?.blame).toBe(blame)
})

test('a recipient who takes no mail of this sender is no fault of the others', () => {
  expect(judgeReply('message', '550 5.7.133 sender not authenticated for group')).toEqual({
    blame: 'sender',
    scope: 'destination',
  })
  expect(judgeReply('message', '554 5.2.252 SendAsDenied')?.scope).toBeUndefined()
})

test.each(['250 ok', '199 what', '55', '5500 5.1.1 x', 'what', ''])('%j is no refusal', (reply) => {
  expect(judgeReply('rcpt', reply)).toBeUndefined()
})
