/** Matching policies and their assignments to identifiers over HTTP (docs/api-notes.md, Matching policies). */
import {
  policyCreation,
  policyOperations,
  type PolicyCreation,
} from '../../upstream/resources/policies.ts'
import { inOrder, toWirePage } from '../api/pages.ts'
import { type Caller, invalid, on, requireOwn, type Route } from '../api/routes.ts'
import type { MonitoringParts } from './assets.ts'
import type { SandboxAsset, SandboxPolicy } from './monitoring.ts'

export function policyRoutes({ monitoring, pages }: MonitoringParts): Route[] {
  const { policies } = monitoring
  const own = (uuid: number | string, caller: Caller): SandboxPolicy =>
    requireOwn(policies.get(String(uuid)), 'matching policy', caller)

  return [
    on(policyOperations.create, (given, { tenantId }) =>
      toPolicyItem(policies.create({ tenantId, ...completed(given) })),
    ),
    on(policyOperations.get, ({ policy_uuid: uuid }, caller) => toPolicyItem(own(uuid, caller))),
    on(policyOperations.delete, ({ policy_uuid: uuid }, caller) => {
      policies.delete(own(uuid, caller).uuid)
      return null
    }),
    on(policyOperations.update, ({ policy_uuid: uuid, ...given }, caller) => {
      const policy = own(uuid, caller)
      const parsed = policyCreation.safeParse({ ...given, type: policy.type })
      if (!parsed.success) throw invalid(['body', 'value'], `not of a ${policy.type}`, given.value)
      const { name, value } = completed(parsed.data)
      return toPolicyItem(policies.change(policy, { name, value }))
    }),
    on(policyOperations.list, ({ size = 25, from }, { tenantId }) => {
      const found = policies.all().filter((policy) => policy.tenantId === tenantId)
      const entries = inOrder(found).toReversed()
      const page = pages.read({ scan: 'policies', entries: inOrder(entries), size, from })
      return toWirePage(page, toPolicyItem)
    }),
    ...assignmentRoutes({ monitoring, pages }, own),
  ]
}

function completed(given: PolicyCreation): Pick<SandboxPolicy, 'name' | 'type' | 'value'> {
  const { name, type, value } = given
  return type === 'ASTP_COOKIES'
    ? { name, type, value: { match_subdomains: false, ...value } }
    : { name, type, value }
}

function toPolicyItem(policy: SandboxPolicy): unknown {
  return {
    uuid: policy.uuid,
    name: policy.name,
    policy_type: policy.type,
    value: policy.value,
    created_at: new Date(policy.createdAtMs).toISOString(),
    last_updated_at: new Date(policy.updatedAtMs).toISOString(),
  }
}

function assignmentRoutes(
  { monitoring, pages }: Pick<MonitoringParts, 'monitoring' | 'pages'>,
  own: (uuid: number | string, caller: Caller) => SandboxPolicy,
): Route[] {
  const { assets } = monitoring
  const ownIdentifier = (id: number, caller: Caller): SandboxAsset =>
    requireOwn(assets.get(id), `identifier ${id}`, caller)

  return [
    on(policyOperations.assign, ({ policy_uuid, identifier_ids: ids, ...given }, caller) => {
      const { uuid } = own(policy_uuid, caller)
      for (const id of ids) ownIdentifier(id, caller)
      monitoring.assign(uuid, ids, given.clean_past_events ?? false)
      return null
    }),
    on(policyOperations.unassign, ({ policy_uuid, identifier_ids: ids }, caller) => {
      const { uuid } = own(policy_uuid, caller)
      for (const id of ids) ownIdentifier(id, caller)
      monitoring.unassign(uuid, ids)
      return null
    }),
    on(policyOperations.ofIdentifier, ({ identifier_id }, caller) => {
      const { id } = ownIdentifier(Number(identifier_id), caller)
      return monitoring
        .assignments()
        .filter(({ identifierId }) => identifierId === id)
        .map(({ policyUuid, assignedAtMs, cleanPastEvents }) => ({
          matching_policy: toPolicyItem(own(policyUuid, caller)),
          assigned_at: new Date(assignedAtMs).toISOString(),
          clean_past_events: cleanPastEvents,
        }))
    }),
    on(policyOperations.assignments, ({ policy_uuid, size = 25, from }, caller) => {
      const { uuid } = own(policy_uuid, caller)
      const entries = inOrder(
        monitoring.assignments().filter(({ policyUuid }) => policyUuid === uuid),
      )
      const page = pages.read({ scan: ['assignments', uuid], entries, size, from })
      return toWirePage(page, (one) => ({
        identifier_id: one.identifierId,
        identifier_name: assets.get(one.identifierId)?.name,
        clean_past_events: one.cleanPastEvents,
        assigned_at: new Date(one.assignedAtMs).toISOString(),
      }))
    }),
  ]
}
