/** Makes a mail server's words fit for logs, errors and receipts. */
const maxLength = 160

/** Code and enhanced status code (RFC 3463): the part of a reply that quotes nothing. */
const statusCodes = /^\d{3}(?:[ -]\d\.\d{1,3}\.\d{1,3})?(?:[ -]|$)/u

/**
 * A shorter secret cannot be told apart from the words around it: then the whole rest of the reply
 * is removed.
 */
const minPieceLength = 4

/** A token is long: shorter runs of it stand in other words by chance. */
const tokenPieceLength = 12

/**
 * Makes a server's text fit for a log line: one line, printable, short, and without the password in
 * any form that the server has seen. `leaked` are the secrets in the mail: a server that refuses a
 * mail may quote any part of it, so every run of four of their characters is removed, in base64
 * too; likewise of a token, every run of twelve.
 */
export function createRedactor(
  { user, password, token }: { user: string; password: string; token?: string | undefined },
  leaked: readonly string[] = [],
): (text: string) => string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const collapsed = toOneLine(password)
  const forms = [
    base64(`\u0000${user}\u0000${password}`),
    base64(password),
    encodeURIComponent(password),
    password,
    collapsed,
  ]
  return (text) => {
    const line = toOneLine(text)
    const ours = collapsed === '' ? line : forms.reduce(hide, line)
    const known = token === undefined ? ours : withoutPieces(ours, [token], tokenPieceLength)
    const clean = leaked.length === 0 ? known : withoutPieces(known, leaked, minPieceLength)
    return clean.length <= maxLength ? clean : `${clean.slice(0, maxLength - 1).toWellFormed()}…`
  }
}

function toOneLine(text: string): string {
  return text.replace(/[\p{C}\p{Z}\s]+/gu, ' ').trim()
}

function withoutPieces(line: string, leaked: readonly string[], pieceLength: number): string {
  const status = statusCodes.exec(line)?.[0] ?? ''
  const secrets = leaked.map(toOneLine)
  if (secrets.some(({ length }) => length < pieceLength)) return status.replace(/[ -]$/u, '')
  const pieces = new Set(
    [...leaked.flatMap(base64Forms), ...secrets].flatMap((text) => splitPieces(text, pieceLength)),
  )
  return status + hidePieces(line.slice(status.length), pieces, pieceLength)
}

function splitPieces(text: string, pieceLength: number): string[] {
  return Array.from({ length: Math.max(0, text.length - pieceLength + 1) }, (_, from) =>
    text.slice(from, from + pieceLength),
  )
}

/**
 * Base64 encodes three bytes as four letters, so a secret has three forms, by where in the mail it
 * begins.
 */
function base64Forms(secret: string): string[] {
  const bytes = Buffer.from(secret)
  return [0, 1, 2].map((skipped) => bytes.subarray(skipped).toString('base64'))
}

function hidePieces(text: string, pieces: ReadonlySet<string>, pieceLength: number): string {
  const isHidden = new Uint8Array(text.length)
  for (let from = 0; from + pieceLength <= text.length; from += 1) {
    if (pieces.has(text.slice(from, from + pieceLength))) isHidden.fill(1, from, from + pieceLength)
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
