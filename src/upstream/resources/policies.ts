/**
 * Matching policies: creating, reading and deleting them, and assigning them to identifiers, under
 * either spelling of their path.
 */
import { z } from 'zod'
import { type Capabilities, isUnknownPath } from '../capabilities.ts'
import type { AccountConfig } from '../config.ts'
import { UpstreamError } from '../error.ts'
import {
  ask,
  type CallOptions,
  checkRequest,
  type OperationParts,
  pathPart,
  read,
  readWritten,
  write,
} from './operation.ts'

/** All use the basic tier. `…` stands for the policy path in the spelling of the server. */
export interface PolicyOperations {
  /** `POST …`. */
  createPolicy(request: { policy: PolicyCreation } & CallOptions): Promise<WirePolicy>
  /** `GET …/{uuid}`. */
  getPolicy(request: { uuid: string } & CallOptions): Promise<WirePolicy>
  /** `DELETE …/{uuid}`. */
  deletePolicy(request: { uuid: string } & CallOptions): Promise<void>
  /** `POST …/{uuid}/assignments`. */
  assignPolicy(request: { uuid: string; assignment: PolicyAssignment } & CallOptions): Promise<void>
  /** Returns the policies of an identifier. `GET …/by_identifier_id/{id}`. */
  listIdentifierPolicies(
    request: { identifier: number } & CallOptions,
  ): Promise<WirePolicyAssignment[]>
}

export function createPolicyOperations(
  parts: OperationParts,
  paths: PolicyPaths,
): PolicyOperations {
  return {
    async createPolicy({ policy, ...asked }) {
      const body = checkRequest(policyCreation, policy)
      const send = (path: string) => write(parts, { method: 'POST', path, body }, asked)
      return readWritten(await paths.call(asked, send), wirePolicy)
    },
    getPolicy: ({ uuid, ...asked }) =>
      paths.call(asked, (root) =>
        read(parts, wirePolicy, { method: 'GET', path: `${root}/${pathPart(uuid)}` }, asked),
      ),
    async deletePolicy({ uuid, ...asked }) {
      await paths.call(asked, (root) =>
        write(parts, { method: 'DELETE', path: `${root}/${pathPart(uuid)}` }, asked),
      )
    },
    async assignPolicy({ uuid, assignment, ...asked }) {
      const body = checkRequest(policyAssignment, assignment)
      await paths.call(asked, (root) => {
        const path = `${root}/${pathPart(uuid)}/assignments`
        return write(parts, { method: 'POST', path, body }, asked)
      })
    },
    listIdentifierPolicies: ({ identifier, ...asked }) =>
      paths.call(asked, (root) => {
        const path = `${root}/by_identifier_id/${pathPart(identifier)}`
        return read(parts, z.array(wirePolicyAssignment), { method: 'GET', path }, asked)
      }),
  }
}

/**
 * Finds out, by GETs alone, how a server spells the policy path, and remembers it as a capability.
 * Servers since 2026-07-07 write a hyphen (docs/api-notes.md, Versions).
 */
interface PolicyPaths {
  /**
   * Calls `send` with the policy path; calls it again with the other spelling if the server no
   * longer knows the first.
   */
  call<T>(asked: CallOptions, send: (root: string) => Promise<T>): Promise<T>
}

const rootPaths = {
  underscore: '/firework/v4/matching_policies',
  hyphen: '/firework/v4/matching-policies',
} as const

type Spelling = keyof typeof rootPaths

const spellings = ['underscore', 'hyphen'] as const

export interface PolicyPathsOptions {
  account: Pick<AccountConfig, 'policyPaths'>
  capabilities: Capabilities
  parts: OperationParts
}

