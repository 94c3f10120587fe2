/** A text as a search sees it: words in small letters, whatever stands between them. */
export interface WordText {
  words: readonly string[]
  /** All of them, with a space before and behind each. */
  joined: string
  /** What stands between white space, in small letters, without punctuation around it. */
  chunks: readonly string[]
  lower: string
}

/** Scripts without spaces: each character is a word, as Lucene's standard analysis has it. */
const words =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[[\p{L}\p{N}\p{M}_]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]]+/gv
const around = /^[\p{P}\p{S}]+|[\p{P}\p{S}]+$/gu

export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(words) ?? []
}

/** Each form is made when it is first asked for. */
export function wordTextOf(text: string): WordText {
  const lower = text.toLowerCase()
  let found: string[] | undefined
  let joined: string | undefined
  let chunks: string[] | undefined
  return {
    lower,
    get words() {
      return (found ??= wordsOf(lower))
    },
    get joined() {
      return (joined ??= ` ${this.words.join(' ')} `)
    },
    get chunks() {
      return (chunks ??= chunksOf(lower))
    },
  }
}

function chunksOf(lower: string): string[] {
  return lower.split(/\s+/).flatMap((chunk) => [chunk, chunk.replaceAll(around, '')])
}

/** Whether the words of `phrase` stand in a text one after the other; without words, its signs. */
export function phraseFinder(phrase: string): (text: WordText) => boolean {
  const asked = wordsOf(phrase)
  const joined = ` ${asked.join(' ')} `
  const signs = phrase.toLowerCase().trim()
  return (text) => (asked.length === 0 ? text.lower.includes(signs) : text.joined.includes(joined))
}
