/**
 * Secrets that the structure around them names: CSV with a header, `INSERT` statements, cookie
 * files, markup, `{"name": "password", "value": …}`.
 */
import { isLabelWord, looksSecret } from './labelled-secrets.ts'
import { isPlaceholder } from './placeholders.ts'
import { labelAt, secretKind } from './secret-names.ts'
import { findMatches, textBefore, type Span } from './secret-shapes.ts'

/** Finds values that a column, tag or member beside them names as a secret. */
export function recordSpans(text: string): Span[] {
  return [
    ...namedValueSpans(text),
    ...valueBelowSpans(text),
    ...argumentSpans(text),
    ...markupSpans(text),
    ...tableSpans(text),
    ...insertSpans(text),
    ...unnamedInsertSpans(text),
  ]
}

const namingMember =
  /(?:name|key|label|field|type|id|title|for)\\?["']?\s{0,3}(?:[:=]|=>)\s{0,3}\\?["']([^"'\\<>\n]{1,60})\\?["']/giu
const valueMember =
  /(?<![\p{L}_])\\?["']?(?:value|val|content|text|data|answer|default|secret)\\?["']?\s{0,3}(?:[:=]|=>)\s{0,3}(?:\\"((?:\\{3}"|\\[^"\n]|[^"\\\n]){1,4000})\\"|"((?:[^"\\\n]|\\.){1,4000})"|'((?:[^'\\\n]|\\.){1,4000})'|([^\s"',;}<>]{1,4000}))/iu

/** `{"name": "password", "value": "…"}` in either order, and `<add key="Password" value="…"/>`. */
function namedValueSpans(text: string): Span[] {
  return findMatches(text, namingMember).flatMap(
    ({ index, 0: { length }, 1: name = '' }): Span[] => {
      if (secretKind(name) === null) return []
      const before = textBefore(text, index, 500)
      const [brace, angle] = [before.lastIndexOf('{'), before.lastIndexOf('<')]
      const start = Math.max(brace, angle) + 1
      const after = text.slice(index + length, index + length + 4_500)
      const end = after.search(angle > brace ? />/u : /\}/u)
      return [
        ...findValue(after, index + length, end === -1 ? Infinity : end),
        ...findValue(before.slice(start), index - before.length + start),
      ]
    },
  )
}

const valueBelow =
  /^[ \t]*(?:- )?["']?(?:name|key|field|label|id)["']?[ \t]*[:=][ \t]*["']?([^"'\n\r:=]{1,60})["']?,?[ \t]*\r?\n[ \t]*["']?(?:value|val|content|text)["']?[ \t]*[:=][ \t]*(\S[^\n\r]{0,4000})/gimu

/** `- name: DB_PASSWORD` with `value: …` on the next line, as in manifests and autofill data. */
function valueBelowSpans(text: string): Span[] {
  return findMatches(text, valueBelow).flatMap(
    ({ index, 0: whole, 1: name = '', 2: value = '' }) => {
      const quote = /^["']/u.exec(value)?.[0] ?? ''
      const end = quote === '' ? -1 : value.lastIndexOf(quote)
      const secret = end > 0 ? value.slice(1, end) : value.trimEnd()
      if (secretKind(name.trim()) === null || secret === '' || isPlaceholder(secret)) return []
      const from = index + whole.length - value.length + (end > 0 ? 1 : 0)
      return [{ from, to: from + secret.length }]
    },
  )
}

/**
 * The first value that begins before `end`; it may go on behind, since a secret may hold brackets.
 */
function findValue(part: string, offset: number, end = Infinity): Span[] {
  const match = valueMember.exec(part)
  const secret = match?.slice(1).find((group) => group !== undefined)
  if (
    match === null ||
    match.index > end ||
    secret === undefined ||
    /^(?:null|true|false)$/u.test(secret)
  )
    return []
  const from = offset + match.index + match[0].lastIndexOf(secret)
  return [{ from, to: from + secret.length }]
}

const argument =
  /\(\s{0,3}["']([\w.-]{1,60})["']\s{0,3},\s{0,3}(?:"((?:[^"\\\n]|\\.){1,4000})"|'((?:[^'\\\n]|\\.){1,4000})')/gu

/** `define('DB_PASSWORD', '…')`. */
function argumentSpans(text: string): Span[] {
  return findMatches(text, argument).flatMap((match): Span[] => {
    const [whole, name = ''] = match
    const secret = match[2] ?? match[3] ?? ''
    if (secretKind(name) === null || isPlaceholder(secret) || isLabelWord(secret)) return []
    const from = match.index + whole.length - secret.length - 1
    return [{ from, to: from + secret.length }]
  })
}

const element = /<([\p{L}][\w:.-]{0,60})(?:\s[^<>]{0,200})?>(?:<!\[CDATA\[)?([^<>\]]{1,20000})/gu
const namedElement =
  /<[a-z]{1,10}\s[^<>]{0,60}(?:name|key)=["']([^"'<>]{1,60})["'][^<>]{0,100}>([^<]{1,500})/giu
const cells =
  />\s{0,3}([^<>\n]{1,60}?):?\s{0,3}<\/[a-z]{1,10}>\s{0,20}<[a-z]{1,10}(?:\s[^<>]{0,100})?>([^<\n]{1,500})/giu

/** `<password>…</password>`, `<string name="password">…`, `<td>Password</td><td>…`. */
function markupSpans(text: string): Span[] {
  if (!text.includes('<')) return []
  return [element, namedElement, cells].flatMap((pattern) =>
    findMatches(text, pattern).flatMap(
      ({ index, 0: whole, 1: name = '', 2: value = '' }): Span[] => {
        const isNamed =
          secretKind(name) !== null || (labelAt(name.split(' '))?.kind ?? 'context') !== 'context'
        if (!isNamed || value.trim() === '' || isLabelWord(value)) return []
        const from = index + whole.length - value.length
        const lead = value.length - value.trimStart().length
        return [{ from: from + lead, to: from + value.trimEnd().length }]
      },
    ),
  )
}

const cookieLine =
  /^(?:#HttpOnly_)?\.?[\w.-]{1,255}\t(?:TRUE|FALSE)\t[^\t]{0,300}\t(?:TRUE|FALSE)\t-?\d{1,20}\t[^\t]{1,300}\t/iu

/**
 * Tables with a header that names a secret (CSV, TSV, `|`), and cookie files, which have no header.
 */
function tableSpans(text: string): Span[] {
  const spans: Span[] = []
  let table: Table | null = null
  let at = 0
  for (const line of text.split('\n')) {
    const value = line.length <= 20_000 ? line.replace(/\r$/u, '') : ''
    const cookie = cookieLine.exec(value)
    if (cookie !== null)
      spans.push({ from: at + cookie[0].length, to: at + value.length, hidden: true })
    const header = readHeader(value)
    if (header !== null) table = header
    else if (value.trim() === '') table = null
    else if (table !== null) spans.push(...cellSpans(value, at, table))
    at += line.length + 1
  }
  return spans
}

interface Table {
  delimiter: string
  /** Indexes of the columns that hold secrets. */
  columns: number[]
  width: number
}

function readHeader(line: string): Table | null {
  if (line.length > 1_000 || !/[,;\t|]/u.test(line)) return null
  const delimiter = ['\t', '|', ';'].find((one) => line.includes(one)) ?? ','
  const names = splitCells(line, delimiter).map(({ value }) => value)
  const areNames = names.every((name) => /^[\p{L}_][\p{L}\p{N}_ .-]{0,40}$|^$/u.test(name))
  const columns = names.flatMap((name, at) =>
    name !== '' && secretKind(name) !== null ? [at] : [],
  )
  const isTable =
    areNames &&
    columns.length > 0 &&
    names.some((name) => labelAt(name.split(' '))?.kind === 'context')
  return isTable ? { delimiter, columns, width: names.length } : null
}

function cellSpans(line: string, offset: number, table: Table): Span[] {
  const found = splitCells(line, table.delimiter)
  if (found.length < 2 || found.length < table.width - 1) return []
  return table.columns.flatMap((column): Span[] => {
    const cell = found[column]
    if (cell === undefined || /^[\s:-]*$/u.test(cell.value)) return []
    // a delimiter within the last cell is part of the secret
    const isLast = column === table.width - 1 && found.length > table.width
    const end = isLast ? line.trimEnd().length : cell.to
    return [{ from: offset + cell.from, to: offset + end }]
  })
}

interface Cell {
  value: string
  from: number
  to: number
}

/**
 * Splits a line into cells, without quotes and spaces around them; `""` is a quote within quotes.
 */
function splitCells(line: string, delimiter: string): Cell[] {
  const found: Cell[] = []
  let from = 0
  let isQuoted = false
  for (let at = 0; at <= line.length; at += 1) {
    const character = line[at]
    if (character === '"') isQuoted = !isQuoted
    if (at < line.length && (character !== delimiter || (isQuoted && line.includes('"', at))))
      continue
    const raw = line.slice(from, at)
    const lead = /^[\s"'`]*/u.exec(raw)?.[0].length ?? 0
    const value = raw.slice(lead).replace(/[\s"'`]*$/u, '')
    found.push({ value, from: from + lead, to: from + lead + value.length })
    from = at + 1
  }
  return found
}

const insert =
  /\binsert\s+(?:ignore\s+)?into\s+[\w"'`.[\]]{1,100}\s{0,5}\(([^()]{1,2000})\)\s{0,5}values\s{0,5}/giu

/** `INSERT INTO users (login, password) VALUES ('joe', '…'), …`. */
function insertSpans(text: string): Span[] {
  const spans: Span[] = []
  let done = 0
  for (const {
    index,
    0: { length },
    1: columns = '',
  } of findMatches(text, insert)) {
    if (index < done) continue
    const secret = new Set(
      columns
        .split(',')
        .flatMap((name, at) =>
          secretKind(name.replaceAll(/["'`[\]\s]/gu, '')) === null ? [] : [at],
        ),
    )
    if (secret.size === 0) continue
    const read = rowSpans(text, index + length, secret)
    for (const span of read.spans) spans.push(span)
    done = read.end
  }
  return spans
}

const userInsert =
  /\binsert\s+(?:ignore\s+)?into\s+[\w"'`.[\]]{0,60}(?:user|member|account|customer|login|admin)[\w"'`.[\]]{0,60}\s{1,5}values\b/iu
const besideMail = /'[^'\s@]{1,64}@[^'\s@]{1,255}',\s?'((?:[^'\\\s]|\\.|''){4,200})'/gu
const quotedHash = /(?<=')(?:[\da-f]{32}|[\da-f]{40}|[\da-f]{64}|[\da-f]{128})(?=')/giu

/**
 * `INSERT` into a table of users without column names: hashes, and values next to an e-mail address
 * that look like a secret.
 */
function unnamedInsertSpans(text: string): Span[] {
  if (!userInsert.test(text)) return []
  const besides = findMatches(text, besideMail).flatMap(({ index, 0: whole, 1: secret = '' }) => {
    const from = index + whole.length - 1 - secret.length
    return looksSecret(secret) ? [{ from, to: from + secret.length }] : []
  })
  const hashes = findMatches(text, quotedHash).map(({ index, 0: hash }) => {
    return { from: index, to: index + hash.length }
  })
  return [...besides, ...hashes]
}

/** Reads `(…), (…);` value by value. */
function rowSpans(
  text: string,
  start: number,
  secret: ReadonlySet<number>,
): { spans: Span[]; end: number } {
  const spans: Span[] = []
  const token = /'(?:[^'\\]|\\.|'')*(?:'|$)|"(?:[^"\\]|\\.|"")*(?:"|$)|[(),;]|[^\s'"(),;]+|\s+/suy
  let column = -1
  token.lastIndex = start
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const [part] = match
    if (part === '(') column = 0
    else if (part === ',') column += column === -1 ? 0 : 1
    else if (part === ')') column = -1
    else if (part === ';') return { spans, end: token.lastIndex }
    else if (column === -1 && !/^\s/u.test(part)) return { spans, end: match.index }
    else if (secret.has(column) && !/^(?:\s+|null)$/iu.test(part)) {
      const isQuoted = /^['"]/u.test(part)
      const from = match.index + (isQuoted ? 1 : 0)
      const to = token.lastIndex - (isQuoted && part.length > 1 && part.at(-1) === part[0] ? 1 : 0)
      if (to > from) spans.push({ from, to })
    }
  }
  return { spans, end: text.length }
}
