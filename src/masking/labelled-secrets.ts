/**
 * Secrets behind a label: `Password: …`, `DB_PASSWORD=…`, `"apiKey": "…"`, `пароль — …`. An
 * unquoted phrase reaches to the end of its line, since a password may contain spaces, quotes,
 * commas and `&`; a token reaches to white space. Both end earlier at a closing quote, the `&` of a
 * query string, the bracket around the pair, or, in a line of several labelled fields, the next
 * label.
 */
import { isExpression, isPlaceholder } from './placeholders.ts'
import { holdsDigits, isPlural, labelAt, secretKind, type Label } from './secret-names.ts'
import { endsOf, findMatches, textBefore, type Span } from './secret-shapes.ts'

interface FoundLabel extends Label {
  name: string
  nameAt: number
  separator: string
  /** No space between name, separator and value. */
  isTight: boolean
  valueAt: number
  /** The innermost bracket that is open here on its line: `{`, `(`, `[` or none. */
  bracket: string
  /** The first label on its line. */
  isFirst: boolean
  /** The label before it, at most 300 code units back, names who or where. */
  followsContext: boolean
}

/** Finds labelled secrets in linear time. With `isTag` a tight `token:` is no label. */
export function labelledSpans(text: string, isTag = false): Span[] {
  const labels = findLabels(text).filter(
    ({ separator, isTight }) => !(isTag && isTight && separator === ':'),
  )
  const ends = {
    line: endsOf(text, lineBreak),
    word: endsOf(text, wordEnd),
    parameter: endsOf(text, parameterEnd),
  }
  const spans: Span[] = []
  let done = 0
  labels.forEach((label, at) => {
    if (label.kind === 'context' || label.nameAt < done) return
    const span = findSecretAfter(text, label, {
      next: labels[at + 1],
      lineEnd: ends.line(label.valueAt),
      ends,
    })
    if (span === null) return
    spans.push(span)
    done = span.to
  })
  return spans
}

const separators =
  /=>|->|:=|={1,3}|:{1,2}|[：＝→⇒是为為は은는]|(?<=\S)[ \t](?:(?:(?:agora|ahora|now|jetzt) )?(?:is|was|es|ist|est|lautet|c['’]est|è|é|jest|to|это)(?: (?:now|jetzt|nun|ahora|maintenant|теперь))?(?:[ \t]?[:：]|(?=[ \t]))|[-–—|](?=[ \t]))|\((?=["'`])|[|\t]|%3[AD]/giu
const separatorWord = /^[ \t]\p{L}[\p{L}'’ ]*$/u
const spokenByCjk = /[是为為は은는]/u

function findLabels(text: string): FoundLabel[] {
  const found: FoundLabel[] = []
  const brackets = openBrackets(text)
  let lineStart = 0
  let scanned = 0
  let lineOfLast = -1
  for (const match of findMatches(text, separators)) {
    const at = match.index
    const separator = match[0].trim()
    const near = nameBefore(text, at)
    const isNear = near !== null && near.kind !== 'context'
    const name = isNear ? near : (nameFarBefore(text, at, match[0]) ?? near)
    if (name === null) continue
    const isLoose = /^(?:[-–—|]|)$/u.test(separator)
    if ((isLoose || spokenByCjk.test(separator)) && (name.weak || name.kind !== 'phrase')) continue
    if (separatorWord.test(match[0]) && name.kind === 'context') continue
    const valueAt = skipSpaces(text, at + match[0].length)
    const last = found.at(-1)
    lineStart = Math.max(lineStart, lastLineStart(text, scanned, name.nameAt))
    scanned = name.nameAt
    found.push({
      ...name,
      separator: readSeparator(match[0]),
      isTight: name.end === at && valueAt === at + match[0].length,
      valueAt,
      bracket: brackets(name.nameAt),
      isFirst: lineOfLast !== lineStart,
      followsContext: last?.kind === 'context' && name.nameAt - last.valueAt < 300,
    })
    lineOfLast = lineStart
  }
  return found
}

/** Verbs become `is` if English, else `ist`: for other languages there is no list of words here. */
function readSeparator(written: string): string {
  const separator = written.trim()
  if (!separatorWord.test(written)) return separator
  return /^(?:is|was)(?: now)?$/iu.test(separator) ? 'is' : 'ist'
}

interface LabelName extends Label {
  name: string
  nameAt: number
  /** End of the name, without quotes. */
  end: number
}

const nameCharacter = /[\p{L}\p{M}\p{N}_$.-]/u
const around = new Set('"\'`*_~]})>”’»」』\\;')
const maxNameLength = 40

