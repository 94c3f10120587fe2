/**
 * Withholds what may hold a secret. A text is shown whole or withheld whole; in structured values a
 * secret is also known by the name of its field, and masked. All that is stored, sent or printed passes
 * through here. Withholding is idempotent.
 */
import { fullMask, maskSecret } from './mask-secret.ts'
import { type Treatment, findTreatment, secretKind } from './secret-names.ts'
import { type Sign, signs } from './signs.ts'

/** Stands for a text that may hold a secret. */
export const withheldText = '[withheld: may hold a secret]'

/** Masks, times, pictures, places in source code; what is published of keys, packages and mails. */
const harmless = new RegExp(
  [
    String.raw`\S?••••\S?|(?<!\d)\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?|(?<![^\s([])(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?![^\s,.)\]])`,
    String.raw`data:(?:image|font|audio|video)\/[\w.+-]{1,40};base64,[\w+/=]{0,20000}|data:image/svg\+xml;(?!base64)[^"')\n]{0,2000}`,
    String.raw`-----BEGIN (?:[A-Z0-9]{1,9} )?(?:PUBLIC KEY|CERTIFICATE|SIGNATURE)(?: [A-Z]{1,9})?-----[^-]{0,6000}(?:-----END [A-Z0-9 ]{1,30}-----)?|(?<!\p{L})(?:ssh-(?:rsa|ed25519)|ecdsa-\S{1,40}) AAAA[\w+/=]{1,2000}(?: [\w.-]{1,40}@[\w.-]{1,60})?`,
    String.raw`(?<!\w)(?:sha(?:256|384|512)-[\w+/]{40,90}|h1:[\w+/]{43})={0,2}|[\w-]{2,40}-verification=[\w-]{1,100}|(?-i:SHA256:[\w+/]{43})(?![\w+/])|(?:fingerprint|safety number)\s?[:=]?\s?(?:[\dA-F]{4,5}[ :]{1,2}){7,15}[\dA-F]{4,5}`,
    String.raw`(?:DKIM-Signature: |v=DKIM1;)[^\n]{0,1000}(?:\n[ \t][^\n]{1,200}){0,9}|(?<!\p{L})E?SMTPS?A? id \S{1,60}|(?:Message-ID|In-Reply-To|References):\s?<[^\s<>]{1,200}>|boundary="[^"\n]{1,80}"`,
    String.raw`\x60(?:json|yaml|xml|db|toml|mapstructure|env|form):"[^\x60\n]{1,80}\x60|node:[\w/]{1,60}:\d{1,5}:\d{1,5}|\((?:[A-Z]\w{1,40} \w{1,40}(?:, )?){0,6}\) in \S{1,200}:line \d{1,6}|(?<![\w.])[\w$./<>-]{1,120}\.(?:java|kt|scala|py|[mc]?[jt]sx?|go|rs|rb|php|cs|cpp|swift):\d{1,5}(?::\d{1,5})?(?![\w:|;])`,
  ].join('|'),
  'giu',
)
/** What stands in place of a secret: `$TOKEN`, `${{ secrets.TOKEN }}`, `<removed>`, `jo*****`. */
const standIn = new RegExp(
  [
    String.raw`\$?\{\{[^{}\n]{1,80}\}\}|\$\{[\w.]{1,60}\}|(?<!\w)\{[a-z_.]{3,40}\}|\$\((?:vault|aws|az|gcloud|op|kubectl|cat) [^()\n]{1,80}\)|(?<![^\s"'=:(])(?-i:\$[A-Z_]{4,40})(?![^\s"',;)])|(?<!\w)ENC\([^()\n]{1,200}\)|(?<![\w/])(?:vault|op|ssm):(?://)?[\w.-]{1,40}/[\w./#-]{1,80}`,
    String.raw`(?<!\w)(?:process\.env|secrets|vars?|Deno\.env)\.[A-Za-z_]\w{1,60}(?![\w(])|(?<!\w)(?:os\.environ(?:\.get)?|(?:os\.|System\.)?getenv|env|ENV)[([]\s?["']\w{1,60}["']\s?[)\]]`,
    String.raw`[<[(]\s?(?:(?:value|password|secret|key|token|was) )?(?:removed|redacted|hidden|masked|omitted|entfernt|ausgeblendet)(?!\p{L})[\p{L}\s,.'-]{0,60}[>\])]|<(?:your|insert|enter|put)[\p{L}\s_-]{1,40}>|(?<![\w-])(?:your|insert|replace|enter)[-_][\w-]{0,30}(?:pass\w*|secret|token|key|here|me)(?![\w])`,
    String.raw`(?<![\w.])[\w.]{1,6}\*{2,}[\w.]{0,4}@[\w.-]{1,80}(?![\w.:;|,-])|(?<![^\s"'|:;,=@])[\w.]{0,6}\*{4,}[\w.]{0,4}(?![^\s"'|:;,@])`,
  ].join('|'),
  'giu',
)

