/** Makes a mail server's words fit for logs, errors and receipts. */
import { hideSecret } from '../../lib/config/secret.ts'

const maxLength = 160

/** Code and enhanced status code (RFC 3463): the part of a reply that quotes nothing. */
const statusCodes = /^\d{3}(?:[ -]\d\.\d{1,3}\.\d{1,3})?(?=[ -]|$)/u

/** A token is long: shorter runs of it stand in other words by chance. */
const tokenPieceLength = 12

interface RedactedLogin {
  user: string
  password: string
  token?: string | undefined
}

/**
 * Makes a server's text fit for a log line: one line, printable, short. It is without the password
 * or the token in any form that the server has seen. A server may quote any part of a mail, however
 * encoded. So of a mail that shows leaked secrets, only the status codes of its reply are told.
 */
export function createRedactor(
  { user, password, token = '' }: RedactedLogin,
  showsSecrets = false,
): (text: string) => string {
  const plain = `\u0000${user}\u0000${password}`
  const bearer = `user=${user}\u0001auth=Bearer ${token}\u0001\u0001`
  const forms = [plain, password].map((text) => Buffer.from(text).toString('base64'))
  const quoted = [...forms, encodeURIComponent(password), password, toOneLine(password)]
  return (text) => {
    const line = toOneLine(text)
    if (showsSecrets) return `${statusCodes.exec(line)?.[0] ?? ''} ${withheld}`.trimStart()
    const ours = password.trim() === '' ? line : quoted.reduce(hide, line)
    const clean =
      token === ''
        ? ours
        : [token, Buffer.from(bearer).toString('base64')].reduce(
            (said, secret) => hideSecret(said, secret, tokenPieceLength),
            ours,
          )
    return clean.length <= maxLength ? clean : `${clean.slice(0, maxLength - 1).toWellFormed()}…`
  }
}

const withheld = '(the rest may quote the leaked secret)'

function toOneLine(text: string): string {
  return text.replace(/[\p{C}\p{Z}\s]+/gu, ' ').trim()
}

function hide(text: string, secret: string): string {
  return text.replaceAll(secret, '<secret>')
}
