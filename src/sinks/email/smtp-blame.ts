/**
 * Whose fault a failed mail is: one table by stage of the dialogue, reply code and enhanced status
 * code (RFC 3463, its IANA registry, and the codes that Exchange adds).
 */
import { explainTlsFailure } from '../../lib/config/web-address.ts'
import { SinkError, type SinkReason } from '../sink.ts'

/** The commands by whose replies fault is told; `greeting`: all before AUTH, `message`: the final dot. */
export type SmtpStage = 'greeting' | 'auth' | 'mail' | 'rcpt' | 'data' | 'message'

/** At fault are, for good unless said otherwise: */
export type Blame =
  | 'recipient' // the address or its mailbox
  | 'mailbox' // the same for a while: full, greylisted
  | 'message' // its size or its content
  | 'login' // the user, the password, the token
  | 'sender' // what is configured: its address, host, rights, or the server itself
  | 'either' // the message or the sender: no code says which
  | 'server' // the server or the connection, for a while

export const reasonByBlame: Record<Blame, SinkReason> = {
  recipient: 'recipient_refused',
  mailbox: 'recipient_deferred',
  message: 'invalid',
  login: 'unauthorized',
  sender: 'misconfigured',
  either: 'rejected',
  server: 'unavailable',
}

type Row = [stages: readonly SmtpStage[], reply: RegExp, code: RegExp, blame: Blame]

const beforeMail: SmtpStage[] = ['greeting', 'auth']
const envelope: SmtpStage[] = ['rcpt', 'data', 'message']
const any: SmtpStage[] = [...beforeMail, 'mail', ...envelope]

/** A code is its subject and detail, such as 7.1; without one, or with x.0.0, the reply is bare. */
const bare = /^$/
const whatever = /^/

/** Whatever is said of the sender's host beside it: greylisting is about the recipient. */
const greylists =
  /^4.*gr[ae]y-?\s?list|^45[0-2](?!.*(?<![\w@.-])(helo|ehlo|client host|relay(ing)?)(?!\.?[\w@>-]))/is

/** The first row that fits counts. */
const rows: readonly Row[] = [
  [['auth'], /^5/, whatever, 'login'],
  [any, /^(421|503)/, whatever, 'server'], // it closes; the order of commands: a session out of step
  [any, /^53[0458]/, whatever, 'login'], // RFC 4954, 6
  [any, /^5/, /^7\.57$/, 'login'], // Exchange: not signed in

  [['rcpt'], greylists, /^(5\.3|7\.[01])?$/, 'mailbox'],
  [envelope, /^4/, /^(1\.(?![78]$)|2\.)/, 'mailbox'], // 1.7 and 1.8: the sender's address
  [any, /^4/, whatever, 'server'],

  [['mail', ...envelope], /^5/, /^(2\.3|3\.4|7\.512)$/, 'message'], // too long; Exchange: no RFC 5322
  [['mail', 'data', 'message'], /^552/, bare, 'message'],
  [any, /^5/, /^1\.(7|8|20|90)$/, 'sender'], // its address; Exchange: its From, its daily limit
  [[...beforeMail, 'mail'], /^5/, whatever, 'sender'],

  [envelope, /^5/, /^(1\.\d+|2\.[12])$/, 'recipient'],
  [['rcpt'], /^55[01]/, bare, 'recipient'],
  [envelope, /^5/, /^2\.12[12]$/, 'mailbox'], // Exchange: more than the mailbox takes in an hour
  [['rcpt'], /^552/, bare, 'mailbox'], // RFC 5321, 4.5.3.1.10: to be read as 452
  [['rcpt', 'data'], /^5/, whatever, 'sender'], // relaying, client host, HELO: judged this late

  [['message'], /^5/, /^6\./, 'message'],
  // mail system, routing, and all policies with a name but the general 7.1
  [['message'], /^5/, /^([234]\.|7\.([89]|\d\d+)$)/, 'sender'],
  [['message'], /^5/, whatever, 'either'],
]

/** Exchange's codes for recipients who do not take mail of this sender; others do. */
const ofRecipientAndSender = /^7\.(12|1[23]\d)$/

interface Verdict {
  blame: Blame
  /** The failure says nothing about other recipients. */
  scope?: 'destination' | undefined
}

/** Without a sign-in, 503 to MAIL is no session out of step. */
const loginVerdict: Verdict = { blame: 'login' }

/** Judges a reply 4xx or 5xx; undefined: it is neither. */
export function judgeReply(stage: SmtpStage, reply: string): Verdict | undefined {
  if (!/^[45]\d\d\b/.test(reply)) return undefined
  const code = enhancedCode(reply)
  const row = rows.find(
    ([stages, replies, codes]) => stages.includes(stage) && replies.test(reply) && codes.test(code),
  )
  if (row === undefined) return undefined
  const [, , , blame] = row
  const isOwn =
    (stage === 'rcpt' && blame !== 'server') ||
    blame === 'recipient' ||
    blame === 'mailbox' ||
    (stage === 'message' && ofRecipientAndSender.test(code))
  return { blame, scope: isOwn ? 'destination' : undefined }
}