/** Short texts that had no sign: names, sources and tags come again with event after event. */
const signless = new Set<string>()
/** Code units of a text that is remembered, and how many are. */
const remembered = { length: 80, texts: 4_096 }

/** The first sign by which the text may hold a secret; null: it has none. */
export function withholds(text: string): Sign | null {
  if (signless.has(text)) return null
  const sign = findSign(text)
  if (sign !== null || text.length > remembered.length) return sign
  if (signless.size >= remembered.texts) signless.clear()
  signless.add(text)
  return null
}

function findSign(text: string): Sign | null {
  const seen = removeInvisible(withoutMarks(text)).replaceAll(harmless, ' ')
  const judged = markupAsText(seen.replaceAll(standIn, '***'))
  return signs.find(({ test }) => test(judged)) ?? null
}

/** The text without mark tags, or `withheldText` if it may hold a secret: what is marked may be one. */
export function withhold(text: string): string {
  const shown = withoutMarks(text)
  return withholds(shown) === null ? shown : withheldText
}

/** Signs of how a word looks alone: names and ids look so, too. */
const looks: ReadonlySet<string> = new Set(['odd token', 'near a word', 'encoded', 'groups'])

/** As `withhold`, for a name, which says whose or where something is: one word may look odd. */
export function withholdName(name: string): string {
  const plain = withoutMarks(name)
  const sign = withholds(plain)?.name ?? ''
  return idForm.test(plain) && looks.has(sign) ? plain : withhold(name)
}

/** As `withhold`, for a tag: `token:github` is a usual tag, and no secret is called `github`. */
export function withholdTag(tag: string): string {
  const [, value] = /^[\p{L}_-]{1,40}:([^\s:]+)$/u.exec(withoutMarks(tag)) ?? []
  return value !== undefined && withholds(value) === null ? withoutMarks(tag) : withhold(tag)
}

const identityPair =
  /^((?:[a-z][a-z0-9+.-]{0,30}:\/\/[^\s:|;,]+[\s:|;,]+[^\s:|;,]+|[^\s:|;,]*)[\s:|;,]+)(?!\/\/)(.+)$/isu

/**
 * For a field that should hold only a login, but holds `login:secret` where a dump was parsed
 * badly. The login stays, because it says whose account it is; what stands behind it is masked.
 */
export function maskIdentity(text: string): string {
  const identity = withoutMarks(text).trim()
  if (identity.includes(withheldText)) return withheldText
  const [, login, secret] = identityPair.exec(identity) ?? []
  if (login === undefined || secret === undefined)
    return idForm.test(identity) ? identity : withhold(identity)
  return `${login}${maskSecret(secret)}`
}

/** One spelling of each character, and none that is not seen: `pass\u00ADword`. */
function removeInvisible(text: string): string {
  return text.normalize('NFKC').replaceAll(/\p{Cf}/gu, '')
}

const tag = /(?:(?<!\w)|(?-i:(?=<[a-z/])))<(\/?)([a-z][\w:.-]{0,60})((?:\s[^<>]{0,200})?)>/giu
const tagOfTables =
  /^(?:[abiu]|em|strong|t[dhr]|p|div|span|br|code|pre|key|string|add|li|h\d|font|d[td]|label|input)$/iu

/** `<password>x</password>` reads as `password= x`, tags of HTML as the line of a table. */
function markupAsText(text: string): string {
  return text.replaceAll(tag, (whole, close: string, name: string, attributes: string) => {
    if (secretKind(name) !== null) return close === '' ? `${name}= ` : ' | '
    if (/^input$/iu.test(name) && !/\bvalue=/iu.test(attributes)) return ' | *** '
    return tagOfTables.test(name) ? ` | ${attributes} ` : whole
  })
}

/** Shorter secrets occur in unrelated words. */
const minKnownLength = 4

/**
 * Returns a function that masks these secrets wherever a text contains them literally, untrimmed or
 * trimmed; mark tags that split one are removed. Secrets of fewer than 4 characters are left alone.
 */
export function maskKnown(secrets: readonly string[]): (text: string) => string {
  const forms = secrets
    .flatMap((secret) => [secret, withoutMarks(secret)])
    .flatMap((secret) => [secret, secret.trim()])
    .filter((secret) => secret.length >= minKnownLength)
    .toSorted((a, b) => b.length - a.length)
  const distinct = [...new Set(forms)]
  return (text) => {
    const plain = withoutMarks(text)
    if (!distinct.some((secret) => plain.includes(secret))) return text
    return distinct.reduce((left, one) => left.replaceAll(one, () => maskSecret(one)), plain)
  }
}