/** Most spaces before a separator: tools align their output in columns. */
const maxAligned = 24

/** The label before a separator, also quoted, in brackets or with a note: `name (in words)`. */
function nameBefore(text: string, separatorAt: number): LabelName | null {
  let end = separatorAt
  const back = (limit: number, test: (character: string) => boolean): void => {
    for (let left = limit; left > 0 && end > 0 && test(text.charAt(end - 1)); left -= 1) end -= 1
  }
  const isSpace = (character: string): boolean => character === ' ' || character === '\t'
  back(maxAligned, isSpace)
  const closed = end
  back(6, (character) => around.has(character))
  if (text.startsWith('&quot;', end - 5)) end -= 5
  else if (text.startsWith('%22', end - 3)) end -= 3
  const plain = nameEndingAt(text, end)
  if (plain !== null || text[closed - 1] !== ')') return plain
  const open = text.lastIndexOf('(', closed)
  if (open === -1 || closed - open > 40) return null
  end = open
  back(1, isSpace)
  return nameEndingAt(text, end)
}

const farName =
  /(?:^|[^\p{L}\p{N}_])((?:password|passwort|pass|pwd|passwd|passphrase|contraseña|senha|mot de passe|пароль|wachtwoord|hasło|şifre|kennwort|mdp|clave|parola)s?)(?: (?:found|from|for|to|of|on|at|in|от|для|к|на|für|zu|zum|von|pour|du|de|del|para|da|do|voor|do|del|della|dem|der)(?: (?!where )[^:=<>\n.\s]{1,20}){1,4}| ?\[[^[\]\n]{1,30}\]| found)\s?$/iu

/** A label with words before its separator: `Password for root: …`, `Password [Chrome]: …`. */
function nameFarBefore(text: string, separatorAt: number, separator: string): LabelName | null {
  if (!/[:=>：＝→⇒是为為は은는–—-]/u.test(separator) && !separatorWord.test(separator)) return null
  if (text.startsWith('://', separatorAt)) return null
  const before = textBefore(text, separatorAt, 110)
  if (!/pass|pwd|contras|senha|парол|wachtw|has|ifre|kennw|mdp|clave|parola/iu.test(before))
    return null
  const match = farName.exec(before)
  if (match === null) return null
  const name = match[1] ?? ''
  const nameAt = separatorAt - before.length + match.index + match[0].indexOf(name)
  const weak = /^(?:clave|parola)/iu.test(name)
  return { kind: 'phrase', weak, name, nameAt, end: nameAt + name.length }
}

function nameEndingAt(text: string, end: number): LabelName | null {
  const words: string[] = []
  let at = end
  let best: LabelName | null = null
  for (let count = 0; count < 3; count += 1) {
    const from = wordStart(text, at)
    if (from === at) break
    words.unshift(text.slice(from, at))
    const label = labelAt(words)
    if (label !== null && (best === null || (label.kind !== 'context' && !label.weak))) {
      best = { ...label, name: words.join(' '), nameAt: from, end }
      if (label.kind !== 'context' && !label.weak) break
    }
    const gap = text[from - 1]
    if (gap !== ' ' && gap !== '\u00A0' && gap !== "'" && gap !== '’') break
    at = from - 1
  }
  return best
}

/** Bounded, so that a long word is not read again for every separator in it. */
function wordStart(text: string, end: number): number {
  let from = end
  while (from > 0 && end - from < maxNameLength && isNameCode(text.charCodeAt(from - 1))) from -= 1
  return from
}

/** Whether a code unit may be part of a name: 1 yes, 2 no, 0 not looked up yet. */
const nameCodes = new Uint8Array(65_536)

function isNameCode(code: number): boolean {
  nameCodes[code] ||= nameCharacter.test(String.fromCharCode(code)) ? 1 : 2
  return nameCodes[code] === 1
}

