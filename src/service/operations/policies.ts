/** Matching policies: created, read, deleted, assigned to identifiers; under either spelling of their path. */
import { z } from 'zod'
import {
  policyAssignment,
  policyCreation,
  wirePolicy,
  wirePolicyAssignment,
  type PolicyAssignment,
  type PolicyCreation,
  type WirePolicy,
  type WirePolicyAssignment,
} from '../wire/policies.ts'
import { checkRequest } from './check-request.ts'
import { pathPart, read, readWritten, write, type Asked, type OperationParts } from './operation.ts'
import type { PolicyPaths } from './policy-paths.ts'

/** All of the basic tier; `…` is the path of policies, in the spelling that the server knows. */
export interface PolicyOperations {
  /** `POST …`. */
  createPolicy(request: { policy: PolicyCreation } & Asked): Promise<WirePolicy>
  /** `GET …/{uuid}`. */
  getPolicy(request: { uuid: string } & Asked): Promise<WirePolicy>
  /** `DELETE …/{uuid}`. */
  deletePolicy(request: { uuid: string } & Asked): Promise<void>
  /** `POST …/{uuid}/assignments`. */
  assignPolicy(request: { uuid: string; assignment: PolicyAssignment } & Asked): Promise<void>
  /** Which policies an identifier has. `GET …/by_identifier_id/{id}`. */
  policiesOf(request: { identifier: number } & Asked): Promise<WirePolicyAssignment[]>
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
    policiesOf: ({ identifier, ...asked }) =>
      paths.call(asked, (root) => {
        const path = `${root}/by_identifier_id/${pathPart(identifier)}`
        return read(parts, z.array(wirePolicyAssignment), { method: 'GET', path }, asked)
      }),
  }
}
