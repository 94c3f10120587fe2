/** Reads as much of a mail as a test asks about: headers, subject, text, HTML, attachments. */
export interface ParsedMail {
  /** Names in lower case, unfolded; a repeated header is joined by a comma. */
  headers: Record<string, string>
  subject: string
  text: string
  html: string
  attachments: { name: string; content: string }[]
}

export function parseMail(message: string): ParsedMail {
  const { headers } = splitPart(message)
  const mail: ParsedMail = {
    headers,
    subject: decodeWords(headers['subject'] ?? ''),
    text: '',
    html: '',
    attachments: [],
  }
  readPart(message, mail)
  return mail
}

function readPart(part: string, mail: ParsedMail): void {
  const { headers, body } = splitPart(part)
  const type = headers['content-type'] ?? 'text/plain'
  const boundary = /boundary="?([^";]+)"?/i.exec(type)?.[1]
  if (boundary !== undefined) {
    const inner = `\r\n${body}`.split(`\r\n--${boundary}`).slice(1)
    for (const each of inner.filter((text) => !text.startsWith('--'))) {
      readPart(each.replace(/^[ \t]*\r\n/, ''), mail)
    }
    return
  }
  const content = decodeBody(body, headers['content-transfer-encoding'] ?? '7bit')
  const name = /filename="?([^";]+)"?/i.exec(headers['content-disposition'] ?? '')?.[1]
  if (name !== undefined) mail.attachments.push({ name: decodeWords(name), content })
  else if (/^text\/html/i.test(type)) mail.html += content
  else mail.text += content
}

function splitPart(part: string): { headers: Record<string, string>; body: string } {
  const end = part.indexOf('\r\n\r\n')
  const head = end === -1 ? part : part.slice(0, end)
  const headers: Record<string, string> = {}
  for (const line of head.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).trim().toLowerCase()
    const value = line.slice(colon + 1).trim()
    if (colon > 0) headers[name] = name in headers ? `${headers[name]}, ${value}` : value
  }
  return { headers, body: end === -1 ? '' : part.slice(end + 4) }
}

function decodeBody(body: string, encoding: string): string {
  switch (encoding.toLowerCase()) {
    case 'base64':
      return Buffer.from(body, 'base64').toString('utf8')
    case 'quoted-printable':
      return decodeQuoted(body.replaceAll(/=\r?\n/g, ''))
    default:
      return body
  }
}

/** Encoded words of a header (RFC 2047), in UTF-8 as nodemailer writes them. */
function decodeWords(text: string): string {
  return text
    .replaceAll(/\?=\s+=\?/g, '?==?')
    .replaceAll(/=\?utf-8\?([bq])\?([^?]*)\?=/gi, (_word, kind: string, coded: string) =>
      kind.toLowerCase() === 'b'
        ? Buffer.from(coded, 'base64').toString('utf8')
        : decodeQuoted(coded.replaceAll('_', ' ')),
    )
}

function decodeQuoted(text: string): string {
  const bytes = text.replaceAll(/=([0-9a-f]{2})/gi, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
