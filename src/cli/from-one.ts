import { InvalidArgumentError } from 'commander'

/** How many, or the how-manieth: at most six digits. */
export function fromOne(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a whole number of at least 1.')
}
