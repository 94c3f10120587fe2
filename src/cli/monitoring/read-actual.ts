import type { ServiceClient } from '../../service/client.ts'
import type { Asked } from '../../service/operations/operation.ts'
import { nameFailure } from '../query/name-failure.ts'
import type { Adoption } from './doubts.ts'
import { isAbsent } from './is-absent.ts'
import type { Actual } from './plan-step.ts'
import { readPolicy } from './read-policy.ts'
import type { MonitoringState, PolicyContent } from './state-file.ts'

/** The operations that change nothing. */
export type MonitoringReads = Pick<
  ServiceClient,
  'policiesOf' | 'getPolicy' | 'listPolicies' | 'assignmentsOf'
>

/** What of the state, and of what the operator names, is there, and which policies each asset really has. */
export async function readActual(
  client: MonitoringReads,
  asked: () => Asked,
  state: MonitoringState,
  adopt: readonly Adoption[] = [],
): Promise<Actual> {
  const assigned = new Map<number, string[]>()
  const policies = new Map<string, PolicyContent>()
  const gone = new Set<number>()
  for (const { name, id } of assetsToRead(state, adopt)) {
    const entries = await nameFailure(
      `asset ${name} (${id})`,
      unlessGone(client.policiesOf({ identifier: id, ...asked() })),
    )
    if (entries === undefined) gone.add(id)
    const found = (entries ?? []).map(({ matching_policy: policy }) => policy)
    for (const policy of found) policies.set(policy.uuid, readPolicy(policy))
    assigned.set(
      id,
      found.map(({ uuid }) => uuid),
    )
  }
  for (const { name, uuid } of policiesToRead(state, adopt)) {
    if (policies.has(uuid)) continue
    const policy = await nameFailure(
      `policy ${name} (${uuid})`,
      unlessGone(client.getPolicy({ uuid, ...asked() })),
    )
    if (policy !== undefined) policies.set(uuid, readPolicy(policy))
  }
  return { assigned, policies, gone, ...nothingBeyond }
}

/** As if the server had the described operations alone. */
const nothingBeyond = { holders: new Map(), can: { update: false, unassign: false } }

function assetsToRead(
  { assets }: MonitoringState,
  adopt: readonly Adoption[],
): { name: string; id: number }[] {
  const known = Object.entries(assets).map(([name, { id }]) => ({ name, id }))
  return [...known, ...adopt.filter((adoption) => adoption.kind === 'asset')]
}

function policiesToRead(
  { policies, retired }: MonitoringState,
  adopt: readonly Adoption[],
): { name: string; uuid: string }[] {
  const known = Object.entries(policies).map(([name, { uuid }]) => ({ name, uuid }))
  const adopted = adopt.flatMap(({ kind, name, id }) =>
    kind === 'policy' ? [{ name, uuid: id }] : [],
  )
  return [...known, ...retired, ...adopted]
}

/** What the server can beyond the description, and what has each of the policies; asked by GETs alone. */
export async function readBeyond(
  client: MonitoringReads,
  asked: () => Asked,
  uuids: readonly string[],
): Promise<Pick<Actual, 'can' | 'holders'>> {
  const list = await client.listPolicies({ from: null, ...asked() })
  const holders = new Map<string, number[]>()
  for (const uuid of uuids) {
    const ids = await holdersOf(client, asked, uuid)
    if (ids !== undefined) holders.set(uuid, ids)
  }
  return { holders, can: { update: list !== undefined, unassign: holders.size > 0 } }
}

/** undefined: the server does not tell; a list that is not told to its end counts as none. */
async function holdersOf(
  client: MonitoringReads,
  asked: () => Asked,
  uuid: string,
): Promise<number[] | undefined> {
  const ids: number[] = []
  const seen = new Set<string | null>()
  for (let from: string | null = null; !seen.has(from);) {
    seen.add(from)
    const page = await client.assignmentsOf({ uuid, from, ...asked() })
    if (page === undefined) return undefined
    ids.push(...page.items.map(({ identifier_id: id }) => id))
    const isLast = (page.next ?? null) === null || page.next === from
    if (isLast) return ids
    from = page.next ?? null
  }
  return undefined
}

async function unlessGone<Result>(read: Promise<Result>): Promise<Result | undefined> {
  try {
    return await read
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw error
  }
}
