/** What options may hold; each refuses anything else before anything is opened. */
import { InvalidArgumentError } from 'commander'
import { systemClock } from '../../runtime/clock.ts'
import { suggestion } from '../../runtime/nearest.ts'
import { parseMoment } from '../moment.ts'

export function sizeUpTo(most: number): (text: string) => number {
  return (text) => {
    const size = /^\d{1,9}$/.test(text) ? Number(text) : 0
    if (size >= 1 && size <= most) return size
    throw new InvalidArgumentError(`Write a whole number from 1 to ${most}.`)
  }
}

export function textValue(text: string): string {
  if (text.trim() !== '') return text.trim()
  throw new InvalidArgumentError('It is empty.')
}

/** `a,b`. */
export function listValue(text: string): string[] {
  const words = text.split(',').map((word) => word.trim())
  if (!words.includes('')) return words
  throw new InvalidArgumentError('Write words with a comma between each, such as a,b.')
}

/** `a,b`, each of a closed list. */
export function listOf<Word extends string>(known: readonly Word[]): (text: string) => Word[] {
  return (text) => listValue(text).map((word) => oneOf(known, word))
}

export function oneOf<Word extends string>(known: readonly Word[], word: string): Word {
  const found = known.find((one) => one === word)
  if (found !== undefined) return found
  const remedy = suggestion(word, known, 'there are')
  throw new InvalidArgumentError(`There is no "${word.slice(0, 40)}"; ${remedy}`)
}

/** A time that has passed, or how long ago; it is left as it is written. Throws CommandError. */
export function momentValue(text: string): string {
  parseMoment(text, systemClock.now())
  return text
}