const lineBreak = /[\n\r\u2028\u2029\v\f]/gu
const wordEnd = /[\s"'`<>]/gu
const parameterEnd = /[&\s"<>#\\]|'(?=[\s,;)\]}>]|$)|…$/gu

/** The start of the line that contains `to`, if it is behind `from`; otherwise 0. */
function lastLineStart(text: string, from: number, to: number): number {
  for (let at = to; at > from; at -= 1)
    if (/[\n\r\u2028\u2029\v\f]/u.test(text.charAt(at - 1))) return at
  return 0
}

const closers: Readonly<Record<string, string>> = { '{': '}', '(': ')', '[': ']' }

/** Returns a function for the innermost bracket open at a position; positions must not decrease. */
function openBrackets(text: string): (at: number) => string {
  let open: string[] = []
  let scanned = 0
  return (at) => {
    for (; scanned < at; scanned += 1) {
      const character = text.charAt(scanned)
      if (character === '\n') open = []
      else if (character in closers) open.push(character)
      else if (character === closers[open.at(-1) ?? '']) open.pop()
    }
    return open.at(-1) ?? ''
  }
}

const spaces = /[ \t\u00A0]*/uy

function skipSpaces(text: string, at: number): number {
  spaces.lastIndex = at
  return at + (spaces.exec(text)?.[0].length ?? 0)
}

interface LineContext {
  next: FoundLabel | undefined
  lineEnd: number
  /** The end of a word, or of a query parameter, that begins at a position. */
  ends: Record<'word' | 'parameter', (at: number) => number>
}

/** A longer value reaches to the end of its line. */
const maxValueLength = 1_000
/** For values of several lines. */
const maxBlockLength = 4_000

const markup =
  /(?:[*_~]{1,3}(?=\s)|<\/?(?:b|strong|i|em|u|code|span|td|th|p|div|font|pre)>)[ \t]*/uy

function findSecretAfter(text: string, label: FoundLabel, near: LineContext): Span | null {
  const { lineEnd } = near
  const from = valueStart(text, label)
  const isBlock = isBlockMark(text.slice(from, Math.min(lineEnd, from + 4)))
  const lines = isBlock ? blockBelow(text, label, lineEnd) : tripleQuoted(text, from)
  if (lines !== null) return label.weak ? null : lines
  if (from >= lineEnd || isBlock) return findBelow(text, label, near)
  if (near.next?.nameAt === from && /^[-–—|]?$/u.test(label.separator)) return null
  const quoted = quotedValue(text, from, lineEnd)
  const isQuoted = quoted !== null && !continuesAfter(text, quoted, { label, near })
  const span = isQuoted ? quoted : trimSpan(text, from, unquotedEnd(text, from, { label, near }))
  if (span === null || !isSecret(text, span, { label, isQuoted })) return null
  return label.kind === 'cookie' ? { ...span, hidden: true } : skipScheme(text, span, label)
}

/** Skips `**` and tags, as in `**Password:** …` and `<b>Password:</b> …`. */
function valueStart(text: string, { valueAt }: FoundLabel): number {
  markup.lastIndex = valueAt
  return valueAt + (markup.exec(text)?.[0].length ?? 0)
}

/** In YAML `password: |` begins a block. */
function isBlockMark(start: string): boolean {
  return /^[|>][+-]?\d?$/u.test(start.trim())
}

/** The lines below `password: |` that are indented more than the name; null if there are none. */
function blockBelow(text: string, { nameAt }: FoundLabel, lineEnd: number): Span | null {
  const [, before = ''] = /(?:^|[\r\n])([^\r\n]*)$/u.exec(textBefore(text, nameAt, 80)) ?? []
  if (!/^[ \t]*(?:- )?["']?$/u.test(before)) return null
  const rest = text.slice(lineEnd, lineEnd + maxBlockLength)
  const further = `[ \\t]{${before.length + 1},}\\S.*|[ \\t]*(?=[\\r\\n])`
  const [block = ''] = new RegExp(`^(?:\\r?\\n(?:${further}))+`, 'u').exec(rest) ?? []
  const lead = block.length - block.trimStart().length
  if (lead === block.length || block.startsWith('-----BEGIN', lead)) return null
  return { from: lineEnd + lead, to: lineEnd + block.trimEnd().length }
}

/** A value of several lines between triple quotes. */
function tripleQuoted(text: string, at: number): Span | null {
  const mark = text.slice(at, at + 3)
  if (mark !== '"""' && mark !== "'''") return null
  const inside = text.slice(at + 3, at + maxBlockLength)
  const length = inside.indexOf(mark)
  const value = length === -1 ? '' : inside.slice(0, length)
  if (!value.includes('\n') || value.trim() === '') return null
  const lead = value.length - value.trimStart().length
  return { from: at + 3 + lead, to: at + 3 + value.trimEnd().length }
}

/** Schemes of `Authorization` and the space behind: of RFC 9110, IANA's registry, and vendors. */
const scheme =
  /(?:api-?key|aws4-hmac-sha256|basic|bearer|digest|dpop|hawk|negotiate|ntlm|oauth|sharedkey|token)[ \t]+(?=\S)/iuy

function schemeAt(text: string, at: number): string {
  scheme.lastIndex = at
  return scheme.exec(text)?.[0] ?? ''
}

/** Whether the value is credentials, perhaps of several words: `Authorization: Digest …`. */
function isCredentials(text: string, from: number, { name }: FoundLabel): boolean {
  if (/authorization$/iu.test(name)) return true
  return /authorization/iu.test(name) && schemeAt(text, from) !== ''
}

/** Leaves a known scheme readable: `Authorization: Bearer …`. */
function skipScheme(text: string, span: Span, label: FoundLabel): Span {
  if (!isCredentials(text, span.from, label)) return span
  return { ...span, from: Math.min(span.from + schemeAt(text, span.from).length, span.to - 1) }
}

const quotes: readonly [string, string][] = [
  ['"""', '"""'],
  ["'''", "'''"],
  ['\\\\"', '\\\\"'],
  ['\\"', '\\"'],
  ["\\'", "\\'"],
  ['"', '"'],
  ["'", "'"],
  ['`', '`'],
  ['“', '”'],
  ['„', '“'],
  ['«', '»'],
  ['‘', '’'],
  ['「', '」'],
  ['『', '』'],
  ['&quot;', '&quot;'],
  ['&#39;', '&#39;'],
  ['&#34;', '&#34;'],
  ['%22', '%22'],
]

interface Quoted extends Span {
  /** Position behind the closing quote. */
  end: number
}

/** The text between quotes; null if no quote begins here, or none ends on this line. */
function quotedValue(text: string, at: number, lineEnd: number): Quoted | null {
  const [open, close] = quotes.find(([mark]) => text.startsWith(mark, at)) ?? ['', '']
  if (open === '') return null
  const from = at + open.length
  const to = closingQuote(text, { from, lineEnd: Math.min(lineEnd, from + maxValueLength), close })
  return to === -1 ? null : { from, to, end: to + close.length }
}

const maxQuotes = 20

/** Finds the closing quote behind inner ones: `"say "hi" bob"`, `'it's me'`, `"a""b"`, `"a\"b"`. */
function closingQuote(
  text: string,
  { from, lineEnd, close }: { from: number; lineEnd: number; close: string },
): number {
  let depth = 0
  let left = maxQuotes
  for (let at = text.indexOf(close, from); at !== -1 && at < lineEnd && left > 0; left -= 1) {
    const after = text[at + close.length] ?? '\n'
    const before = text[at - 1] ?? ''
    const isDoubled = after === close
    if (close.length === 1 && isEscaped(text, at, from)) {
      at = text.indexOf(close, at + 1)
      continue
    }
    if (isDoubled && !/[\s,;:)}\]]/u.test(text[at + 2] ?? ' ')) {
      at = text.indexOf(close, at + 2)
      continue
    }
    if (/[\s,;:)}\]>|&#./?!\\<"'…%]/u.test(after)) {
      if (depth === 0) return at
      depth -= 1
    } else if (/\s/u.test(before)) depth += 1
    at = text.indexOf(close, at + close.length)
  }
  return -1
}

