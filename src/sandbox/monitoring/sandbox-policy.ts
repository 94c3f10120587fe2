import { z } from 'zod'
import { policyTypes } from '../../service/wire/enumerations.ts'
import type { WirePolicy, WirePolicyAssignment } from '../../service/wire/policies.ts'

const text = z.string()

/** A matching policy as the sandbox holds it, in JSON. */
export const sandboxPolicy = z.object({
  uuid: text,
  tenantId: z.int(),
  name: text,
  type: z.enum(policyTypes),
  value: z.record(text, z.unknown()),
  createdAtMs: z.number(),
  updatedAtMs: z.number(),
})
export type SandboxPolicy = z.infer<typeof sandboxPolicy>

/** That a policy decides for an identifier. */
export const sandboxAssignment = z.object({
  policyUuid: text,
  identifierId: z.int(),
  cleanPastEvents: z.boolean(),
  assignedAtMs: z.number(),
})
export type SandboxAssignment = z.infer<typeof sandboxAssignment>

export function policyItemOf(policy: SandboxPolicy): WirePolicy {
  return {
    uuid: policy.uuid,
    name: policy.name,
    policy_type: policy.type,
    value: policy.value,
    created_at: new Date(policy.createdAtMs).toISOString(),
    last_updated_at: new Date(policy.updatedAtMs).toISOString(),
  }
}

/** An assignment as it stands in the list of an identifier. */
export function assignmentItemOf(
  assignment: SandboxAssignment,
  policy: SandboxPolicy,
): WirePolicyAssignment {
  return {
    matching_policy: policyItemOf(policy),
    assigned_at: new Date(assignment.assignedAtMs).toISOString(),
    clean_past_events: assignment.cleanPastEvents,
  }
}
