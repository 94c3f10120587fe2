import { severityRank } from '../../events/severity.ts'
import type { Style } from '../terminal.ts'

/** Red from high on, yellow for medium. A word that this version does not know counts as critical. */
export function severityStyle(severity: string): Style {
  const rank = severityRank(severity.toLowerCase())
  if (rank >= 4) return 'red'
  return rank === 3 ? 'yellow' : 'dim'
}
