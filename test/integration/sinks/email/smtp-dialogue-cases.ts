/**
 * Every command of the SMTP dialogue × how a server may answer it, on a fresh and on a reused
 * connection, with what becomes of the item, the recipient, the connection and the circuit.
 * `smtp-dialogue.test.ts` runs each against a server; `test/golden/smtp.test.ts` prints them.
 */
import type { SinkReason } from '../../../../src/sinks/sink.ts'
import type { Step } from './raw-smtp-server.ts'

export interface DialogueCase {
  step: Step
  /** As the server's script has it: a reply, `hang`, `close` or `cut`. */
  answer: string
  /** `delivered`: over a fresh connection at once. */
  outcome: SinkReason | 'delivered'
  /** The failure is this recipient's alone. */
  isOwn: boolean
  /** The next mail goes over the connection that this one had last. */
  keeps: boolean
  /** How long a silence lasts before it counts, s. */
  waitsS?: number
}

/** Of a step: how the answer 4xx and 5xx, bare and with enhanced codes, are read. */
type Answers = Record<string, SinkReason | 'delivered'>

interface StepCases {
  on: readonly ('fresh' | 'reused')[]
  /** A silence, a closed and a cut connection. */
  lost: [silent: SinkReason | 'delivered', closed: SinkReason | 'delivered']
  waitsS: number
  answers: Answers
  keeps: boolean
  isOwn?: (outcome: DialogueCase['outcome']) => boolean
}

const both = ['fresh', 'reused'] as const
const unavailable = ['unavailable', 'unavailable'] satisfies StepCases['lost']
const ofRecipient = (outcome: string): boolean => outcome.startsWith('recipient_')

