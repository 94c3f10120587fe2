/**
 * Masks secrets: in text by their shape, label or neighbours, in structured values also by the name
 * of their field. All that is stored, sent or printed passes through here. Masking is idempotent.
 */
import type { EventDetail } from '../event.ts'
import { isLabelWord, isWindowsSid, labelledSpans, looksSecret } from './labelled-secrets.ts'
import { isPlaceholder } from './placeholders.ts'
import { loginSpans } from './login-secrets.ts'
import { fullMask, maskSecret } from './mask-secret.ts'
import { recordSpans } from './record-secrets.ts'
import { type Treatment, findTreatment } from './secret-names.ts'
import { findMatches, shapeSpans, type Span } from './secret-shapes.ts'

/**
 * Masks secrets in free text, all but their first and last character; hosts, logins and addresses
 * stay. With `isDump` (a combolist, a stealer log), or if two or more lines look like one, plain
 * `user:secret` lines are masked, too. Mark tags are removed, since they would split a secret.
 */
export function maskText(text: string, isDump = false): string {
  return untilStable(removeInvisible(text), (part) => spansIn(part, isDump))
}

function spansIn(text: string, dump: boolean): Span[] {
  return [
    ...shapeSpans(text),
    ...labelledSpans(text),
    ...spokenSpans(text),
    ...loginSpans(text, dump),
    ...recordSpans(text),
  ]
}

/** As `maskText`, for a tag: `token:github` is a usual tag and stays. */
export function maskTag(text: string): string {
  return untilStable(removeInvisible(text), (part) => [
    ...shapeSpans(part),
    ...labelledSpans(part, true),
    ...loginSpans(part),
  ])
}

const identityPair =
  /^((?:[a-z][a-z0-9+.-]{0,30}:\/\/[^\s:|;,]+[\s:|;,]+[^\s:|;,]+|[^\s:|;,]*)[\s:|;,]+)(?!\/\/)(.+)$/isu

/**
 * As `maskText`, for a field that should hold only a login, but holds `login:secret` where a dump
 * was parsed badly: everything behind the login and its delimiter (one of `: | ; ,`, tab or space)
 * is masked as one secret. An address with a scheme may come before the login.
 */
export function maskIdentity(text: string): string {
  return untilStable(removeInvisible(text).trim(), (part) => {
    const before = identityPair.exec(part)?.[1]?.length
    return [
      ...(before === undefined ? [] : [{ from: before, to: part.length }]),
      ...spansIn(part, true),
    ]
  })
}

/** Removes mark tags and invisible characters within words (`pass\u00ADword`). */
function removeInvisible(text: string): string {
  return withoutMarks(text).replaceAll(
    /(?<=[\p{L}\p{N}])[\u00AD\u200B\u2060\uFEFF]+(?=[\p{L}\p{N}])/gu,
    '',
  )
}

/** A mask may uncover another structure, so text is masked until it is stable. */
const maxRounds = 6

function untilStable(text: string, find: (text: string) => Span[]): string {
  let current = text
  for (let round = 0; round < maxRounds; round += 1) {
    const masked = maskSpans(current, find(current))
    if (masked === current) break
    current = masked
  }
  return current
}

/** Masks each span; overlapping ones are masked as one. */
function maskSpans(text: string, spans: readonly Span[]): string {
  const merged: Span[] = []
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    const last = merged.at(-1)
    if (last === undefined || span.from >= last.to) merged.push({ ...span })
    else {
      last.to = Math.max(last.to, span.to)
      last.hidden = last.hidden === true || span.hidden === true
    }
  }
  let at = 0
  const parts: string[] = []
  for (const { from, to, hidden } of merged) {
    parts.push(text.slice(at, from), hidden ? fullMask : maskSecret(text.slice(from, to)))
    at = to
  }
  return parts.join('') + text.slice(at)
}

/** Shorter secrets occur in unrelated words. */
const minKnownLength = 4

/**
 * Returns a function that masks these secrets wherever a text contains them literally, untrimmed or
 * trimmed, after removing mark tags from both. Secrets of fewer than 4 characters are left to the
 * other masks.
 */
