import { fullMask, maskSecret } from '../events/mask-secret.ts'

const email = /(?<![^\s:;|,"'<>/])[^\s:;|,@"'<>/]{1,64}@[^\s:;|,@"'<>/]{1,255}/u.source
const emailPair = new RegExp(
  String.raw`(${email}(?:[ \t]{0,2}[:;|][ \t]{0,2}|,|\t))(?!\/\/)(\S+)`,
  'gu',
)
/** `https://site.example/login:user:secret` and `site.example:user:secret`, as stealers write them. */
const sitePair =
  /^((?:[a-z][a-z0-9+.-]{0,30}:\/\/)?(?=[^:/]*[.@])[^:/]+(?::\d{1,5})?(?:\/[^:]*)?:[^:]+:)(.+)$/iu
const addressWithLogin = /(:\/\/[^\s:/@]{1,100}:)([^\s/@]{1,200})(?=@)/gu
const labelled =
  /((?<![\p{L}])(?:password|passwd|passphrase|passwort|pass|pwd|pw|secret|token|api[ _-]?key|contraseña|пароль)s?["']?[ \t]{0,3}[:=][ \t]{0,3}["']?)([^\s"',;&<>]+)/giu
const authorizationHeader =
  /(authorization["']?[ \t]{0,3}[:=][ \t]{0,3}["']?(?:[a-z]{1,10} )?)(\S+)/giu
const cookieHeader = /((?:set-)?cookie["']?[ \t]{0,3}:[ \t]{0,3})([^\r\n]+)/giu
/** A line that is nothing but `user:secret`, the secret no port, time or address. */
const bareLine = /^([ \t]*[^\s:]{1,100}:)(?!\/\/|\d{1,2}(?::|$))(\S+)[ \t]*$/u
const hostAndPort = /^[ \t]*[^\s:]*\.[^\s:]+:\d{1,5}[ \t]*$/u

const identityPair =
  /^((?:[a-z][a-z0-9+.-]{0,30}:\/\/[^\s:|;,]+[\s:|;,]+[^\s:|;,]+|[^\s:|;,]*)[\s:|;,]+)(?!\/\/)(.+)$/isu

/**
 * Masks what in free text reads as a secret: the second half of `mail:secret`, `site:user:secret` and
 * `scheme://user:secret@host`, what follows "password:" and its like, cookie and authorization
 * headers. In `dump` text (a combolist, a stealer log), or where two lines or more look so, also
 * plain `user:secret` lines. The first and last character of a secret remain.
 */
export function maskText(text: string, dump = false): string {
  const shown = maskBareLines(text, dump)
    .replace(cookieHeader, `$1${fullMask}`)
    .replace(authorizationHeader, masking)
  return maskLogins(shown).replace(labelled, masking)
}

/** As `maskText`, but only what stands beside its user: `token:github` is how people write a tag. */
export function maskLogins(text: string): string {
  return text
    .replace(/\S+/gu, (word) => word.replace(sitePair, masking))
    .replace(addressWithLogin, masking)
    .replace(emailPair, masking)
}

/**
 * As `maskText`, for a field that should hold a login alone, and holds `login:secret` where a dump was
 * read badly: whatever follows the login is masked as one, whichever of `: | ; ,`, tab or space comes
 * between. An address with a scheme may stand before the login.
 */
export function maskIdentity(text: string): string {
  return maskText(text.trim().replace(identityPair, masking), true)
}

/** The service wraps matched terms in mark tags; they would split what the masks look for. */
export function withoutMarks(text: string): string {
  return text.replaceAll(/<\/?mark(?:\s[^<>]{0,200})?>/giu, '')
}

function masking(_match: string, before: string, secret: string): string {
  return before + maskSecret(secret)
}

function maskBareLines(text: string, dump: boolean): string {
  const lines = text.split('\n')
  const isPair = (line: string): boolean =>
    bareLine.test(line) && !hostAndPort.test(line) && !sitePair.test(line)
  if (lines.filter(isPair).length < (dump ? 1 : 2)) return text
  return lines.map((line) => (isPair(line) ? line.replace(bareLine, masking) : line)).join('\n')
}
