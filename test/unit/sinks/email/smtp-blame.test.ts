import { expect, test } from 'vitest'
import { type Blame, judgeReply, type SmtpStage } from '../../../../src/sinks/email/smtp-blame.ts'

const stages: SmtpStage[] = [
  'connect',
  'greeting',
  'hello',
  'starttls',
  'auth',
  'mail',
  'rcpt',
  'data',
  'message',
]
const subjects = [0, 1, 2, 3, 4, 5, 6, 7]
const details = Array.from({ length: 1000 }, (_, detail) => detail)
const replies = [500, 501, 502, 504, 521, 530, 535, 541, 550, 551, 552, 553, 554, 555, 556]

interface Judged {
  stage: SmtpStage
  reply: number
  code: string
  blame: Blame | undefined
  scope: string | undefined
}

/** Every stage × reply × code of the class that the reply has, and each reply bare. */
function everyRefusal(ofClass: 4 | 5): Judged[] {
  const codes = subjects.flatMap((subject) =>
    details.map((detail) => `${ofClass}.${subject}.${detail}`),
  )
  return stages.flatMap((stage) =>
    (ofClass === 5 ? replies : [421, 450, 451, 452, 454]).flatMap((reply) =>
      ['', ...codes].map((code) => {
        const verdict = judgeReply(stage, `${reply} ${code} said`)
        return { stage, reply, code, blame: verdict?.blame, scope: verdict?.scope }
      }),
    ),
  )
}

const refusals = everyRefusal(5)
const delays = everyRefusal(4)

function listed(all: Judged[]): string[] {
  return [...new Set(all.map(({ stage, reply, code }) => `${stage} ${code || `bare ${reply}`}`))]
}

test('every reply 4xx and 5xx has somebody at fault at every stage', () => {
  expect([...refusals, ...delays].filter(({ blame }) => blame === undefined)).toEqual([])
})

test('a recipient is refused for good by 5.1, 5.2.1, 5.2.2 and a bare 550 or 551 to RCPT alone', () => {
  const refused = refusals.filter(({ blame }) => blame === 'recipient')
  expect(
    listed(refused).filter((name) => !/^(rcpt|data|message) 5\.(1\.\d+|2\.[12])$/.test(name)),
  ).toEqual(['rcpt bare 550', 'rcpt 5.0.0', 'rcpt bare 551'])
  const sendersOwn = /^5\.1\.(7|8|20|90)$/
  expect(refused.filter(({ code }) => sendersOwn.test(code))).toEqual([])
  expect(delays.filter(({ blame }) => blame === 'recipient')).toEqual([])
})

test('a mailbox is at fault for a while by 4.1 and 4.2, at RCPT also by 4.5.3, 4.7.0, 4.7.1 and bare', () => {
  const deferred = delays.filter(({ blame }) => blame === 'mailbox')
  expect(new Set(deferred.map(({ stage }) => stage))).toEqual(new Set(['rcpt', 'data', 'message']))
  const later = deferred.filter(({ stage }) => stage !== 'rcpt')
  expect(later.filter(({ code }) => !/^4\.[12]\./.test(code))).toEqual([])
  const sendersOwn = /^4\.1\.[78]$/
  expect(deferred.filter(({ code }) => sendersOwn.test(code))).toEqual([])
  const isRecipients = /^$|^4\.(0\.0|[12]\.\d+|5\.3|7\.[01])$/
  const atRcpt = delays.filter(
    ({ stage, reply, code }) =>
      stage === 'rcpt' &&
      reply !== 421 &&
      (reply !== 454 || /^4\.[12]\./.test(code)) &&
      isRecipients.test(code) &&
      !sendersOwn.test(code),
  )
  expect(atRcpt.filter(({ blame }) => blame !== 'mailbox')).toEqual([])
  expect(listed(deferred.filter(({ stage }) => stage === 'rcpt'))).toEqual(listed(atRcpt))
})

test('before a message is known it is at fault by its size alone', () => {
  const early = refusals.filter(({ stage, blame }) => stage !== 'message' && blame === 'message')
  expect(
    listed(early).filter((name) => !/^(mail|rcpt|data) 5\.(2\.3|3\.4|7\.512)$/.test(name)),
  ).toEqual(['mail bare 552', 'mail 5.0.0', 'data bare 552', 'data 5.0.0'])
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

test.each(['250 ok', '199 what', '55', '5500 5.1.1 x', 'what', ''])('%j is no refusal', (reply) => {
  expect(judgeReply('rcpt', reply)).toBeUndefined()
})
