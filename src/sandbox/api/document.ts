/** An event as searches, assets and policies see it. */
import type { SandboxEvent } from '../history/history.ts'
import { readStolen } from '../history/texts.ts'

export interface SearchDocument {
  type: string
  severity: string
  /** All texts, one per line. */
  text: string
  /** Values by dotted path. */
  fields: readonly (readonly [path: string, value: unknown])[]
}

/** Leaves out what a tenant adds, and which assets it was found for. */
export function toDocument(event: SandboxEvent): SearchDocument {
  const { uid, type, severity } = event
  const content = { metadata: { uid, type, severity }, ...event.data, ...readStolen(event) }
  const fields = 'raw' in event ? leavesOf('', event.raw) : leavesOf('', content)
  const shown = 'raw' in event ? [] : leavesOf('', event.highlights)
  const texts = [...shown, ...fields].map(([, value]) => String(value))
  return { type, severity, fields, text: texts.join('\n').replaceAll(/<\/?mark>/g, '') }
}

function leavesOf(path: string, value: unknown): [string, unknown][] {
  if (value === null) return []
  if (Array.isArray(value)) return value.flatMap((inner) => leavesOf(path, inner))
  if (typeof value !== 'object') return [[path, value]]
  return Object.entries(value).flatMap(([key, inner]) =>
    leavesOf(path === '' ? key : `${path}.${key}`, inner),
  )
}

type Finder = (text: string) => boolean

/** Finds a whole word or phrase, ignoring case; a star stands for the rest of a word. */
export function wordFinder(phrase: string): Finder {
  return finder(String.raw`(?<![\p{L}\p{N}])`, phrase, String.raw`(?![\p{L}\p{N}])`)
}

/** Finds a host with its subdomains, an address of mail or network; names that end alike are others. */
export function hostFinder(host: string): Finder {
  const end = String.raw`(?![\p{L}\p{N}-]|\.[\p{L}\p{N}])`
  return finder(String.raw`(?<![\p{L}\p{N}_-])`, host, end)
}

/** Finds digits that others may follow: the beginning of a card number. */
export function digitsFinder(digits: string): Finder {
  return finder(String.raw`(?<!\d)`, digits, '')
}

function finder(before: string, phrase: string, after: string): Finder {
  const escaped = phrase.trim().replaceAll(/[\\^$.+?()[\]{}|/]/g, String.raw`\$&`)
  const pattern = escaped
    .replaceAll('*', String.raw`[\p{L}\p{N}]*`)
    .replaceAll(/\s+/g, String.raw`\s+`)
  const expression = new RegExp(before + pattern + after, 'iu')
  return (text) => expression.test(text)
}
