import { canonicalJson } from '../../feed-types/field-reader.ts'
import type { ServiceClient } from '../../upstream/client.ts'
import { ServiceError } from '../../upstream/error.ts'
import type { WireAsset } from '../../upstream/resources/assets.ts'
import type { Asked } from '../../upstream/resources/operation.ts'
import type { WirePolicy } from '../../upstream/resources/policies.ts'
import { nameFailure } from '../api/api-command.ts'
import { askFirst, type Context } from '../context.ts'
import { CommandError, harmless } from '../terminal.ts'
import type { Adoption } from './doubts.ts'
import type { Wanted, WantedAsset } from './monitoring-file.ts'
import type { Actual } from './plan.ts'
import {
  assetIn,
  isUnseen,
  type KnownAsset,
  type MonitoringState,
  type PolicyContent,
} from './state-file.ts'

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

/** What of an asset as it came back goes into the state: all but what the file says in clear. */
export function readAsset(
  { data: _data, ...returned }: WireAsset,
  otherwise: boolean | null,
): Pick<KnownAsset, 'returned' | 'disabled'> {
  return { returned, disabled: returned.is_disabled ?? otherwise }
}

/** A policy as the service gives it, where its type has another name. */
export function readPolicy({ name, policy_type: type, value }: WirePolicy): PolicyContent {
  return { name, type, value: value ?? {} }
}

/**
 * What an adopted asset is. The API shows an asset only in answer to a change, so it is switched to
 * what the file says, which is asked about before; and what came back, before it is taken.
 */

interface LookParts {
  client: Pick<ServiceClient, 'toggleAsset'>
  asked: () => Asked
}

interface Unseen {
  asset: WantedAsset
  known: KnownAsset
}

/** Those of the file that were adopted and never seen. */
export function unseenAssets({ assets }: Wanted, state: MonitoringState): Unseen[] {
  return assets.flatMap((asset) => {
    const known = assetIn(state, asset.key)
    return known !== undefined && isUnseen(known) ? [{ asset, known }] : []
  })
}

/** The state with what they are. Throws CommandError where one is of another type, or not wanted. */
export async function lookAtAdopted(
  context: Context,
  { yes, output }: { yes?: true; output: string },
  parts: LookParts,
  { wanted, state }: { wanted: Wanted; state: MonitoringState },
): Promise<MonitoringState> {
  let seen = state
  for (const unseen of unseenAssets(wanted, state)) {
    const { key } = unseen.asset
    if (!yes) await askFirst(context, [`${lookWords(unseen)}.`])
    const found = await lookAt(unseen, parts)
    refuseType(unseen, found)
    if (output === 'text') context.terminal.print(`asset ${key}: ${foundWords(found)}`)
    if (!yes) await askWhether(context, unseen)
    seen = { ...seen, assets: { ...seen.assets, [key]: knownFrom(found, unseen) } }
  }
  return seen
}

/** `asset web: to see what 5001 is, it is enabled; the API shows an asset only in answer to a change`. */
export function lookWords({ asset, known }: Unseen): string {
  const reason = 'the API shows an asset only in answer to a change'
  return `asset ${asset.key}: to see what ${known.id} is, it is ${switched(asset)}; ${reason}`
}

/** Switches it. */
export function lookAt({ asset, known }: Unseen, { client, asked }: LookParts): Promise<WireAsset> {
  const isDisabled = asset.enabled === false
  const thing = `asset ${asset.key} (${known.id})`
  return nameServiceError(thing, client.toggleAsset({ id: known.id, isDisabled, ...asked() }))
}

/** What is there as the file says it counts as written from it. */
export function knownFrom(found: WireAsset, { asset, known }: Unseen): KnownAsset {
  const { body, written, enabled } = asset
  const isDisabled = enabled === false
  const shown: Record<string, unknown> = found
  const asSaid: Record<string, unknown> = body
  const same = Object.entries(written).filter(
    ([field]) =>
      field === 'assets_group_id' || comparable(shown[field]) === comparable(asSaid[field]),
  )
  const switches = { disabled: isDisabled, disabled_by_file: isDisabled }
  return {
    ...known,
    ...readAsset(found, isDisabled),
    ...switches,
    written: Object.fromEntries(same),
  }
}

/** In lists the order means nothing. */
function comparable(value: unknown): string {
  return Array.isArray(value)
    ? canonicalJson(value.map(canonicalText).toSorted())
    : canonicalJson(value)
}

function canonicalText(value: unknown): string {
  return canonicalJson(value)
}

function refuseType({ asset, known }: Unseen, found: WireAsset): void {
  if (found.type === asset.body.type) return
  const is = `asset ${foundWords(found)}`
  const asked = `${asset.key} of the file is of type ${asset.body.type}`
  throw new CommandError(
    'mistake',
    `--adopt: ${is}, and ${asked}; ${known.id} is ${switched(asset)} now, and else nothing was changed`,
  )
}

async function askWhether({ terminal }: Context, { asset, known }: Unseen): Promise<void> {
  if (await terminal.confirm(`Take it for ${asset.key}?`)) return
  const now = `${known.id} is ${switched(asset)} now`
  throw new CommandError('refused', `asset ${asset.key} was not adopted; ${now}`)
}

function foundWords({ id, name, type }: WireAsset): string {
  return `${id} is "${harmless(name, 80)}", of type ${harmless(type, 40)}`
}

function switched({ enabled }: WantedAsset): string {
  return enabled === false ? 'disabled' : 'enabled'
}

/** The service says that it has no such thing; a web page that is not found says nothing of it. */
export function isAbsent(error: unknown): boolean {
  return error instanceof ServiceError && error.status === 404 && error.fault === undefined
}

/** Puts what a step was about in front of whatever went wrong: of several, nobody else can tell. */
export async function nameServiceError<Result>(
  thing: string,
  work: Promise<Result>,
): Promise<Result> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw new ServiceError(error.reason, `${thing}: ${error.message}`, error)
  }
}