const mark = /<\/?mark(?:\s[^<>]{0,200})?>/giu
const maxNested = 4

/** Removes the mark tags that the API puts around matched terms, also those within tags. */
export function withoutMarks(text: string): string {
  let left = text
  for (let level = 0; level < maxNested && left.search(mark) !== -1; level += 1)
    left = left.replaceAll(mark, '')
  return left
}

/** What is kept of a value: levels, code units per text, and code units of all keys and values. */
const limits = { depth: 64, text: 20_000, all: 200_000 } as const

/**
 * Returns a copy of a value in which texts that may hold a secret are withheld, and secrets masked
 * that a field's name tells. The value is an event's data, its highlights, or whatever the API
 * sent. `uid`: of the event; it says whether the event is a cookie, whose own fields are called
 * little more than `value`. What exceeds the limits is replaced by "…" or left out.
 */
export function withholdIn<Value>(value: Value, uid = ''): Value {
  const treatment = /^cookies?\//iu.test(uid) ? 'cookie' : 'shown'
  const place: Place = { treatment, depth: 0, budget: { left: limits.all } }
  return withholdValue(value, place) as Value
}

interface Place {
  treatment: Treatment
  depth: number
  budget: { left: number }
}

function withholdValue(value: unknown, place: Place): unknown {
  if (typeof value === 'string') return withholdString(value, place)
  if (typeof value === 'number') return maskNumber(value, place)
  if (typeof value !== 'object' || value === null) return value
  if (place.depth >= limits.depth) return '…'
  const below = { ...place, depth: place.depth + 1 }
  return Array.isArray(value) ? withholdArray(value, below) : withholdObject(value, below)
}

function withholdString(text: string, { treatment, budget }: Place): string {
  const room = Math.min(limits.text, budget.left)
  budget.left -= Math.min(text.length, room)
  return withholdLeaf(cut(text, room), treatment)
}

function maskNumber(value: number, { treatment, budget }: Place): number | string {
  budget.left -= 8
  return treatment === 'masked' || treatment === 'hidden' || treatment === 'cookie'
    ? fullMask
    : value
}

function withholdArray(values: readonly unknown[], place: Place): unknown[] {
  const kept: unknown[] = []
  for (const value of values) {
    place.budget.left -= 1
    if (place.budget.left <= 0) break
    kept.push(withholdValue(value, place))
  }
  return kept
}

function withholdObject(object: object, place: Place): Record<string, unknown> {
  const isNamedSecret = hasSecretName(object)
  const kept: [string, unknown][] = []
  for (const [key, value] of Object.entries(object)) {
    place.budget.left -= key.length + 1
    if (place.budget.left <= 0) break
    const treatment = findTreatment(key, place.treatment)
    const isSecretValue = isNamedSecret && treatment === 'shown' && valueKey.test(key)
    const below: Place = { ...place, treatment: isSecretValue ? 'masked' : treatment }
    kept.push([withholdKey(key), withholdValue(value, below)])
  }
  return Object.fromEntries(kept)
}

const namingKey = /^(?:name|key|field|label|type|id|title)$/iu
const valueKey = /^(?:value|val|content|text|data|answer)$/iu

/** Whether the object names a secret, as `{name: 'password', value: …}` in autofill data. */
function hasSecretName(object: object): boolean {
  return Object.entries(object).some(
    ([key, value]) =>
      namingKey.test(key) &&
      typeof value === 'string' &&
      ['masked', 'cookie'].includes(findTreatment(value)),
  )
}

/** A key is `mail:secret` where a list was made a map. Short plain names are not checked. */
function withholdKey(key: string): string {
  return /[\s:=@|;,<]|.{24}/su.test(key) ? withhold(key) : key
}

const idForm = /^(?:(?:sha\d+|md5):)?[\w./+=@\\-]{1,200}$/u
/** A Windows SID names an account; it is no session id. */
const windowsSid = /^S-1-\d+-[\d-]+$/u

function withholdLeaf(marked: string, treatment: Treatment): string {
  if (treatment === 'hidden' || treatment === 'cookie') return fullMask
  const text = withoutMarks(marked)
  if (treatment === 'masked') return windowsSid.test(text) ? text : maskSecret(text)
  return treatment === 'id' && idForm.test(text) ? text : withhold(marked)
}

/** Returns well-formed text of at most `max` code units, with an ellipsis if it was longer. */
export function cut(text: string, max: number): string {
  const wellFormed = text.toWellFormed()
  if (wellFormed.length <= max) return wellFormed
  return `${wellFormed.slice(0, Math.max(max, 0)).replace(/[\uD800-\uDBFF]$/u, '')}…`
}