export function maskKnown(secrets: readonly string[]): (text: string) => string {
  const forms = secrets
    .flatMap((secret) => [secret, withoutMarks(secret)])
    .flatMap((secret) => [secret, secret.trim()])
    .filter((secret) => secret.length >= minKnownLength)
    .toSorted((a, b) => b.length - a.length)
  const distinct = [...new Set(forms)]
  return (text) =>
    distinct.reduce(
      (left, secret) => left.replaceAll(secret, () => maskSecret(secret)),
      withoutMarks(text),
    )
}

const markTag = /^<\/?mark(?:\s[^<>]*)?>$/iu
const maxTagLength = 210

/**
 * Removes the mark tags that the API puts around matched terms: they would split secrets. Also tags
 * within tags.
 */
export function withoutMarks(text: string): string {
  if (!/<\/?m/iu.test(text)) return text
  const pieces: string[] = []
  const opens: number[] = []
  for (const piece of text.split(/(?<=>)|(?=<)/u)) {
    if (piece.startsWith('<')) opens.push(pieces.length)
    pieces.push(piece)
    if (!piece.endsWith('>')) continue
    const open = opens.pop()
    const isNear = open !== undefined && pieces.length - open <= maxTagLength
    const tag = isNear ? pieces.slice(open).join('') : ''
    if (open !== undefined && tag.length <= maxTagLength && markTag.test(tag)) pieces.length = open
  }
  return pieces.join('')
}

/**
 * What is kept of a full event: levels, code units per text, and code units of all keys and values.
 */
const detailLimits = { depth: 64, text: 20_000, all: 200_000 } as const

/**
 * Masks every extract by its field's name and its text. `dump`: as `isDump` of `maskText`. `uid`:
 * of the event; it says whether the event is a cookie, whose own fields are called little more than
 * `value`.
 */
export function maskHighlights(
  highlights: Readonly<Record<string, readonly string[]>>,
  dump = false,
  uid = '',
): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(highlights).map(([field, extracts]) => {
      const treatment = findTreatment(field, eventTreatment(uid))
      return [maskKey(field), extracts.map((extract) => maskLeaf(extract, treatment, dump))]
    }),
  )
}

/**
 * Returns a copy of the `data` of the event `uid` with secrets masked. What exceeds the limits is
 * replaced by "…" or left out.
 */
export function maskDetail(data: Readonly<Record<string, unknown>>, uid = ''): EventDetail {
  const [index = '', source = ''] = uid.split('/')
  const dump = isDump(`${index} ${source}`)
  return maskObject(data, { ...rootPlace(), treatment: eventTreatment(uid), dump })
}

/**
 * Whether type or source name a combolist or stealer log, where a bare `user:secret` is a login.
 */
export function isDump(about: string): boolean {
  return /stealer|credential|combo|(?<!ransom)leak/iu.test(about)
}

/** The first part of a uid is the event's kind. */
function eventTreatment(uid: string): Treatment {
  return /^cookies?\//iu.test(uid) ? 'cookie' : 'shown'
}

/** As `maskDetail`, for any value that the API sent. */
export function maskSecrets(value: unknown): unknown {
  return maskValue(value, rootPlace())
}

function rootPlace(): Place {
  return { treatment: 'shown', dump: false, depth: 0, budget: { left: detailLimits.all } }
}

interface Place {
  treatment: Treatment
  dump: boolean
  depth: number
  budget: { left: number }
}

function maskValue(value: unknown, place: Place): unknown {
  if (typeof value === 'string') return maskString(value, place)
  if (typeof value === 'number') return maskNumber(value, place)
  if (typeof value !== 'object' || value === null) return value
  if (place.depth >= detailLimits.depth) return '…'
  const below = { ...place, depth: place.depth + 1 }
  return Array.isArray(value) ? maskArray(value, below) : maskObject(value, below)
}

function maskString(text: string, { treatment, dump, budget }: Place): string {
  const room = Math.min(detailLimits.text, budget.left)
  budget.left -= Math.min(text.length, room)
  return maskLeaf(cut(text, room), treatment, dump)
}

function maskNumber(value: number, { treatment, budget }: Place): number | string {
  budget.left -= 8
  return treatment === 'shown' || treatment === 'of cookie' ? value : fullMask
}

function maskArray(values: readonly unknown[], place: Place): unknown[] {
  const kept: unknown[] = []
  for (const value of values) {
    place.budget.left -= 1
    if (place.budget.left <= 0) break
    kept.push(maskValue(value, place))
  }
  return kept
}

