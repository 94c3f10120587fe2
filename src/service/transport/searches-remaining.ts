import type { Answer } from './failures.ts'

/**
 * The header's name begins with the vendor's word, which differs between deployments (facts.md 2.2);
 * so only its end is looked for.
 */
const nameEnd = 'global-searches-remaining'

/**
 * How many global searches the organization has left this month, by the answer to one of them;
 * undefined where the answer does not say, or says it in no whole number.
 */
export function searchesRemainingIn({ headers }: Answer): number | undefined {
  const said = Object.entries(headers)
    .filter(([name]) => name.toLowerCase().endsWith(nameEnd))
    .flatMap(([, value]) => value ?? [])
    .map((value) => value.trim())
    .filter((value) => /^\d{1,15}$/.test(value))
  return said.length === 0 ? undefined : Math.min(...said.map(Number))
}
