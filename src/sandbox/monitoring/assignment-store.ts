import { z } from 'zod'
import { sandboxAssignment, type SandboxAssignment } from './sandbox-policy.ts'

/** Which policy is assigned to which identifier, in order of assignment. */
export interface AssignmentStore {
  all(): readonly SandboxAssignment[]
  ofIdentifier(id: number): SandboxAssignment[]
  /** What is assigned already is assigned anew. */
  assign(policyUuid: string, identifierIds: readonly number[], cleanPastEvents: boolean): void
  unassign(policyUuid: string, identifierIds: readonly number[]): void
  /** All of a policy that is gone. */
  forget(policyUuid: string): void
  snapshot(): unknown
  /** Instead of what is there. Throws ZodError on what no snapshot is. */
  restore(snapshot: unknown): void
}

export function createAssignmentStore(now: () => number, changed: () => void): AssignmentStore {
  let assignments: SandboxAssignment[] = []

  function keep(list: SandboxAssignment[]): void {
    assignments = list
    changed()
  }

  function without(policyUuid: string, identifierIds: readonly number[]): SandboxAssignment[] {
    return assignments.filter(
      (one) => one.policyUuid !== policyUuid || !identifierIds.includes(one.identifierId),
    )
  }

  return {
    all: () => assignments,
    ofIdentifier: (id) => assignments.filter(({ identifierId }) => identifierId === id),
    assign(policyUuid, identifierIds, cleanPastEvents) {
      const assignedAtMs = now()
      const assigned = [...new Set(identifierIds)].map((identifierId) => ({
        policyUuid,
        identifierId,
        cleanPastEvents,
        assignedAtMs,
      }))
      keep([...without(policyUuid, identifierIds), ...assigned])
    },
    unassign: (policyUuid, identifierIds) => keep(without(policyUuid, identifierIds)),
    forget: (uuid) => keep(assignments.filter(({ policyUuid }) => policyUuid !== uuid)),
    snapshot: () => assignments,
    restore: (snapshot) => keep(z.array(sandboxAssignment).parse(snapshot)),
  }
}
