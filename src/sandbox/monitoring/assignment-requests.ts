/** Matching policies are assigned to identifiers (service.md, Matching policy endpoints). */
import type { z } from 'zod'
import { policyAssignment } from '../../service/wire/policies.ts'
import { listPage } from './list-page.ts'
import type { Asked, MonitoringParts, MonitoringRoute } from './monitoring-requests.ts'
import { ownPolicy } from './policy-requests.ts'
import { integerOf, ownOf, parsedBy } from './refusal.ts'
import type { SandboxAsset } from './sandbox-asset.ts'
import { assignmentItemOf, type SandboxAssignment, type SandboxPolicy } from './sandbox-policy.ts'

export function assignmentRoutes(parts: MonitoringParts): MonitoringRoute[] {
  const { monitoring } = parts
  const { assets, policies, assignments } = monitoring
  const ofPolicy = '/:uuid/assignments'

  function ownIdentifier(id: number, tenantId: number): SandboxAsset {
    return ownOf(assets.get(id), { version: 'v4', what: `identifier ${id}`, tenantId })
  }

  /** Everything is looked up before anything changes. */
  function read(asked: Asked): {
    policy: SandboxPolicy
    given: Given
    identifiers: SandboxAsset[]
  } {
    const policy = ownPolicy(asked, monitoring)
    const given = parsedBy(policyAssignment.strip(), asked.body, { version: 'v4', part: 'body' })
    const identifiers = given.identifier_ids.map((id) => ownIdentifier(id, asked.tenantId))
    return { policy, given, identifiers }
  }

  function assign(asked: Asked): unknown {
    const { policy, given, identifiers } = read(asked)
    const isClean = given.clean_past_events ?? false
    assignments.assign(policy.uuid, given.identifier_ids, isClean)
    if (isClean) for (const asset of identifiers) clean(asset, policy, parts)
    return null
  }

  function unassign(asked: Asked): unknown {
    const { policy, given } = read(asked)
    assignments.unassign(policy.uuid, given.identifier_ids)
    return null
  }

  function listOfIdentifier({ params, tenantId }: Asked): unknown {
    const { id } = ownIdentifier(integerOf(params['id'] ?? '', 'identifier_id'), tenantId)
    return assignments.ofIdentifier(id).flatMap((assignment) => {
      const policy = policies.get(assignment.policyUuid)
      return policy ? [assignmentItemOf(assignment, policy)] : []
    })
  }

  return [
    { method: 'GET', path: '/by_identifier_id/:id', answer: listOfIdentifier },
    { method: 'POST', path: ofPolicy, answer: assign },
    { method: 'GET', path: ofPolicy, answer: (asked) => listOf(asked, parts), isUndescribed: true },
    { method: 'DELETE', path: ofPolicy, answer: unassign, isUndescribed: true },
  ]
}

/** To whom a policy is assigned. */
function listOf(asked: Asked, { monitoring, settings }: MonitoringParts): unknown {
  const { uuid } = ownPolicy(asked, monitoring)
  const placed = monitoring.assignments
    .all()
    .filter(({ policyUuid }) => policyUuid === uuid)
    .map((one) => ({ ...one, createdAtMs: one.assignedAtMs, uid: String(one.identifierId) }))
  const itemOf = (one: SandboxAssignment): unknown => ({
    identifier_id: one.identifierId,
    identifier_name: monitoring.assets.get(one.identifierId)?.name,
    clean_past_events: one.cleanPastEvents,
    assigned_at: new Date(one.assignedAtMs).toISOString(),
  })
  return listPage(placed, asked.query, { endMode: settings.endMode, itemOf })
}

type Given = z.infer<typeof policyAssignment>

/** What `asset` matched in the past and `policy` does not let through is no longer its. */
function clean(
  asset: SandboxAsset,
  policy: SandboxPolicy,
  { monitoring, history }: MonitoringParts,
): void {
  for (const event of history.all()) {
    const places = monitoring.placesAfter(event, asset, policy)
    if (places) history.place(event.uid, places)
  }
}