/** After the reply code or, as qmail and IronPort write it, `#5.1.1` anywhere in the text. */
function enhancedCode(reply: string): string {
  const [, subject = '0', detail = '0'] =
    /^\d{3}[ -][45]\.(\d{1,3})\.(\d{1,3})\b/.exec(reply) ??
    /#[45]\.(\d{1,3})\.(\d{1,3})\b/.exec(reply) ??
    []
  return subject === '0' && detail === '0' ? '' : `${Number(subject)}.${Number(detail)}`
}

/** The fields of nodemailer's errors that are read here. */
interface SmtpFault {
  message?: string
  code?: string
  originalCode?: string
  command?: string
  response?: string
  responseCode?: number
}

interface SmtpProgress {
  /** The recipient was given. */
  isNamed: boolean
  /** The server said 354 and the message began to flow. */
  hasBegun: boolean
  /** No message was to be sent. */
  isTrial: boolean
  /** No user is configured. */
  isAnonymous: boolean
}

/**
 * Builds the SinkError of a failed dialogue; `redact` removes secrets from the server's text. A
 * message counts as accepted only after the reply to the final dot. A loss before its first byte
 * was read for sending is certainly no delivery (`unavailable`), and after any later loss the
 * outcome is unknown.
 */
export function errorFromFailure(
  error: unknown,
  progress: SmtpProgress & { isAborted: boolean },
  redact: (text: string) => string,
): SinkError {
  if (error instanceof SinkError) return error
  const fault: SmtpFault = error instanceof Error ? error : {}
  const { message = '', response = '', responseCode } = fault
  const stage = progress.hasBegun ? 'message' : stageOf(fault, progress)
  const asksForLogin = progress.isAnonymous && stage === 'mail' && response.startsWith('503')
  const verdict = asksForLogin ? loginVerdict : judgeReply(stage, response)
  const reason = verdict ? reasonByBlame[verdict.blame] : reasonWithoutReply(fault, progress)
  // a silence may be the server's, or that of a look at the recipient
  const isOwn = verdict === undefined && reason === 'unavailable' && progress.isNamed
  const tls = responseCode === undefined ? explainTlsFailure(error, 'smtps') : undefined
  const said = tls ?? redact(response || message)
  const summary =
    progress.isTrial && reason === 'unavailable'
      ? 'the mail server cannot be used now' // it may have been reached, and silent then
      : summarize(reason, progress)
  return new SinkError(reason, `${summary}${said === '' ? '' : `: ${said}`}`, {
    ...(responseCode !== undefined && { status: responseCode }),
    scope: isOwn ? 'destination' : verdict?.scope,
  })
}

/** For a reply that ends no line, or that nothing awaits, nodemailer names no command of the dialogue. */
function stageOf({ command = '', code }: SmtpFault, { isNamed }: SmtpProgress): SmtpStage {
  const [verb = ''] = command.split(' ', 1)
  if (verb === 'DATA') return code === 'EMESSAGE' ? 'message' : 'data'
  return stageByVerb[verb] ?? (isNamed ? 'rcpt' : 'greeting')
}

const stageByVerb: Record<string, SmtpStage> = { AUTH: 'auth', MAIL: 'mail', RCPT: 'rcpt' }

const summaries: Partial<Record<SinkReason, string>> = {
  recipient_refused: 'the mail server refuses the recipient',
  recipient_deferred: 'the mail server takes nothing for the recipient now',
  invalid: 'the mail server refuses the message',
  rejected: 'the mail server refuses the message or its sender',
  misconfigured: 'the mail server cannot be used as configured',
  unavailable: 'the mail server did not take the message',
  timeout: 'the mail server began to take the message and did not end in time',
  connection_lost: 'the connection was lost while the mail server took the message',
}

function summarize(reason: SinkReason, { isAnonymous }: SmtpProgress): string {
  if (reason === 'unauthorized') {
    return `the mail server ${isAnonymous ? 'wants a user and a password' : 'refuses the sign-in'}`
  }
  return summaries[reason] ?? 'the mail server failed'
}

function reasonWithoutReply(
  fault: SmtpFault,
  { hasBegun, isAborted }: { hasBegun: boolean; isAborted: boolean },
): SinkReason {
  const { code = '' } = fault
  if (hasBegun) return isAborted || code === 'ETIMEDOUT' ? 'timeout' : 'connection_lost'
  if (isAborted) return 'unavailable'
  if (isCertificateFault(fault)) return 'misconfigured'
  // refused, DNS, greeting, TLS cut, silence: nothing was accepted
  return reasonsByCode[code] ?? 'unavailable'
}

const reasonsByCode: Record<string, SinkReason> = {
  EAUTH: 'unauthorized',
  ENOAUTH: 'unauthorized',
  EENVELOPE: 'misconfigured', // an address that nodemailer itself refuses
  ECONFIG: 'misconfigured',
  EREQUIRETLS: 'misconfigured',
  ERR_ACCESS_DENIED: 'misconfigured',
}

/**
 * Node's codes for a certificate that does not verify, and OpenSSL's words for a peer that speaks no
 * TLS. Other messages may hold a host's name.
 */
function isCertificateFault({ originalCode = '', code = '', message = '' }: SmtpFault): boolean {
  const codes = `${originalCode} ${code}`
  const isTls = /CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME|ERR_SSL_|ERR_TLS_/.test(codes)
  return isTls || message.includes('wrong version number')
}
