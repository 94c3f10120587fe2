import type { Silence } from '../../routing/silences.ts'
import type { User } from '../access/user.ts'

/** Whoever sees some accounts sees, makes and ends silences of these alone. */
export function visibleSilences(silences: readonly Silence[], user: User): Silence[] {
  return silences.filter((silence) => concernsOnly(silence, user))
}

/** Whether it silences nothing beyond the accounts that the user sees. */
export function concernsOnly({ matchers }: Silence, { accounts }: User): boolean {
  if (accounts === 'all') return true
  return matchers.some(
    ({ name, operator, value }) =>
      name === 'account' && operator === '=' && accounts.includes(value),
  )
}