function isEscaped(text: string, at: number, from: number): boolean {
  let slashes = 0
  while (at - slashes > from && slashes < 8 && text[at - slashes - 1] === '\\') slashes += 1
  return slashes % 2 === 1
}

/** `Password: "hello" world`: the quotes are part of the password, because text follows them. */
function continuesAfter(
  text: string,
  { end }: Quoted,
  { label, near: { next, lineEnd } }: { label: FoundLabel; near: LineContext },
): boolean {
  if (!label.isFirst || label.isTight || label.separator !== ':') return false
  if (label.bracket !== '' || (next !== undefined && next.nameAt < lineEnd)) return false
  return /^ +[\p{L}\p{N}]/u.test(text.slice(end, end + 20))
}

function unquotedEnd(
  text: string,
  from: number,
  { label, near }: { label: FoundLabel; near: LineContext },
): number {
  const next = nextLabelEnd(text, label, near)
  const limit = next >= from ? next : near.lineEnd
  const rest = text.slice(from, Math.min(limit, from + maxValueLength))
  const offsets = [
    findBracketEnd(rest, label.bracket),
    rest.search(/(?<=.)<(?:br|\/[a-z])/iu),
    /^[|]?$/u.test(label.separator) ? rest.search(/(?<=.)(?:[ \t]\||\||\t)/u) : -1,
    label.kind === 'token' && !isCredentials(text, from, label)
      ? wordLength(text, from, Math.min(limit, near.ends.word(from))) || limit - from
      : -1,
    /^ist?$/u.test(label.separator) ? findSentenceEnd(rest) : -1,
    isCommand(label, rest) ? rest.search(/\s|$/u) : -1,
  ]
  if (isParameter(text, label)) return Math.min(limit, near.ends.parameter(from))
  return Math.min(
    limit,
    ...offsets.filter((offset) => offset !== -1).map((offset) => from + offset),
    ...[enclosingQuoteEnd(text, from, { label, lineEnd: limit })].filter((end) => end >= from),
  )
}

