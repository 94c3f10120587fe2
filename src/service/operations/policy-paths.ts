/**
 * Under which of two spellings a server knows the matching policies: `matching_policies`, as the
 * description has it, or `matching-policies`, as servers since 2026-07-07 have it (facts.md 0). It is
 * found out by GETs alone, and remembered for the base URL.
 */
import { createHash } from 'node:crypto'
import type { Keys } from '../../redis/keys.ts'
import type { Redis } from '../../redis/connection.ts'
import type { AccountConfig } from '../config.ts'
import { ServiceError } from '../service-error.ts'
import { ask, type Asked, type OperationParts } from './operation.ts'

export interface PolicyPaths {
  /** What `send` gives under the path of policies; asked again under the other one if that has moved. */
  call<T>(asked: Asked, send: (root: string) => Promise<T>): Promise<T>
}

const roots = {
  underscore: '/firework/v4/matching_policies',
  hyphen: '/firework/v4/matching-policies',
} as const

type Spelling = keyof typeof roots

const rememberedSeconds = 30 * 24 * 3600

export interface PolicyPathsOptions {
  account: Pick<AccountConfig, 'baseUrl' | 'policyPaths'>
  redis: Redis
  keys: Keys
  parts: OperationParts
}

export function createPolicyPaths(options: PolicyPathsOptions): PolicyPaths {
  const { account, redis, keys, parts } = options
  const server = createHash('sha256').update(account.baseUrl).digest('hex').slice(0, 16)
  const key = keys.shared('policy-paths', server)

  async function remembered(): Promise<Spelling | undefined> {
    const kept = await redis.get(key)
    return kept === 'underscore' || kept === 'hyphen' ? kept : undefined
  }

  async function probe(asked: Asked): Promise<Spelling> {
    for (const spelling of ['underscore', 'hyphen'] as const) {
      if (!(await isThere(parts, roots[spelling], asked))) continue
      await redis.set(key, spelling, 'EX', rememberedSeconds)
      return spelling
    }
    return 'underscore' // as described; nothing is remembered
  }

  return {
    async call(asked, send) {
      if (account.policyPaths !== 'auto') return send(roots[account.policyPaths])
      const known = await remembered()
      if (known === undefined) return send(roots[await probe(asked)])
      try {
        return await send(roots[known])
      } catch (error) {
        if (!isUnknownPath(error)) throw error
        const found = await probe(asked)
        if (found === known) throw error
        return send(roots[found])
      }
    },
  }
}

/**
 * Whether the server knows the path: any answer but a 404, a refusal of the method included. An
 * identifier's policies are asked for too, since the description has no GET of the path alone.
 */
async function isThere(parts: OperationParts, root: string, asked: Asked): Promise<boolean> {
  for (const path of [`${root}?size=1`, `${root}/by_identifier_id/1`]) {
    try {
      await ask(parts, { method: 'GET', path }, asked)
      return true
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      if (error.status === 403) continue // gateways refuse unknown paths so
      if (error.reason !== 'rejected') throw error // that says nothing about the path
      if (error.status !== 404) return true
      if (error.serviceCode !== undefined) return true // it says what of its own is not there
    }
  }
  return false
}

/** A 404 about the path itself, not about a policy or an identifier. */
function isUnknownPath(error: unknown): boolean {
  if (!(error instanceof ServiceError) || error.status !== 404) return false
  if (error.fault === 'html') return true
  return error.serviceCode === undefined && /: not found\.?$/i.test(error.message)
}
