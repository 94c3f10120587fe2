/**
 * Under which of two spellings a server knows the matching policies: `matching_policies`, as the
 * description has it, or `matching-policies`, as servers since 2026-07-07 have it (facts.md 0). It is
 * found out by GETs alone, and remembered among the capabilities.
 */
import { isUnknownPath, type Capabilities } from '../capabilities.ts'
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

const spellings = ['underscore', 'hyphen'] as const

export interface PolicyPathsOptions {
  account: Pick<AccountConfig, 'policyPaths'>
  capabilities: Capabilities
  parts: OperationParts
}

export function createPolicyPaths(options: PolicyPathsOptions): PolicyPaths {
  const { account, capabilities, parts } = options
  const nameOf = (spelling: Spelling): string => `policies-${spelling}`

  async function remembered(): Promise<Spelling | undefined> {
    for (const spelling of spellings) {
      if ((await capabilities.read(nameOf(spelling)))?.has) return spelling
    }
    return undefined
  }

  async function probe(asked: Asked): Promise<Spelling> {
    for (const spelling of spellings) {
      if (!(await isThere(parts, roots[spelling], asked))) continue
      await capabilities.note(nameOf(spelling), true)
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
        await capabilities.note(nameOf(known), false)
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