/** Where the next label ends the value, as in `login: x password: y host: w`; -1 if it does not. */
function nextLabelEnd(text: string, label: FoundLabel, { next, lineEnd }: LineContext): number {
  if (next === undefined || next.nameAt > lineEnd) return -1
  let at = next.nameAt
  const isOpening = (character: string): boolean => /["'`*_([{<$-]/u.test(character)
  while (at > label.valueAt && isOpening(text.charAt(at - 1))) at -= 1
  const before = text.slice(Math.max(label.valueAt, at - 12), at)
  if (/(?:[|;,\t]|\\[nrt]|<br ?\/?>|[ \t]{2,}|[ \t][-–—/•·][ \t])[ \t]*$/iu.test(before))
    return trimBack(text, at)
  if (next.isTight && /[&;]$/u.test(before) && label.isTight) return trimBack(text, at)
  const isSoft = /\s$/u.test(before)
  const isDump = !label.isFirst || (label.isTight && next.isTight && next.separator === '=')
  return isSoft && isDump ? trimBack(text, at) : -1
}

function trimBack(text: string, at: number): number {
  const before = textBefore(text, at, 12)
  return (
    at -
    (before.length - before.replace(/(?:[\s|;,&]|\\[nrt]|<br ?\/?>|\s[-–—/•·])+$/iu, '').length)
  )
}

/** Only in `?password=…&` an `&` ends a secret. */
function isParameter(text: string, { nameAt, isTight, separator }: FoundLabel): boolean {
  if (!isTight || separator !== '=') return false
  const before = textBefore(text, nameAt, 40)
  return /[?&#](?:amp;)?[\w.%-]*(?:\[[\w%-]*\]|\[)*$/u.test(before)
}

/** Closing quote around label and value: `-H 'X-Api-Key: …'`, `-d "password=…"`, JSON in a text. */
function enclosingQuoteEnd(
  text: string,
  from: number,
  { label, lineEnd }: { label: FoundLabel; lineEnd: number },
): number {
  const quote = text[label.nameAt - 1] ?? ''
  const isQuote = /["'`]/u.test(quote) && !text.slice(label.nameAt, label.valueAt).includes(quote)
  const until = Math.min(lineEnd, from + maxValueLength)
  if (isQuote) return closingQuote(text, { from, lineEnd: until, close: quote })
  if (label.bracket !== '{' && label.bracket !== '[') return -1
  const end = text.slice(from, until).search(/(?<!\\)"\s*[,}\]]/u)
  return end === -1 ? -1 : from + end
}

/** The end of the pair within `{…}`, `(…)` or `[…]`. */
function findBracketEnd(rest: string, bracket: string): number {
  if (bracket === '{') return rest.search(/,\s*["']?[\w$.-]{1,60}["']?\s*[:=]|\}(?=[\s,;)\]}]|$)/u)
  if (bracket === '(') return rest.search(/\)(?=[\s.,;:!?]|$)|,\s*[\w$.-]{1,60}\s*=/u)
  return bracket === '[' ? rest.search(/\](?=[\s.,;:)}\]]|$)/u) : -1
}

/** Length without punctuation and closing brackets at the end, of which 20 are looked at. */
function wordLength(text: string, from: number, to: number): number {
  const tail = text.slice(Math.max(from, to - 20), to)
  return to - from - (tail.length - tail.replace(/[,;.)\]}…|]+$/u, '').length)
}

