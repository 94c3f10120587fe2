import { InvalidArgumentError } from 'commander'

const maxLength = 200

/** What an operator writes for others to read. Throws commander's InvalidArgumentError. */
export function shortText(text: string): string {
  const trimmed = text.trim()
  if (trimmed !== '' && trimmed.length <= maxLength && !/\p{Cc}/u.test(trimmed)) return trimmed
  throw new InvalidArgumentError(`Write up to ${maxLength} characters, in one line.`)
}
