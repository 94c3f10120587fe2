import { readAnswer } from '../read-answer.ts'
import type { Answer } from '../transport/failures.ts'
import { searchesRemainingIn } from '../transport/searches-remaining.ts'
import { wireSearchPage, type WireSearchPage } from '../wire/page.ts'

export interface SearchPage {
  /** Items are unknown yet: each is parsed alone. */
  page: WireSearchPage
  /** This machine's wall clock, ms. */
  requestedAtMs: number
  /** How many global searches the month has left; undefined where the answer does not say. */
  searchesRemaining?: number | undefined
}

export function searchPageOf(answer: Answer): SearchPage {
  return {
    page: readAnswer(answer, wireSearchPage),
    requestedAtMs: answer.sentAtMs,
    searchesRemaining: searchesRemainingIn(answer),
  }
}
