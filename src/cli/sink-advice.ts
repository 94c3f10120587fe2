import type { SinkReason } from '../sinks/sink.ts'

/** What an operator does about each reason for which a send fails. */
const adviceByReason: Record<SinkReason, string> = {
  rate_limited: 'The other side asks for fewer messages: lower the limit of this sink, or wait.',
  unavailable:
    'Check the host, the port and the network; the other side may also be down just now.',
  timeout: 'No answer came in time: look whether the message arrived, then check the other side.',
  connection_lost: 'The connection broke: look whether the message arrived, then try again.',
  rejected: 'The other side refuses the request as it is: check the path of the address.',
  invalid: 'The other side takes no such message: check that the address is meant for this sink.',
  unauthorized: 'Check the user, the password or the secret of this sink.',
  gone: 'The address is no more: make a new one on the other side and put it into the configuration.',
  recipient_refused: 'The mail server takes nothing for this recipient: correct the address in to.',
  redirected: 'The address has moved: put the final one into the configuration.',
  forbidden_address:
    'The address is private or loopback: if it is meant, set allow_private: true on this sink.',
  misconfigured: 'Check TLS, the certificate and the secret files of this sink.',
}

export function adviceFor(reason: SinkReason): string {
  return adviceByReason[reason]
}
