/**
 * Queries over events: the kinds of event queries. In place of Lucene's syntax the sandbox reads words,
 * quoted phrases and `field:value`, joined by OR; a star ends a word.
 */
import type { EventQuery } from '../../upstream/resources/events.ts'
import type { SandboxEvent } from '../history/history.ts'
import { readStolen } from '../history/texts.ts'

/** An event as searches see it, without what a tenant adds. */
interface SearchDocument {
  /** All texts, one per line. */
  text: string
  /** Values by dotted path. */
  fields: readonly (readonly [path: string, value: unknown])[]
}

type Test = (document: SearchDocument) => boolean

export function toDocument(event: SandboxEvent): SearchDocument {
  const { uid, type, severity } = event
  const content = { metadata: { uid, type, severity }, ...event.data, ...readStolen(event) }
  const fields = 'raw' in event ? leavesOf('', event.raw) : leavesOf('', content)
  const shown = 'raw' in event ? [] : leavesOf('', event.highlights)
  const texts = [...shown, ...fields].map(([, value]) => String(value))
  return { fields, text: texts.join('\n').replaceAll(/<\/?mark>/g, '') }
}

function leavesOf(path: string, value: unknown): [string, unknown][] {
  if (value === null) return []
  if (Array.isArray(value)) return value.flatMap((inner) => leavesOf(path, inner))
  if (typeof value !== 'object') return [[path, value]]
  return Object.entries(value).flatMap(([key, inner]) =>
    leavesOf(path === '' ? key : `${path}.${key}`, inner),
  )
}

export function queryTest(query: EventQuery): Test {
  switch (query.type) {
    case 'query_string':
      return plainQuery(query.query_string)
    case 'bin':
      return allWords([`${query.bin}*`])
    case 'github_repository':
      return allWords([`${query.repo_owner}/${query.repo_name}`])
    case 'name':
      return allWords([query.first_name, query.last_name])
    case 'credentials':
      return allWords([query.username, query.password])
    case 'brand':
    case 'domain':
    case 'email':
    case 'keyword':
    case 'username':
    case 'ip':
    case 'secret':
    case 'azure_tenant': {
      const { type: _type, ...words } = query
      return allWords(Object.values(words))
    }
  }
}

function allWords(words: readonly string[]): Test {
  const finders = words.map(wordFinder)
  return ({ text }) => finders.every((finds) => finds(text))
}

/** Finds a whole word or phrase, ignoring case; a star stands for the rest of a word. */
function wordFinder(phrase: string): (text: string) => boolean {
  const escaped = phrase.trim().replaceAll(/[\\^$.+?()[\]{}|/]/g, String.raw`\$&`)
  const pattern = escaped
    .replaceAll('*', String.raw`[\p{L}\p{N}]*`)
    .replaceAll(/\s+/g, String.raw`\s+`)
  const whole = String.raw`(?<![\p{L}\p{N}])${pattern}(?![\p{L}\p{N}])`
  const expression = new RegExp(whole, 'iu')
  return (text) => expression.test(text)
}

const termPattern = /(?:[\w.]+:)?(?:"[^"]*"|[^\s"]+)/g

/**
 * Finds documents with one of the words, quoted phrases and `field:value` of a query; an operator of
 * Lucene's counts as a word.
 */
export function plainQuery(query: string): Test {
  const tests = (query.match(termPattern) ?? []).map(termTest)
  return (document) => tests.some((matches) => matches(document))
}

function termTest(term: string): Test {
  const [, field, given = ''] = /^(?:([\w.]+):)?(.+)$/s.exec(term) ?? []
  const matches = wordFinder(given.replaceAll('"', ''))
  if (field === undefined) return ({ text }) => matches(text)
  return ({ fields }) =>
    fields.some(
      ([path, value]) => (path === field || path.endsWith(`.${field}`)) && matches(String(value)),
    )
}
