/**
 * What a failed hand-over means. A message counts as accepted only after the server's reply to the
 * final dot, so a loss before the first byte of the message was read for sending is certainly no
 * delivery (`unavailable`), and any loss after it is an answer lost.
 */
import { SinkError, type SinkReason } from '../sink.ts'

/** What nodemailer puts on its errors, as far as it is read here. */
export interface SmtpFault {
  message: string
  code: string
  originalCode: string
  command: string
  response: string
  responseCode: number | undefined
}

export interface SendProgress {
  /** The server said 354 and the message began to flow. */
  hasBodyStarted: boolean
  isAborted: boolean
}

/** Gives the SinkError of a failed send; `redact` takes secrets out of the server's words. */
export function smtpFailure(
  error: unknown,
  progress: SendProgress,
  redact: (text: string) => string,
): SinkError {
  const fault = readFault(error)
  const reason = reasonOf(fault, progress)
  const said = redact(fault.response || fault.message)
  const summary = summaries[reason] ?? 'the mail server failed'
  const code = fault.responseCode
  return new SinkError(
    reason,
    said === '' ? summary : `${summary}: ${said}`,
    code === undefined ? {} : { status: code },
  )
}

const summaries: Partial<Record<SinkReason, string>> = {
  recipient_refused: 'the mail server refuses the recipient',
  unauthorized: 'the mail server refuses the user or the password',
  invalid: 'the mail server refuses the message',
  misconfigured: 'the mail server cannot be used as configured',
  unavailable: 'the mail server did not take the message',
  timeout: 'the mail server took the message and did not answer in time',
  connection_lost: 'the connection was lost while the mail server took the message',
}

function readFault(error: unknown): SmtpFault {
  const fields = (error instanceof Error ? error : {}) as Partial<Record<keyof SmtpFault, unknown>>
  const text = (name: keyof SmtpFault): string => {
    const value = fields[name]
    return typeof value === 'string' ? value : ''
  }
  return {
    message: text('message'),
    code: text('code'),
    originalCode: text('originalCode'),
    command: text('command'),
    response: text('response'),
    responseCode: typeof fields.responseCode === 'number' ? fields.responseCode : undefined,
  }
}

function reasonOf(fault: SmtpFault, progress: SendProgress): SinkReason {
  const reply = fault.responseCode ?? 0
  if (reply >= 500 && reply < 600) return reasonOfRefusal(fault, reply)
  if (reply >= 400 && reply < 500) return 'unavailable'
  if (progress.hasBodyStarted) {
    return progress.isAborted || fault.code === 'ETIMEDOUT' ? 'timeout' : 'connection_lost'
  }
  if (progress.isAborted) return 'unavailable'
  return reasonBeforeBody(fault)
}

const authenticationReplies = new Set([530, 534, 535, 538]) // RFC 4954, section 6

function reasonOfRefusal(fault: SmtpFault, reply: number): SinkReason {
  if (fault.code === 'EAUTH' || authenticationReplies.has(reply)) return 'unauthorized'
  if (reply === 503) return 'unavailable' // wrong order of commands: the session, not the message
  if (fault.command === 'STARTTLS') return 'misconfigured'
  if (fault.command === 'RCPT TO') return 'recipient_refused'
  if (fault.command === 'MAIL FROM') return reply === 552 ? 'invalid' : 'misconfigured'
  if (fault.command === 'DATA')
    return isAboutMailbox(fault.response) ? 'recipient_refused' : 'invalid'
  return 'unavailable'
}

/** RFC 3463: 5.1.x is the address, 5.2.x the mailbox, except 5.2.3, which is the message's length. */
function isAboutMailbox(response: string): boolean {
  return /^\d{3}[ -]5\.(?:1\.\d+|2\.(?!3\b)\d+)\b/.test(response)
}

function reasonBeforeBody(fault: SmtpFault): SinkReason {
  if (isCertificateFault(fault)) return 'misconfigured'
  switch (fault.code) {
    case 'EAUTH':
    case 'ENOAUTH':
      return 'unauthorized'
    case 'EENVELOPE': // an address that nodemailer itself refuses
    case 'ECONFIG':
    case 'EREQUIRETLS':
    case 'ERR_ACCESS_DENIED':
      return 'misconfigured'
    default: // refused, DNS, greeting, TLS cut, pool closed: nothing was accepted
      return 'unavailable'
  }
}

/** Node's words for a certificate that does not verify, and OpenSSL's for a peer that speaks no TLS. */
function isCertificateFault({ originalCode, code, message }: SmtpFault): boolean {
  const words = `${originalCode} ${code} ${message}`
  return /CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME|ERR_SSL_|ERR_TLS_|wrong version number/i.test(words)
}
