/** Matching policies are created, read and deleted (service.md, Matching policy endpoints). */
import { z } from 'zod'
import { validationEntry } from '../error-bodies.ts'
import { policyCreation } from '../../service/wire/policies.ts'
import { luceneProblem } from './asset-data.ts'
import { listPage } from './list-page.ts'
import type { Asked, MonitoringParts, MonitoringRoute } from './monitoring-requests.ts'
import { invalid, ownOf, parsedBy } from './refusal.ts'
import { policyItemOf, type SandboxPolicy } from './sandbox-policy.ts'

export function policyRoutes({ monitoring, settings }: MonitoringParts): MonitoringRoute[] {
  const { policies, assignments } = monitoring
  const own = (asked: Asked): SandboxPolicy => ownPolicy(asked, monitoring)

  function create({ body, tenantId }: Asked): unknown {
    return policyItemOf(policies.create({ tenantId, ...writtenBy(body) }))
  }

  function remove(asked: Asked): unknown {
    const { uuid } = own(asked)
    policies.delete(uuid)
    assignments.forget(uuid)
    return null
  }

  function update(asked: Asked): unknown {
    const { uuid, type } = own(asked)
    const { name, value } = writtenBy({ ...objectOf(asked.body), type })
    return policyItemOf(policies.change(uuid, { name, value }))
  }

  function list({ query, tenantId }: Asked): unknown {
    const owned = policies.all().filter((policy) => policy.tenantId === tenantId)
    const placed = owned.map((policy) => ({ ...policy, uid: policy.uuid }))
    return listPage(placed, query, { endMode: settings.endMode, itemOf: policyItemOf })
  }

  return [
    { method: 'POST', path: '', answer: create },
    { method: 'GET', path: '/:uuid', answer: (asked) => policyItemOf(own(asked)) },
    { method: 'DELETE', path: '/:uuid', answer: remove },
    { method: 'PUT', path: '/:uuid', answer: update, isUndescribed: true },
    { method: 'GET', path: '', answer: list, isUndescribed: true },
  ]
}

/** The policy that the path names. */
export function ownPolicy(
  { params, tenantId }: Asked,
  { policies }: MonitoringParts['monitoring'],
): SandboxPolicy {
  const found = policies.get(params['uuid'] ?? '')
  return ownOf(found, { version: 'v4', what: 'matching policy', tenantId })
}

/** What the service does not know it ignores. */
const creation = z.discriminatedUnion('type', policyCreation.options.map(stripped) as Kinds)

type Kinds = typeof policyCreation.options

function stripped(kind: Kinds[number]): z.ZodObject {
  return z.object({ ...kind.shape, value: z.object(kind.shape.value.shape) })
}

function writtenBy(body: unknown): Pick<SandboxPolicy, 'name' | 'type' | 'value'> {
  const { name, type, value } = parsedBy(creation, body, { version: 'v4', part: 'body' })
  if (type === 'ASTP_COOKIES') return { name, type, value: { match_subdomains: false, ...value } }
  const problem = type === 'LUCENE_QUERY' ? luceneProblem(value.query) : null
  if (problem !== null && type === 'LUCENE_QUERY') {
    throw invalid(validationEntry(['body', 'value', 'query'], problem, value.query))
  }
  return { name, type, value }
}

/** What is no object stays what it is, and is refused as such. */
function objectOf(body: unknown): object {
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? body : { body }
}
