/** When a term of a query is found in a text. */
import { instantOf } from '../api/search-body.ts'
import { many, one, type Bound, type Pattern } from './lucene-query.ts'
import { wordsOf, type WordText } from './words.ts'

/** In time proportional to both lengths: no text makes it slow. */
export function fitsPattern(pattern: Pattern, text: string): boolean {
  const signs = Array.from(text)
  let [place, at] = [0, 0]
  let retry: { place: number; at: number } | null = null
  while (at < signs.length) {
    const part = pattern[place]
    if (part === many) {
      retry = { place: ++place, at }
    } else if (part === one || part === signs[at]) {
      place++
      at++
    } else if (retry) {
      retry = { place: retry.place, at: retry.at + 1 }
      place = retry.place
      at = retry.at
    } else return false
  }
  return pattern.slice(place).every((part) => part === many)
}

/** Whether all words of `phrase` stand in order, with `slop` others between them at most. */
export function nearFinder(phrase: string, slop: number): (text: WordText) => boolean {
  const [first, ...rest] = wordsOf(phrase)
  return ({ words }) =>
    words.some((word, start) => {
      if (word !== first) return false
      let last = start
      for (const asked of rest) {
        last = words.indexOf(asked, last + 1)
        if (last === -1) return false
      }
      return last - start - rest.length <= slop
    })
}

/** Whether one word is at most `edits` insertions, deletions and replacements away from the other. */
export function isWithin(left: string, right: string, edits: number): boolean {
  if (Math.abs(left.length - right.length) > edits) return false
  let row = Array.from({ length: right.length + 1 }, (_unused, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const below = [i]
    for (let j = 1; j <= right.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1)
      below.push(Math.min(replaced, (row[j] ?? 0) + 1, (below[j - 1] ?? 0) + 1))
    }
    if (Math.min(...below) > edits) return false
    row = below
  }
  return (row[right.length] ?? Infinity) <= edits
}

/** Numbers by size, dates by time (a day as a whole), all else by letters. */
export function isInRange(value: string, from: Bound | null, to: Bound | null): boolean {
  const above = from === null ? 1 : compare(value, from.text, !from.isIncluded)
  const below = to === null ? -1 : compare(value, to.text, to.isIncluded)
  return (from?.isIncluded ? above >= 0 : above > 0) && (to?.isIncluded ? below <= 0 : below < 0)
}

const numeric = /^[-+]?\d+(?:\.\d+)?$/
const dated = /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[-+]\d\d:?\d\d)?)?$/
const dayMs = 86_400_000

/** Below, at or above 0; `atEnd`: the bound is the end of its day, where it is a day. */
function compare(value: string, bound: string, atEnd: boolean): number {
  if (numeric.test(value) && numeric.test(bound)) return Number(value) - Number(bound)
  if (dated.test(value) && dated.test(bound)) {
    return instantOf(value) - instantOf(bound) - (atEnd && !bound.includes('T') ? dayMs - 1 : 0)
  }
  const [left, right] = [value.toLowerCase(), bound.toLowerCase()]
  if (left === right) return 0
  return left < right ? -1 : 1
}