export function createPolicyPaths(options: PolicyPathsOptions): PolicyPaths {
  const { account, capabilities, parts } = options
  const capabilityName = (spelling: Spelling): string => `policies-${spelling}`

  async function readSpelling(): Promise<Spelling | undefined> {
    for (const spelling of spellings) {
      if ((await capabilities.read(capabilityName(spelling)))?.has) return spelling
    }
    return undefined
  }

  async function probe(asked: CallOptions): Promise<Spelling> {
    for (const spelling of spellings) {
      if (!(await isPathKnown(parts, rootPaths[spelling], asked))) continue
      await capabilities.note(capabilityName(spelling), true)
      return spelling
    }
    return 'underscore' // the described spelling; nothing is remembered
  }

  return {
    async call(asked, send) {
      if (account.policyPaths !== 'auto') return send(rootPaths[account.policyPaths])
      const known = await readSpelling()
      if (known === undefined) return send(rootPaths[await probe(asked)])
      try {
        return await send(rootPaths[known])
      } catch (error) {
        if (!isUnknownPath(error)) throw error
        const found = await probe(asked)
        if (found === known) throw error
        await capabilities.note(capabilityName(known), false)
        return send(rootPaths[found])
      }
    },
  }
}

/**
 * Whether the server knows the path: any answer other than a 404 says so, even a refused method. An
 * identifier's policies are requested too, since the description has no GET of the path itself.
 */
async function isPathKnown(
  parts: OperationParts,
  root: string,
  asked: CallOptions,
): Promise<boolean> {
  for (const path of [`${root}?size=1`, `${root}/by_identifier_id/1`]) {
    try {
      await ask(parts, { method: 'GET', path }, asked)
      return true
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      if (error.status === 403) continue // gateways answer unknown paths with 403
      if (error.reason !== 'rejected') throw error // says nothing about the path
      if (error.status !== 404) return true
      if (error.serviceCode !== undefined) return true // the API itself reports something missing
    }
  }
  return false
}

/**
 * Operations on matching policies that only the public documentation has (docs/api-notes.md,
 * Matching policies). A GET finds out whether the server has them; everything else works on a
 * server without them. All use the basic tier.
 */
export interface UndocumentedPolicyOperations {
  /**
   * Returns at most `size` policies, 1 to 25 (the default); undefined if the server has no list.
   * `GET …`.
   */
  listPolicies(
    request: { from: string | null; size?: number } & CallOptions,
  ): Promise<WirePolicyPage | undefined>
  /**
   * Returns the identifiers that a policy is assigned to; undefined if the server does not tell.
   * `GET …/{uuid}/assignments`.
   */
  listAssignments(
    request: { uuid: string; from: string | null } & CallOptions,
  ): Promise<WireAssigneePage | undefined>
  /** Works only where `listPolicies` returns a list. `PUT …/{uuid}`. */
  updatePolicy(
    request: { uuid: string; name: string; value: Record<string, unknown> } & CallOptions,
  ): Promise<WirePolicy>
  /** Works only where `listAssignments` returns a list. `DELETE …/{uuid}/assignments`. */
  unassignPolicy(
    request: { uuid: string; assignment: PolicyAssignment } & CallOptions,
  ): Promise<void>
}

const wireAssigneePage = z.looseObject({
  items: z.array(z.looseObject({ identifier_id: z.number() })),
  next: z.string().nullish(),
})
type WireAssigneePage = z.infer<typeof wireAssigneePage>

/** The largest page that the API returns (docs/api-notes.md, Page sizes). */
const pageSize = 25

