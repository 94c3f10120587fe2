/** What the service sent, as it may be shown: with its secrets masked, unless they are asked for. */
import type { Command } from 'commander'
import { maskKnown } from '../../feeds/mask-known.ts'
import { maskSecrets } from '../../feeds/mask-secrets.ts'
import { CommandError } from '../command-error.ts'

export interface RevealOption {
  reveal?: true
}

/** Not in CSV, which is made safe for spreadsheets: what it holds there may be another secret. */
export function addRevealOption(command: Command, says = 'show leaked secrets in clear'): Command {
  return command.option('--reveal', says).hook('preAction', () => {
    const { reveal, output } = command.opts<RevealOption & { output?: string }>()
    if (reveal && output === 'csv') throw new CommandError('mistake', notInCsv)
  })
}

const notInCsv =
  '--reveal: CSV changes secrets so that no spreadsheet runs them; take --output json or ndjson'

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