function findSentenceEnd(rest: string): number {
  const end = rest.search(/[.!?]\s+\p{Lu}|,\s\p{Ll}/u)
  return end === -1 ? rest.length : end
}

/** `PGPASSWORD=… psql -h db`: the value of an assignment before a command is one word. */
function isCommand({ isTight, separator, name }: FoundLabel, rest: string): boolean {
  if (!isTight || separator !== '=') return false
  if (name.startsWith('-') && /^\S+\s/u.test(rest)) return true
  return /^\S+[ \t]+(?:psql|pg_\w+|mysql\w*|mongo\w*|redis-cli|curl|wget|ssh|scp|rsync|docker|kubectl|helm|node|npm|python3?|ansible\S*|terraform|aws|gcloud|az|git|java|make|\.\/|\\$|&&|;)/u.test(
    rest,
  )
}

function trimSpan(text: string, from: number, to: number): Span | null {
  const value = text.slice(from, to)
  const length = value.trimEnd().length
  return length === 0 ? null : { from, to: from + length }
}

/** The value below a line that is only `Password:`. */
function findBelow(text: string, label: FoundLabel, { next, lineEnd }: LineContext): Span | null {
  if (label.weak || label.kind !== 'phrase' || /^[-–—|]?$/u.test(label.separator)) return null
  const [, gap = '', word = ''] =
    /^((?:[ \t]*[\r\n]{1,2}){1,2}[ \t]*(?:`{3}\w*[\r\n]{1,2})?)([^\r\n]+)/u.exec(
      text.slice(lineEnd, lineEnd + 1_000),
    ) ?? []
  const from = lineEnd + gap.length
  if (word === '' || (next !== undefined && next.nameAt < from + word.length)) return null
  const value = word.trimEnd()
  const isAlone = !/\s/u.test(value) || (value.split(/\s+/u).length <= 4 && looksSecret(value))
  const span = { from, to: from + value.length }
  return isAlone && !/[:：]$|:\/\//u.test(value) && isSecret(text, span, { label, isQuoted: false })
    ? span
    : null
}

const variable = /^[:@$]{1,2}([A-Za-z_]\w{0,40})[,;)]*$/u
const rulePattern =
  /^(?:(?:must|should|shall|has to|have to|needs? to|at least|at most|min(?:imum)?|max(?:imum)?|cannot|can't|can not|please|click|forgot|enter|see|read|how|why|what|where|when|who|muss|müssen|mindestens|bitte|wie man|doit|veuillez|au moins|comment|debe|deve|por favor|al menos|cómo|должен|не менее|минимум)\s|(?:(?:was|has been|is|not)\s)?(?:changed|expired|reset|rotated|leaked|compromised|exposed|stolen|incorrect|wrong|invalid|correct|required|updated|accepted|rejected|encrypted|hashed|stored|same as)\b)[\p{L}\s.,;:!?'’()–—/-]*\d{0,3}[\p{L}\s.,;:!?'’()–—/-]*$/iu
const countPattern = /^\d[\d.,  ]{0,12}[kKmM]?\+?\s*(?:$|[|,;)(/\]}]|[\p{L}])/u
const prosePattern = /^\p{Ll}[\p{L}'’-]*,?(?:[ \t]+(?:[\p{L}'’-]+|\d{1,4}),?){5}/u
const maskedPattern = /^.?•{4}.?$/u

function isSecret(
  text: string,
  span: Span,
  { label, isQuoted }: { label: FoundLabel; isQuoted: boolean },
): boolean {
  const value = text.slice(span.from, Math.min(span.to, span.from + 300))
  const isLong = span.to - span.from > 250
  if (value.trim() === '' || maskedPattern.test(value) || isWindowsSid(value)) return false
  if (!isLong && isPlaceholder(value)) return false
  if (!isLong && !isQuoted && isExpression(value)) return false
  const [, bound] = variable.exec(value) ?? []
  if (bound !== undefined && secretKind(bound) !== null) return false
  if (!isQuoted && isPlural(label.name) && (countPattern.test(value) || prosePattern.test(value)))
    return false
  if (label.kind === 'cookie') return /[=\d]/u.test(value) || isQuoted
  if (isCredentials(text, span.from, label)) return true
  if (holdsDigits(label.name)) return /^[\d -]{3,12}$/u.test(value)
  if (/^https?:\/\/[^\s@]+$/u.test(value) && !isQuoted) return false
  if (label.separator === 'is') return isQuoted || isStatedSecret(value)
  if (label.separator === 'ist') return isQuoted || looksSecret(value)
  if (!isQuoted && !isLong && label.separator === ':' && rulePattern.test(value)) return false
  if (/^[-–—|]?$/u.test(label.separator)) {
    if (isLabelWord(value) || /^[\s|:-]+$/u.test(value)) return false
    const isCell = label.separator === '' && label.isFirst
    return isCell || looksSecret(value) || (!/\s/u.test(value) && !attributeWords.test(value))
  }
  if (!label.weak || isQuoted || isFromTool(text, label)) return true
  if (label.followsContext && label.isFirst && label.kind === 'phrase') return true
  return value.split(/\s+/u, label.kind === 'phrase' ? 6 : 1).some(looksSecret)
}

/** Whether a program wrote it: `?token=…`, `token=…`, `{token: …}`. */
function isFromTool(text: string, { isTight, separator, nameAt, bracket }: FoundLabel): boolean {
  if (bracket === '{') return true
  return isTight && separator === '=' && !/\p{L}\s$/u.test(textBefore(text, nameAt, 2))
}

const attributeWords =
  /^(?:not|no|now|never|always|also|only|still|already|again|too|very|so|as|at|in|on|by|for|from|of|to|with|the|an?|this|that|your|my|his|her|their|our|its|one|all|any|same|wrong|incorrect|correct|invalid|valid|weak|strong|safe|secure|unsafe|short|long|easy|hard|simple|sent|set|shown|known|unknown|hidden|visible|plain|plaintext|reset|stolen|gone|lost|out|case|available|missing|empty|blank|optional|default|being|been|typed|given|written|kept|good|bad|old|new|important|there|here|what|why|how|where|when|because|if|more|less|than|up|down|[\p{L}-]+(?:ed|ing|ly|able|ible))(?=[\s.,;:!?]|$)/iu

/** Tells `the password is hunter2` from `the password is required`. */
function isStatedSecret(value: string): boolean {
  const [word = ''] = value.split(/\s/u)
  if (looksSecret(word)) return true
  return /^[\p{L}]+[.!]?$/u.test(value) && word.length >= 4 && !attributeWords.test(value)
}

/** A Windows SID names an account; it is no session id. */
export function isWindowsSid(value: string): boolean {
  return /^S-1-\d+-[\d-]+$/u.test(value)
}

/** Whether the value is itself a label, such as `Password` in a table's header. */
export function isLabelWord(value: string): boolean {
  return /^[\p{L}_ -]{1,30}$/u.test(value) && labelAt(value.trim().split(' ')) !== null
}

/** Whether the first word mixes letters with digits or symbols, has inner capitals, or is long. */
export function looksSecret(value: string): boolean {
  const [first = ''] = value.split(/\s/u)
  const word = first.replaceAll(/^["'`(]+|["'`).,;:!?]+$/gu, '')
  if (word.length < 4 || /^(?:https?:\/\/|www\.)/iu.test(word) || /^[\d.,:/-]+%?$/u.test(word))
    return false
  if (/^v?\d+(?:\.\d+)+/u.test(word)) return false
  const hasDigit = /\d/u.test(word) && /\p{L}/u.test(word)
  const hasSymbol = /[!#$%^&*+=?~|\\{}<>]/u.test(word) && /[\p{L}\d]/u.test(word)
  const hasCapital = /\p{Ll}\p{Lu}/u.test(word) && word.length >= 8
  return hasDigit || hasSymbol || hasCapital || word.length >= 24
}
