/** What the service sent, as it may be shown: with its secrets masked, unless they are asked for. */
import type { Command } from 'commander'
import { maskKnown, maskSecrets } from '../../feeds/masking.ts'

export interface RevealOption {
  reveal?: true
}

export function addRevealOption(command: Command, says = 'show leaked secrets in clear'): Command {
  return command.option('--reveal', says)
}

/** The secret that was searched for is masked wherever it stands. */
export function masked<Value>(value: Value, secrets: readonly string[] = []): Value {
  return maskSecrets(mapTexts(value, maskKnown(secrets))) as Value
}

/** The same with every text in it changed, the keys left. */
export function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((entry) => mapTexts(entry, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, mapTexts(inner, change)]),
  )
}
