import type { SandboxEvent } from '../history/sandbox-event.ts'
import { documentOf, type SearchDocument } from '../search/search-document.ts'
import { wordTextOf, type WordText } from '../search/words.ts'

/** An event as assets and policies look at it. */
export interface Sighting {
  event: SandboxEvent
  document: SearchDocument
  words: WordText
}

/** Without its identifiers: whom an event was found for says nothing about what it holds. */
export function sightingOf(event: SandboxEvent): Sighting {
  const document = documentOf({ ...event, identifiers: [] })
  return { event, document, words: wordTextOf(document.text) }
}