function maskObject(object: object, place: Place): Record<string, unknown> {
  const isNamedSecret = hasSecretName(object)
  const kept: [string, unknown][] = []
  for (const [key, value] of Object.entries(object)) {
    place.budget.left -= key.length + 1
    if (place.budget.left <= 0) break
    const treatment = findTreatment(key, place.treatment)
    const isSecretValue = isNamedSecret && treatment === 'shown' && valueKey.test(key)
    kept.push([
      maskKey(key),
      maskValue(value, { ...place, treatment: isSecretValue ? 'masked' : treatment }),
    ])
  }
  return Object.fromEntries(kept)
}

const namingKey = /^(?:name|key|field|label|type|id|title)$/iu
const valueKey = /^(?:value|val|content|text|data|answer)$/iu

/** Whether the object names a secret, as `{name: 'password', value: …}` in autofill data. */
function hasSecretName(object: object): boolean {
  return Object.entries(object).some(
    ([key, value]) =>
      namingKey.test(key) && typeof value === 'string' && findTreatment(value) !== 'shown',
  )
}

/** A key is `mail:secret` where a list was made a map. Short plain names are not checked. */
function maskKey(key: string): string {
  return /[\s:=@|;,<]|.{24}/su.test(key) ? maskText(key) : key
}

function maskLeaf(marked: string, treatment: Treatment, dump: boolean): string {
  if (treatment === 'hidden' || treatment === 'cookie') return fullMask
  const text = withoutMarks(marked)
  if (treatment === 'masked') return isWindowsSid(text) ? text : maskSecret(text)
  return maskText(text, dump)
}

/** Returns well-formed text of at most `max` code units, with an ellipsis if it was longer. */
export function cut(text: string, max: number): string {
  const wellFormed = text.toWellFormed()
  if (wellFormed.length <= max) return wellFormed
  return `${wellFormed.slice(0, Math.max(max, 0)).replace(/[\uD800-\uDBFF]$/u, '')}…`
}

const spokenLabel =
  /(?<![\p{L}\p{N}_/.])(?:-{1,2})?((?:[\w-]{1,30}[-_])?(?:password|passwd|passphrase|pass|pwd|passwort|kennwort|contraseña|senha|пароль|wachtwoord|密码|密碼|口令|パスワード|비밀번호|secret|token|api-?key|requirepass|masterauth)) (?:[0-9] )?(?=(\S+))/giu
