import type { SmtpAddress } from './smtp-address.ts'

const maxLength = 160

/** Code and enhanced status code (RFC 3463): the part of a reply that quotes nothing. */
const statusCodes = /^\d{3}(?:[ -]\d\.\d{1,3}\.\d{1,3})?(?:[ -]|$)/u

/** What is shorter cannot be told from the words around it; the rest of the reply goes with it. */
const leastPiece = 4

/**
 * Makes a server's words fit for a log line: one line, printable, short, and without the password in
 * any form in which the server has seen it, should it quote it. `leaked` are the secrets that stand in
 * the mail: a server that refuses a mail may quote any piece of it, so every piece of them of four
 * characters goes, also where it is base64.
 */
export function redactorOf(
  { user, password }: SmtpAddress,
  leaked: readonly string[] = [],
): (text: string) => string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const forms = [
    base64(`\u0000${user}\u0000${password}`),
    base64(password),
    encodeURIComponent(password),
    password,
  ]
  return (text) => {
    const line = lineOf(text)
    const ours = password === '' ? line : forms.reduce(hide, line)
    const clean = leaked.length === 0 ? ours : withoutPieces(ours, leaked)
    return clean.length <= maxLength ? clean : `${clean.slice(0, maxLength - 1).toWellFormed()}…`
  }
}

function lineOf(text: string): string {
  return text.replace(/[\p{C}\p{Z}\s]+/gu, ' ').trim()
}

function withoutPieces(line: string, leaked: readonly string[]): string {
  const status = statusCodes.exec(line)?.[0] ?? ''
  const secrets = leaked.map(lineOf)
  if (secrets.some(({ length }) => length < leastPiece)) return status.replace(/[ -]$/u, '')
  const pieces = new Set([...leaked.flatMap(inBase64), ...secrets].flatMap(piecesOf))
  return status + hidePieces(line.slice(status.length), pieces)
}

function piecesOf(text: string): string[] {
  return Array.from({ length: Math.max(0, text.length - leastPiece + 1) }, (_, from) =>
    text.slice(from, from + leastPiece),
  )
}

/** Three bytes make four letters, so it reads in three ways, by where in the mail it begins. */
function inBase64(secret: string): string[] {
  const bytes = Buffer.from(secret)
  return [0, 1, 2].map((skipped) => bytes.subarray(skipped).toString('base64'))
}

function hidePieces(text: string, pieces: ReadonlySet<string>): string {
  const isHidden = new Uint8Array(text.length)
  for (let from = 0; from + leastPiece <= text.length; from += 1) {
    if (pieces.has(text.slice(from, from + leastPiece))) isHidden.fill(1, from, from + leastPiece)
  }
  let shown = ''
  for (let at = 0; at < text.length; at += 1) {
    if (isHidden[at] !== 1) shown += text.charAt(at)
    else if (isHidden[at - 1] !== 1) shown += '<secret>'
  }
  return shown
}

function hide(text: string, secret: string): string {
  return text.replaceAll(secret, '<secret>')
}
