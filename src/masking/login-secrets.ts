/**
 * Secrets beside a login and without a label: `mail:secret`, `url:user:secret`,
 * `scheme://user:secret@host`, lines of a combolist.
 */
import { labelAt } from './secret-names.ts'
import { isLabelWord, looksSecret } from './labelled-secrets.ts'
import { findMatches, textBefore, type Span } from './secret-shapes.ts'

/**
 * `isDump`: the text is a combolist or a stealer log, where one bare `user:secret` line is enough.
 */
export function loginSpans(text: string, isDump = false): Span[] {
  return [
    ...pairSpans(text),
    ...addressSpans(text),
    ...(/[:;|\t]|["'],["']/u.test(text) ? lineSpans(text, isDump) : []),
  ]
}

const email = String.raw`(?<![^\s:;|,"'<>/(=])[^\s:;|,@"'<>/(=]{1,64}@[^\s:;|,@"'<>/]{1,255}`
const pair = new RegExp(
  String.raw`(${email})((?:[ \t]{0,2}[:;|][ \t]{0,2}|,|\t|[ \t]{0,2}(?:->|=>|→|/)[ \t]{0,2}|[ \t][-–—][ \t]))(?!\/\/)([^\s])`,
  'gu',
)
const address = /^["'(<]?[^\s@:]{1,64}@[^\s@:]{1,64}\.\p{L}{2,}|^(?:https?:)?\/\/|^www\./iu
const prose = /^\p{L}[\p{L}'’]*[,.]?(?:\s+\p{L}[\p{L}'’-]*[,.!?]?){2,}/u
const time = /^(?:\d{4}-\d\d-\d\d|\d\d?[./]\d\d?[./]\d{2,4}|\d\d?:\d\d)(?=[\sT:,.]|$)/u

/**
 * `mail:secret`: from the start of a line the secret reaches to its end, elsewhere it is one word.
 */
function pairSpans(text: string): Span[] {
  const spans: Span[] = []
  let done = 0
  for (const match of findMatches(text, pair)) {
    const delimiter = match[2] ?? ''
    const from = match.index + match[0].length - 1
    if (from <= done) continue
    const line = lineFrom(text, from)
    const isSpaced = /\s/u.test(delimiter) && delimiter !== '\t'
    const isLeading =
      /(?:^|[\n\r])[ \t>*•\-\d.)#["'(]{0,12}(?:(?:https?|android|ftp):\/\/[^\s]{1,300}[\s:;|,])?$/u.test(
        textBefore(text, match.index, 340),
      )
    const [word = ''] = /\S+/u.exec(line) ?? []
    if (delimiter === ':' && !isLeading && /^(?:\/|~)/u.test(word)) continue
    if (match[0].startsWith('git@') || (delimiter === ',' && /^\+?\d[\d ()-]{4,}$/u.test(word)))
      continue
    if (address.test(word) || time.test(line) || isLabelled(line)) continue
    if (/:\/\/[^\s/]{0,200}$/u.test(textBefore(text, match.index, 210))) continue
    const isSymbolic = delimiter.trim() === '/' && /\d/u.test(word) && /[!@#$%^&*]/u.test(word)
    if (isSpaced && (prose.test(line) || !(delimiter.trim() === ':' || isLeading || isSymbolic)))
      continue
    if (/[/–—-]$/u.test(delimiter.trim()) && !looksSecret(word)) continue
    const value = isLeading && !isQuotedIn(text, match.index) ? cutAtAddress(line) : trimWord(word)
    done = from + value.length
    if (value !== '') spans.push({ from, to: done })
  }
  return spans
}

function lineFrom(text: string, from: number): string {
  const line = text.slice(from, from + 4_000)
  const end = line.search(/[\n\r\u2028\u2029]/u)
  return (end === -1 ? line : line.slice(0, end)).trimEnd()
}

/** `mail | Password: …` is left to the label. */
function isLabelled(line: string): boolean {
  const [, name = ''] = /^["']?([\p{L}_-]{1,30})["']?\s?[:=]/u.exec(line) ?? []
  return name !== '' && labelAt([name]) !== null
}

function isQuotedIn(text: string, at: number): boolean {
  return /["'`(]/u.test(text[at - 1] ?? '')
}

/** Cuts off an address behind a secret, which stays readable: `mail:secret:https://…`. */
function cutAtAddress(line: string): string {
  const at = line.search(/[\s:;|,]+https?:\/\//u)
  return at > 0 ? line.slice(0, at) : line
}

function trimWord(word: string): string {
  return word.replace(/["'`)\]}>]+[,;.]?$/u, '')
}

const userinfo = /:\/\/([^\s:/@"'<>]{0,100}):([^\s"'<>]{1,4000})/gu
/** An IPv4 address, or a host with its port. */
const machine = String.raw`(?:\d{1,3}\.){3}\d{1,3}\b|[\w-]{1,63}(?:\.[\w-]{1,63}){0,6}:\d{2,5}\b`
const soleUserinfo = new RegExp(String.raw`://([^\s:/@"'<>]{4,4000})@(${machine})?`, 'gu')
const bareUserinfo = new RegExp(
  String.raw`(?<![^\s"'(])([\w.-]{1,64}):(?!//)([^\s@:"'<>]{3,4000})@(?:${machine})`,
  'gu',
)

/** `scheme://user:secret@host`; the secret may contain `/` and `@`. */
function addressSpans(text: string): Span[] {
  const inUrls = findMatches(text, userinfo).flatMap(
    ({ index, 0: whole, 1: user = '', 2: rest = '' }): Span[] => {
      const from = index + 3 + user.length + 1
      const length = secretLength(rest, index + whole.length === text.length)
      return length > 0 ? [{ from, to: from + length }] : []
    },
  )
  const tokens = findMatches(text, soleUserinfo).flatMap(
    ({ index, 1: token = '', 2: host }): Span[] =>
      isToken(token) || (host !== undefined && looksSecret(token))
        ? [{ from: index + 3, to: index + 3 + token.length }]
        : [],
  )
  const bare = findMatches(text, bareUserinfo).map(({ index, 1: user = '', 2: secret = '' }) => ({
    from: index + user.length + 1,
    to: index + user.length + 1 + secret.length,
  }))
  return [...inUrls, ...tokens, ...bare]
}

function isToken(userinfo: string): boolean {
  if (userinfo.length < 20 || userinfo.includes('.')) return false
  return /\d/u.test(userinfo) && /\p{L}/u.test(userinfo)
}

/**
 * Length of the secret in `secret@host/path?query`; 0 if it is a port. `isCut`: the text may end
 * before `@`.
 */
function secretLength(rest: string, isCut: boolean): number {
  const query = rest.search(/[?#]/u)
  const near = query === -1 ? rest : rest.slice(0, query)
  const at = near.includes('@') ? lastHostAt(near) : lastHostAt(rest)
  if (at > 0) return at
  if (!isCut || /^\d{1,5}(?:[/?#….,;]|$)/u.test(rest) || /^[^/]*\//u.test(rest)) return 0
  return rest.replace(/[….,;)\]]+$/u, '').length
}

/** Position of the last `@` that a host follows; -1 if there is none. */
function lastHostAt(text: string): number {
  for (let at = text.lastIndexOf('@'); at > 0; at = text.lastIndexOf('@', at - 1)) {
    if (/@(?:\[|[\p{L}\p{N}_])/u.test(text.slice(at, at + 2))) return at
  }
  return -1
}

/** `https://site.example/login:user:secret`, `site.example:8080:user:secret`; also `|`, `;`, `,`, tab. */
const sitePair =
  /^((?:[ \t>*•"'-]|\d{1,5}[.)] ){0,6}(?:[a-z][a-z0-9+.-]{0,30}:\/\/[^\s:|;,]{1,300}|(?=[^:/|;,\s]{0,255}[.@])[^:/|;,\s]{1,255})(?::\d{1,5})?(?:\/[^:|;,\s]{0,300})?([:|;,\t]|[ \t]{1,2}[:|][ \t]{1,2})[^:|;,\s]{1,100}\2)(?!\/\/)(.+)/iu
const siteInText =
  /(?<![^\s"'(])((?:[a-z][a-z0-9+.-]{0,30}:\/\/)?(?=[^:/\s"'()<>]{1,255}[.@])[^:/\s"'()<>]{1,255}(?::\d{1,5})?(?:\/[^:\s]{0,300})?:[^:\s]{1,100}:)([^\s]+)/giu
/** `https://site.example/login user secret`, alone on its line. */
const spacedSite = /^[ \t]*[a-z][a-z0-9+.-]{0,30}:\/\/\S{1,300}[ \t](\S{1,100})[ \t](\S+)$/iu
/** A login in an address with the rest of its word: reads each word once, however many it has. */
const addressStart = /:\/\/[^./:@]{0,100}:\S*/gu
/** `"mail";"secret"`; the secret may contain the delimiter. */
const quotedPair = /^[ \t]*(["'])[^\s"'@]{1,64}@[^\s"'@]{1,255}\1([:;|,\t])\1(.{1,4000}\1)[ \t]*$/u
/** `1.2.3.4:3389@DOMAIN\user;secret`. */
const desktopLine = /^[ \t]*(?:\d{1,3}\.){3}\d{1,3}:\d{2,5}@[^\s;:]{1,100}[;:](\S.*)/u
/** A line that is only `user:secret`, where the secret is no port, time or address. */
const bareLine =
  /^([ \t]*(?:[>*•-] |\d{1,5}[.)] )?([^\s:]{1,100}):)(?!\/\/|\d{1,2}(?::|$)|[ \t])(\S.*)/u
const dumpLine =
  /^([ \t]*(?:[>*•-] |\d{1,5}[.)] )?([^\s:;|]{1,100})[:;|\t])(?!\/\/|\d{1,2}(?::|$)|[ \t])(\S.*)/u
/** A line of JSON, where labels tell the secret from the login. */
const labelledRecord = /^\s*[[{].*"(?:pass|passw|password|passwd|pwd|pw|secret)"\s*:/iu
const hostAndPort = /^[ \t]*(?=[^\s:.]*\.[^\s:])[^\s:]+:\d{1,5}(?:\/[^\s:;|]*)?[ \t]*$/u
/** MAC or IPv6 address. */
const machineAddress =
  /^[ \t]*(?:(?:[\da-f]{2}:){5}[\da-f]{2}|(?:[\da-f]{1,4}:){7}[\da-f]{1,4}|(?=[\da-f:]{0,40}::)[\da-f:]{3,40})[ \t]*$/iu
const commonUsers =
  /^(?:admin|administrator|administrador|root|user|test|guest|postgres|mysql|sa|oracle|ubuntu|pi|support|operator|service|tomcat|manager|cisco|ftpuser|backup|demo)$/iu
const portRecord = /^[^\s:]{1,255}:\d{2,5}:[^\s:]{1,100}:[^\s:]{1,100}:(.+)/u

function lineSpans(text: string, isDump: boolean): Span[] {
  const spans: Span[] = []
  const bare: { span: Span; isSure: boolean; hasSpaces: boolean }[] = []
  let at = 0
  for (const line of text.split(/[\n\r\u2028\u2029]/u)) {
    const value = line.length <= 20_000 ? line.trimEnd() : ''
    const site = /[.@]|:\/\//u.test(value) ? siteSecret(value) : null
    if (site !== null) spans.push({ from: at + value.length - site.length, to: at + value.length })
    const [, before = '', user = '', secret = ''] =
      site === null && !labelledRecord.test(value)
        ? ((isDump ? dumpLine : bareLine).exec(value) ?? [])
        : []
    if (secret !== '' && !isMachine(value) && !isFormat(user, secret)) {
      const from = at + before.length
      bare.push({
        span: { from, to: from + secret.trimEnd().length },
        isSure: isDump || (commonUsers.test(user) && !/\s/u.test(secret) && secret.length >= 4),
        hasSpaces: /\s/u.test(secret),
      })
    }
    at += line.length + 1
  }
  const isList = bare.filter(({ hasSpaces }) => !hasSpaces).length >= 2
  const pairs = bare
    .filter(
      ({ isSure, hasSpaces, span }) =>
        isSure || (isList && (!hasSpaces || looksSecret(text.slice(span.from, span.to)))),
    )
    .map(({ span }) => span)
  const inText = findMatches(text, siteInText).flatMap(
    ({ index, 1: before = '', 2: secret = '' }): Span[] => {
      const value = trimWord(secret)
      const isSecret =
        value !== '' && !/^\d{1,2}(?::\d\d)?$/u.test(value) && !value.startsWith('//')
      return isSecret
        ? [{ from: index + before.length, to: index + before.length + value.length }]
        : []
    },
  )
  return [...spans, ...pairs, ...inText]
}

/** The secret that ends a line such as `url:user:secret` or `host:5432:database:user:secret`. */
function siteSecret(line: string): string | null {
  const [, quote = '', delimiterOfPair = '', quoted = ''] = quotedPair.exec(line) ?? []
  const isPair = quoted !== '' && (delimiterOfPair !== ',' || looksSecret(quoted))
  if (isPair && !quoted.includes(`${quote}${delimiterOfPair}${quote}`)) return quoted
  const record = desktopLine.exec(line)?.[1] ?? portRecord.exec(line)?.[1]
  if (record !== undefined) return record
  const [, spacedUser = '', spacedSecret = ''] = spacedSite.exec(line) ?? []
  if (looksSecret(spacedSecret) && /@|\d/u.test(spacedUser)) return spacedSecret
  const [, , delimiter = '', secret = ''] = sitePair.exec(line) ?? []
  if (secret === '' || address.test(secret) || time.test(secret)) return null
  if (delimiter === ',' && /,/u.test(secret)) return null
  // scheme://user:secret@host with a colon in the secret: addressSpans finds it
  if (findMatches(line, addressStart).some(([start]) => start.includes('@'))) return null
  return /^\d{1,5}$/u.test(secret) && /^\s*[^\s/]+:\d+:/u.test(line) ? null : secret.trimEnd()
}

/** Words before the colon of a digest, an address or a link. */
const notLogins = /^(?:md5|sha-?\d{1,3}|imphash|ssdeep|tlsh|mailto|tel|urn|magnet)$/iu
function isMachine(line: string): boolean {
  return hostAndPort.test(line) || machineAddress.test(line)
}

/** `login:password` is the format line of a list; `Title:words` and `Host:name` hold no secret. */
function isFormat(user: string, secret: string): boolean {
  if (notLogins.test(user) || (/^[a-z]$/iu.test(user) && /^[\\/]/u.test(secret))) return true
  const label = labelAt([user])
  if (label !== null && !commonUsers.test(user)) return true
  return label !== null && isLabelWord(secret)
}