export function createUndocumentedPolicyOperations(
  parts: OperationParts,
  paths: PolicyPaths,
): UndocumentedPolicyOperations {
  return {
    listPolicies: ({ from, size, ...asked }) =>
      ifSupported(() =>
        paths.call(asked, (root) => {
          const path = `${root}?${pageQuery(from, size)}`
          return read(parts, wirePolicyPage, { method: 'GET', path }, asked)
        }),
      ),
    listAssignments: ({ uuid, from, ...asked }) =>
      ifSupported(() =>
        paths.call(asked, (root) => {
          const path = `${root}/${pathPart(uuid)}/assignments?${pageQuery(from)}`
          return read(parts, wireAssigneePage, { method: 'GET', path }, asked)
        }),
      ),
    async updatePolicy({ uuid, name, value, ...asked }) {
      const answer = await paths.call(asked, (root) => {
        const path = `${root}/${pathPart(uuid)}`
        return write(parts, { method: 'PUT', path, body: { name, value } }, asked)
      })
      return readWritten(answer, wirePolicy)
    },
    async unassignPolicy({ uuid, assignment, ...asked }) {
      const body = checkRequest(policyAssignment, assignment)
      await paths.call(asked, (root) => {
        const path = `${root}/${pathPart(uuid)}/assignments`
        return write(parts, { method: 'DELETE', path, body }, asked)
      })
    },
  }
}

function pageQuery(from: string | null, size = pageSize): string {
  return new URLSearchParams({ size: String(size), ...(from !== null && { from }) }).toString()
}

/** undefined: the server does not know path or method, or answers in an unexpected shape. */
async function ifSupported<T>(operation: () => Promise<T>): Promise<T | undefined> {
  try {
    return await operation()
  } catch (error) {
    const isUnknown =
      error instanceof UpstreamError && (error.status === 404 || error.status === 405)
    if (isUnknown || isUnintelligible(error)) return undefined
    throw error
  }
}

/** Whether the answer had an unexpected shape: an undocumented path may return anything. */
function isUnintelligible(error: unknown): boolean {
  return error instanceof UpstreamError && error.reason === 'contract'
}

const text = z.string()

/** A policy as the API returns it. Its type is `policy_type` here, but `type` on creation. */
export const wirePolicy = z.looseObject({
  uuid: text.min(1),
  name: text,
  policy_type: text,
  value: z.record(text, z.unknown()).nullish(),
  created_at: text.nullish(),
  last_updated_at: text.nullish(),
})
export type WirePolicy = z.infer<typeof wirePolicy>

export const wirePolicyAssignment = z.looseObject({
  matching_policy: wirePolicy,
  assigned_at: text.nullish(),
  clean_past_events: z.boolean().nullish(),
})
export type WirePolicyAssignment = z.infer<typeof wirePolicyAssignment>

/** Only in the public documentation (docs/api-notes.md, Matching policies). */
const matchModes = [
  'email_domain_only',
  'auth_domain_only',
  'auth_domain_and_email_domain',
] as const

const name = text.min(1)
const keywords = z.strictObject({ keywords: z.array(text.min(1)).min(1) })

/** Creates a policy; its type decides its value (docs/api-notes.md, Matching policies). */
export const policyCreation = z.discriminatedUnion('type', [
  z.strictObject({ name, type: z.literal('INCLUDED_KEYWORDS'), value: keywords }),
  z.strictObject({ name, type: z.literal('EXCLUDED_KEYWORDS'), value: keywords }),
  z.strictObject({
    name,
    type: z.literal('LUCENE_QUERY'),
    value: z.strictObject({ query: text.min(1) }),
  }),
  z.strictObject({
    name,
    type: z.literal('ASTP_COOKIES'),
    value: z.strictObject({
      cookie_names: z.array(text.min(1)).min(1),
      match_subdomains: z.boolean().optional(),
    }),
  }),
  z.strictObject({
    name,
    type: z.literal('ASTP_DOMAIN'),
    value: z.strictObject({ match_mode: z.enum(matchModes).optional() }),
  }),
])
export type PolicyCreation = z.input<typeof policyCreation>

export const policyAssignment = z.strictObject({
  identifier_ids: z.array(z.int().min(1)).min(1),
  clean_past_events: z.boolean().optional(),
})
type PolicyAssignment = z.input<typeof policyAssignment>

/**
 * A page of all policies. Only some servers have it (docs/api-notes.md, Operations that only some
 * servers have).
 */
export const wirePolicyPage = z.looseObject({
  items: z.array(wirePolicy),
  next: text.nullish(),
})
type WirePolicyPage = z.infer<typeof wirePolicyPage>
