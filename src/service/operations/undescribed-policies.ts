/**
 * Operations on matching policies that the description does not have and public material knows
 * (facts.md 6). Each is tried by a GET first; a server without it is as good as any.
 */
import { z } from 'zod'
import { ServiceError } from '../service-error.ts'
import {
  policyAssignment,
  wirePolicy,
  wirePolicyPage,
  type PolicyAssignment,
  type WirePolicy,
  type WirePolicyPage,
} from '../wire/policies.ts'
import { checkRequest } from './check-request.ts'
import { pathPart, read, readWritten, write, type Asked, type OperationParts } from './operation.ts'
import type { PolicyPaths } from './policy-paths.ts'

/** All of the basic tier. */
export interface UndescribedPolicyOperations {
  /** At most `size` of all policies, 1 to 25 (the default); undefined: this server lists none. `GET …`. */
  listPolicies(
    request: { from: string | null; size?: number } & Asked,
  ): Promise<WirePolicyPage | undefined>
  /** To whom a policy is assigned; undefined: this server does not tell. `GET …/{uuid}/assignments`. */
  assignmentsOf(
    request: { uuid: string; from: string | null } & Asked,
  ): Promise<WireAssigneePage | undefined>
  /** Only where `listPolicies` gives a list. `PUT …/{uuid}`. */
  updatePolicy(
    request: { uuid: string; name: string; value: Record<string, unknown> } & Asked,
  ): Promise<WirePolicy>
  /** Only where `assignmentsOf` gives a list. `DELETE …/{uuid}/assignments`. */
  unassignPolicy(request: { uuid: string; assignment: PolicyAssignment } & Asked): Promise<void>
}

const wireAssigneePage = z.looseObject({
  items: z.array(z.looseObject({ identifier_id: z.number() })),
  next: z.string().nullish(),
})
type WireAssigneePage = z.infer<typeof wireAssigneePage>

/** The most that the list takes (facts.md 2.3, Sizes). */
const pageSize = 25

export function createUndescribedPolicyOperations(
  parts: OperationParts,
  paths: PolicyPaths,
): UndescribedPolicyOperations {
  return {
    listPolicies: ({ from, size, ...asked }) =>
      ifKnown(() =>
        paths.call(asked, (root) => {
          const path = `${root}?${pageQuery(from, size)}`
          return read(parts, wirePolicyPage, { method: 'GET', path }, asked)
        }),
      ),
    assignmentsOf: ({ uuid, from, ...asked }) =>
      ifKnown(() =>
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

/** undefined where the server refuses the path or the method as unknown. */
async function ifKnown<T>(operation: () => Promise<T>): Promise<T | undefined> {
  try {
    return await operation()
  } catch (error) {
    const isUnknown =
      error instanceof ServiceError && (error.status === 404 || error.status === 405)
    if (isUnknown || saysNothingOfUse(error)) return undefined
    throw error
  }
}

/** An answer of another shape than expected: what nobody describes may be anything. */
function saysNothingOfUse(error: unknown): boolean {
  return error instanceof ServiceError && error.reason === 'contract'
}