/** A last group is unbounded, so that no rest of a long secret stays visible. */
const commandPatterns = [
  /\b(?:creds?|credentials|login|logins|account|access)(?: is)?[: ]{1,3}[\w.@\\-]{1,60}[:|]([^\s:|/]\S{2,})/giu,
  /\bhtpasswd\b[^\n]{0,100}?\s-\w{0,4}b\w{0,4}\s\S{1,100}\s\S{1,60}\s(\S+)/gu,
  /\becho\s["']?([^\s"'|]{3,1000})["']?\s*\|\s*sudo\s/gu,
  /\bauth\s?=\s?\(\s?["'][^"'\n]{0,100}["'],\s?["']((?:[^"\\\n]|\\.){1,1000}?)["']\)/giu,
  /\b(?:identified (?:with \S+ )?(?:by|as)|password|using) (?:password )?'((?:[^'\n]|''|\\'){1,1000})'/giu,
  /\bmysql\w*\b[^\n]{0,200}?\s-p([^\s'"-][^\s'"]{2,})/gu,
  /\b(?:sshpass|docker login|mysql\w*|mongo\w*|plink|pscp|psexec\S*|kinit|htpasswd|unrar|unzip|7z)\b[^\n]{0,200}?\s-(?:p|P|w)\s?(?:'([^'\n]{1,1000})'|"([^"\n]{1,1000})"|([^\s'"-]\S{2,}))/gu,
  /\bcurl\b[^\n]{0,300}?\s(?:-u|--user|--proxy-user)[ =]?(?:["'][^\s:"']{1,100}:(?:([^"'\n]{1,1000})(?=["'])|([^\s"']+))|[^\s:"']{1,100}:([^\s"']+))/gu,
  /\b(?:smbclient|rpcclient|smbmap|net rpc)\b[^\n]{0,200}?-U\s?["']?[^\s%"']{1,100}%([^\s"']+)/gu,
  /\bredis-cli\b[^\n]{0,200}?\s-a\s(\S+)/gu,
  /\bldap\w+\b[^\n]{0,300}?\s-w\s(\S+)/gu,
  /\bnet use\b[^\n]{0,200}?\/u(?:ser)?:\S{1,100}\s([^\s/]\S+)/giu,
  /\/u:\S{1,100}\s+\/p:(\S+)/giu,
  /\b(?:sqlplus\s|jdbc:oracle:\w{1,10}:)[^\s/]{1,60}\/([^\s@/]{1,1000})@/giu,
  /[?&](?:sig|signature|x-(?:amz|goog)-signature)=([^&\s"'<>]{16,})/giu,
  /"auth\\{0,3}"\s?:\s?\\{0,3}"([A-Za-z0-9+/]{11,4000}[A-Za-z0-9+/=]=?)\\{0,3}"/gu,
  /\bUnseal Key \d{1,2}: (\S{20,})/gu,
  /\b(?:getConnection|mysqli?_connect|new mysqli|new PDO)\s?\(\s?["'][^"'\n]{0,200}["'],\s?["'][^"'\n]{0,100}["'],\s?["']((?:[^"'\\\n]|\\.){1,1000})["']/gu,
  /\b(?:NetworkCredential|UsernamePasswordCredentials|PasswordAuthentication|HTTPBasicAuth|login)\s?\(\s?["'][^"'\n]{1,100}["'],\s?["']((?:[^"'\\\n]|\\.){1,1000})["']/gu,
  /\bConvertTo-SecureString\s(?:-String\s)?["']?([^\s"'$-][^\s"']{2,})/giu,
  /\bsnmp-server community (\S+)/giu,
  /(?<![\p{L}\p{N}_/.-])(?:admin|administrator|administrador|root|sa|postgres|oracle)\s?[:/]\s?(?=[^\s]{0,60}\d)(?=[^\s]{0,60}[!@#$*^])([\p{L}\p{N}][^\s/]{4,60})(?=[\s,;)]|$)/giu,
  /^[ \t]*(?:password|passwort|kennwort|contraseña|senha|mot de passe|пароль|wachtwoord)[ \t]*\r?\n[ \t]*(?=\S{0,60}\d|\S{0,60}[!#$%^&*])(\p{L}\S{4,60})[ \t]*$/gimu,
  /\blogin\s\S{1,100}\s+password\s(\S+)/giu,
  /\bAUTH (?:PLAIN|LOGIN|\w+)? ?([A-Za-z0-9+/]{16,4000}={0,2})(?![\w/])/gu,
  /\b(?:Bearer|Basic|Token) ([A-Za-z0-9._~+/=-]{16,})/gu,
  /(?:^|\s)(?:[Uu]|[Ll]|[Uu]ser|[Ll]ogin)\s?[:=]\s?\S{1,100}\s{1,4}[Pp]\s?[:=]\s?([^\s]+)/gu,
]

/**
 * Secrets behind a label and a mere space, in commands, headers and prose: the next word, if it
 * looks like a secret; and secrets in the arguments of known commands and calls.
 */
export function spokenSpans(text: string): Span[] {
  const spans = findMatches(text, spokenLabel).flatMap(
    ({ index, 0: label, 2: word = '' }): Span[] => {
      const from = index + label.length
      const isOption = label.startsWith('-')
      const [bare = ''] = /^[^\s"'`,;)\]}]+/u.exec(word.replace(/^["'`]/u, '')) ?? []
      const quote = /^["'`]/u.test(word) ? 1 : 0
      if (bare === '' || /^(?:[-:=]|[\w-]+=|\w*char\()/iu.test(bare)) return []
      if (!looksSecret(bare) && !(isOption && bare.length >= 4)) return []
      if (isPlaceholder(bare)) return []
      return [{ from: from + quote, to: from + quote + bare.length }]
    },
  )
  const commands = commandPatterns.flatMap((pattern) =>
    findMatches(text, pattern).flatMap((match): Span[] => {
      const secret = match.slice(1).find((group) => group !== undefined)
      if (secret === undefined || isPlaceholder(secret) || isLabelWord(secret)) return []
      const from = match.index + match[0].lastIndexOf(secret)
      return [{ from, to: from + secret.length }]
    }),
  )
  return [...spans, ...commands]
}
