import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const mostWords = 1500

/** The short literals of sources: what a comparison asks for whole, coverage alone finds no way to. */
export function wordsIn(sources: readonly string[]): string[] {
  const words = new Set<string>()
  for (const source of sources) {
    const text = readFileSync(fileURLToPath(source), 'utf8')
    for (const [, , word = ''] of text.matchAll(/(['"`])((?:(?!\1)[^\\\n$]){1,20})\1/g)) {
      words.add(word)
    }
  }
  return [...words].slice(0, mostWords)
}
