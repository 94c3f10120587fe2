/**
 * The limits of the service, strictly: in any window of one second an organization gets at most its
 * number of requests per tier (public documentation, rate limits). Refused requests do not count.
 */
import type { SandboxOrganization, Tier } from '../options.ts'

export interface RateWindows {
  /** Whether a request that arrives at `atMs` (monotonic) comes too soon. */
  isOverLimit(organizationId: number, tier: Tier, atMs: number): boolean
  /** How often that was so. */
  violations(): number
}

const defaultLimits: Record<Tier, number> = { search: 1, basic: 4 }

export function createRateWindows(
  organizations: readonly SandboxOrganization[],
  toleranceMs: number,
): RateWindows {
  const limits = new Map(organizations.map(({ id, limits: own }) => [id, own ?? defaultLimits]))
  const granted = new Map<string, number[]>()
  let violations = 0

  return {
    violations: () => violations,
    isOverLimit(organizationId, tier, atMs) {
      const perSecond = (limits.get(organizationId) ?? defaultLimits)[tier]
      const atMost = Math.max(1, Math.floor(perSecond))
      const windowMs = (1000 * atMost) / perSecond - toleranceMs
      const key = `${organizationId} ${tier}`
      const recent = (granted.get(key) ?? []).filter((grantedAt) => atMs - grantedAt < windowMs)
      granted.set(key, recent)
      const isOver = recent.length >= atMost
      if (isOver) violations++
      else recent.push(atMs)
      return isOver
    },
  }
}