const steps: Partial<Record<Step, StepCases>> = {
  GREETING: {
    on: ['fresh'],
    lost: unavailable,
    waitsS: 10,
    keeps: false,
    answers: {
      '421 4.3.2 closing': 'unavailable',
      '450 busy': 'unavailable',
      '554 no SMTP service here': 'misconfigured',
      '554 5.7.1 your address is listed': 'misconfigured',
      '521 5.3.2 takes no mail': 'misconfigured',
      what: 'unavailable',
    },
  },
  EHLO: {
    on: ['fresh'],
    lost: unavailable,
    waitsS: 30,
    keeps: false,
    answers: {
      '421 4.3.2 closing': 'unavailable',
      '451 later': 'unavailable',
      '550 5.7.1 your name is not welcome': 'misconfigured',
      '501 5.5.4 invalid name': 'misconfigured',
    },
  },
  STARTTLS: {
    on: ['fresh'],
    lost: unavailable,
    waitsS: 30,
    keeps: false,
    answers: {
      '454 4.7.0 no TLS now': 'unavailable',
      '421 closing': 'unavailable',
      '502 5.5.1 no such command': 'misconfigured',
      '501 no': 'misconfigured',
    },
  },
  AUTH: {
    on: ['fresh'],
    lost: unavailable,
    waitsS: 30,
    keeps: false,
    answers: {
      '454 4.7.0 later': 'unavailable',
      '432 4.7.12 change the password': 'unavailable',
      '421 4.7.0 too many': 'unavailable',
      '535 no': 'unauthorized',
      '535 5.7.8 wrong': 'unauthorized',
      '535 5.7.139 SmtpClientAuthentication is disabled for the Tenant': 'unauthorized',
      '550 5.7.30 Basic authentication is not supported for Client Submission': 'unauthorized',
      '504 5.5.4 no such mechanism': 'unauthorized',
      '503 5.5.1 no AUTH here': 'unauthorized',
    },
  },
  RSET: {
    on: ['reused'],
    lost: ['delivered', 'delivered'],
    waitsS: 5,
    keeps: true,
    answers: {
      '421 4.4.2 closing': 'delivered',
      '451 later': 'delivered',
      '500 what': 'delivered',
    },
  },
  MAIL: {
    on: both,
    lost: unavailable,
    waitsS: 30,
    keeps: true,
    answers: {
      '421 4.7.0 too many mails over this connection': 'unavailable',
      '452 4.3.1 no room': 'unavailable',
      '450 4.1.8 no such domain just now': 'unavailable',
      '451 later': 'unavailable',
      '503 5.5.1 sign in first': 'unavailable',
      '530 5.7.57 Client was not authenticated to send anonymous mail': 'unauthorized',
      '550 no': 'misconfigured',
      '550 5.1.0 sender denied': 'misconfigured',
      '550 5.7.1 not your address': 'misconfigured',
      '553 5.1.8 no such domain': 'misconfigured',
      '501 5.1.7 bad address': 'misconfigured',
      '552 too big': 'invalid',
      '552 5.3.4 too big': 'invalid',
    },
  },
  RCPT: {
    on: both,
    lost: unavailable,
    waitsS: 30,
    keeps: true,
    isOwn: (outcome) => outcome !== 'unavailable',
    answers: {
      '421 4.3.2 closing': 'unavailable',
      '503 5.5.1 MAIL first': 'unavailable',
      '450 4.7.25 client host rejected': 'unavailable',
      '450 4.7.1 Client host rejected: cannot find your hostname': 'unavailable',
      '450 4.7.1 <tocsin>: Helo command rejected: Host not found': 'unavailable',
      '454 4.7.1 relay access denied': 'unavailable',
      '450 4.1.8 sender domain not found': 'unavailable',
      '451 4.3.0 lookup failed': 'unavailable',
      '451 4.3.5 server configuration error': 'unavailable',
      '452 4.3.1 no room': 'unavailable',
      '451 4.4.3 no name server': 'unavailable',
      '451 4.7.650 IP rate limited': 'unavailable',
      '450 greylisted': 'recipient_deferred',
      '450 4.1.1 address not verified yet': 'recipient_deferred',
      '451 4.7.0 come again': 'recipient_deferred',
      '450 4.2.0 greylisted': 'recipient_deferred',
      '451 4.7.1 greylisted': 'recipient_deferred',
      '452 4.2.2 mailbox full': 'recipient_deferred',
      '452 4.5.3 too many recipients': 'recipient_deferred',
      '552 too much': 'recipient_deferred',
      '550 5.2.122 more than it takes in an hour': 'recipient_deferred',
      '550 no such user': 'recipient_refused',
      '551 not here': 'recipient_refused',
      '550 5.0.0 no': 'recipient_refused',
      '550 5.1.1 no such user': 'recipient_refused',
      '550 5.1.10 recipient not found': 'recipient_refused',
      '550 #5.1.0 address rejected': 'recipient_refused',
      '553 5.1.3 bad address': 'recipient_refused',
      '554 5.2.1 disabled': 'recipient_refused',
      '552 5.2.2 mailbox full': 'recipient_refused',
      '553 not on my list (#5.7.1)': 'misconfigured',
      '553 5.7.1 sender not owned by user': 'misconfigured',
      '553 5.1.7 bad sender': 'misconfigured',
      '553 sender unknown': 'misconfigured',
      '554 5.7.1 relay access denied': 'misconfigured',
      '550 5.7.1 client host rejected': 'misconfigured',
      '550 5.7.54 unable to relay recipient in non-accepted domain': 'misconfigured',
      '550 5.7.60 does not have permissions to send as this sender': 'misconfigured',
      '550 5.4.1 access denied': 'misconfigured',
      '504 5.5.2 HELO is not a full name': 'misconfigured',
      '554 no': 'misconfigured',
      '530 5.7.0 sign in first': 'unauthorized',
      '552 5.3.4 too big': 'invalid',
    },
  },
  DATA: {
    on: both,
    lost: unavailable,
    waitsS: 30,
    keeps: true,
    isOwn: ofRecipient,
    answers: {
      '421 4.3.2 closing': 'unavailable',
      '451 4.3.0 later': 'unavailable',
      '450 later': 'unavailable',
      '503 5.5.1 RCPT first': 'unavailable',
      '554 no': 'misconfigured',
      '554 5.5.1 no valid recipients': 'misconfigured',
      '550 5.1.1 no such user': 'recipient_refused',
      '552 5.3.4 too big': 'invalid',
    },
  },
  END: {
    on: both,
    lost: ['timeout', 'connection_lost'],
    waitsS: 600,
    keeps: true,
    isOwn: ofRecipient,
    answers: {
      '421 4.3.2 closing': 'unavailable',
      '451 later': 'unavailable',
      '451 4.7.1 later': 'unavailable',
      '452 4.3.1 no room': 'unavailable',
      '452 4.2.2 mailbox full': 'recipient_deferred',
      '503 5.5.1 wrong order': 'unavailable',
      '550 5.1.1 no such user': 'recipient_refused',
      '552 5.2.2 mailbox full': 'recipient_refused',
      '554 5.4.6 hop count exceeded': 'misconfigured',
      '554 5.2.252 SendAsDenied': 'misconfigured',
      '550 5.7.60 does not have permissions to send as this sender': 'misconfigured',
      '550 5.7.26 unauthenticated': 'misconfigured',
      '550 5.1.90 daily limit': 'misconfigured',
      '554 5.3.5 wrongly configured': 'misconfigured',
      '554 no': 'rejected',
      '550 no': 'rejected',
      '554 5.7.1 looks like spam': 'rejected',
      '552 too much': 'invalid',
      '552 5.2.3 too long': 'invalid',
      '554 5.6.0 content refused': 'invalid',
      '199 what': 'connection_lost',
    },
  },
}

export function casesOn(connection: 'fresh' | 'reused'): DialogueCase[] {
  return (Object.entries(steps) as [Step, StepCases][])
    .filter(([, { on }]) => on.includes(connection))
    .flatMap(([step, cases]) => casesOf(step, cases))
}

function casesOf(step: Step, { lost, waitsS, answers, keeps, isOwn }: StepCases): DialogueCase[] {
  const [silent, closed] = lost
  const ended = { step, isOwn: step === 'RCPT', keeps: silent === 'delivered' }
  return [
    { ...ended, answer: 'hang', outcome: silent, waitsS },
    { ...ended, answer: 'close', outcome: closed },
    { ...ended, answer: 'cut', outcome: closed },
    ...Object.entries(answers).map(([answer, outcome]): DialogueCase => ({
      step,
      answer,
      outcome,
      isOwn: isOwn?.(outcome) === true,
      keeps: keeps && (outcome === 'delivered' || /^(?!421|503)[45]/.test(answer)),
    })),
  ]
}
