import type { SmtpAddress } from './smtp-address.ts'

const maxLength = 160

/**
 * Makes a server's words fit for a log line: one line, printable, short, and without the password in
 * any form in which the server has seen it, should it quote it.
 */
export function redactorOf({ user, password }: SmtpAddress): (text: string) => string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const forms = [
    base64(`\u0000${user}\u0000${password}`),
    base64(password),
    encodeURIComponent(password),
    password,
  ]
  return (text) => {
    const line = text.replace(/[\p{C}\p{Z}\s]+/gu, ' ').trim()
    const clean = password === '' ? line : forms.reduce(hide, line)
    return clean.length <= maxLength ? clean : `${clean.slice(0, maxLength - 1).toWellFormed()}…`
  }
}

function hide(text: string, secret: string): string {
  return text.replaceAll(secret, '<secret>')
}
