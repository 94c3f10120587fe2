/** What `assets apply` reads from the API, and how it inspects adopted assets. */

import { canonicalJson } from '../../feed-types/field-reader.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { UpstreamError } from '../../upstream/error.ts'
import type { WireAsset } from '../../upstream/resources/assets.ts'
import type { CallOptions } from '../../upstream/resources/operation.ts'
import type { WirePolicy } from '../../upstream/resources/policies.ts'
import { nameFailure } from '../api/api-command.ts'
import { requireConfirmation, type Context } from '../context.ts'
import { CommandError, sanitize } from '../terminal.ts'
import type { Adoption } from './adoptions.ts'
import type { DesiredState, DesiredAsset } from './monitoring-file.ts'
import type { ActualState } from './plan.ts'
import {
  findAsset,
  isUnseen,
  type KnownAsset,
  type MonitoringState,
  type PolicyContent,
} from './state-file.ts'

/** The API operations that change nothing. */
export type MonitoringReads = Pick<
  UpstreamClient,
  'listIdentifierPolicies' | 'getPolicy' | 'listPolicies' | 'listAssignments'
>

/**
 * Reads which assets and policies of the state, or named by the operator, exist, and which policies
 * each asset has.
 */
export async function readActual(
  client: MonitoringReads,
  callOptions: () => CallOptions,
  state: MonitoringState,
  adopt: readonly Adoption[] = [],
): Promise<ActualState> {
  const assigned = new Map<number, string[]>()
  const policies = new Map<string, PolicyContent>()
  const gone = new Set<number>()
  for (const { name, id } of assetsToRead(state, adopt)) {
    const entries = await nameFailure(
      `asset ${name} (${id})`,
      undefinedIfNotFound(client.listIdentifierPolicies({ identifier: id, ...callOptions() })),
    )
    if (entries === undefined) gone.add(id)
    const found = (entries ?? []).map(({ matching_policy: policy }) => policy)
    for (const policy of found) policies.set(policy.uuid, toPolicyContent(policy))
    assigned.set(
      id,
      found.map(({ uuid }) => uuid),
    )
  }
  for (const { name, uuid } of policiesToRead(state, adopt)) {
    if (policies.has(uuid)) continue
    const policy = await nameFailure(
      `policy ${name} (${uuid})`,
      undefinedIfNotFound(client.getPolicy({ uuid, ...callOptions() })),
    )
    if (policy !== undefined) policies.set(uuid, toPolicyContent(policy))
  }
  return { assigned, policies, missingAssets: gone, ...describedOnly }
}

/** For a server that has only the documented operations. */
const describedOnly = { holders: new Map(), capabilities: { update: false, unassign: false } }

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

/**
 * Finds out with GET requests which undocumented operations the server has, and the holders of each
 * policy.
 */
export async function readUndescribed(
  client: MonitoringReads,
  callOptions: () => CallOptions,
  uuids: readonly string[],
): Promise<Pick<ActualState, 'capabilities' | 'holders'>> {
  const list = await client.listPolicies({ from: null, ...callOptions() })
  const holders = new Map<string, number[]>()
  for (const uuid of uuids) {
    const ids = await readHolders(client, callOptions, uuid)
    if (ids !== undefined) holders.set(uuid, ids)
  }
  return { holders, capabilities: { update: list !== undefined, unassign: holders.size > 0 } }
}

/** Returns undefined when the server does not list the holders, or not to the end. */
async function readHolders(
  client: MonitoringReads,
  callOptions: () => CallOptions,
  uuid: string,
): Promise<number[] | undefined> {
  const ids: number[] = []
  const seen = new Set<string | null>()
  for (let from: string | null = null; !seen.has(from);) {
    seen.add(from)
    const page = await client.listAssignments({ uuid, from, ...callOptions() })
    if (page === undefined) return undefined
    ids.push(...page.items.map(({ identifier_id: id }) => id))
    const isLast = (page.next ?? null) === null || page.next === from
    if (isLast) return ids
    from = page.next ?? null
  }
  return undefined
}

async function undefinedIfNotFound<Result>(read: Promise<Result>): Promise<Result | undefined> {
  try {
    return await read
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** The part of a returned asset that the state remembers: all but `data`, which the file holds. */
export function toAssetState(
  { data: _data, ...returned }: WireAsset,
  fallback: boolean | null,
): Pick<KnownAsset, 'returned' | 'disabled'> {
  return { returned, disabled: returned.is_disabled ?? fallback }
}

/** The content of a policy as the API returns it, where `type` is called `policy_type`. */
export function toPolicyContent({ name, policy_type: type, value }: WirePolicy): PolicyContent {
  return { name, type, value: value ?? {} }
}

/**
 * Finds out what an adopted asset is. The API shows an asset only in answer to a change, so the
 * asset is set to the enabled state of the file, after a confirmation; another confirmation
 * precedes its adoption.
 */

interface InspectParts {
  client: Pick<UpstreamClient, 'toggleAsset'>
  callOptions: () => CallOptions
}

interface UnseenAsset {
  asset: DesiredAsset
  known: KnownAsset
}

/** Assets of the file that were adopted and whose content is still unknown. */
export function findUnseenAssets({ assets }: DesiredState, state: MonitoringState): UnseenAsset[] {
  return assets.flatMap((asset) => {
    const known = findAsset(state, asset.key)
    return known !== undefined && isUnseen(known) ? [{ asset, known }] : []
  })
}

/**
 * Returns the state with what the assets are. Throws CommandError when one has another type, or the
 * operator says no.
 */
export async function inspectAdopted(
  context: Context,
  { yes, output }: { yes?: true; output: string },
  parts: InspectParts,
  { desired, state }: { desired: DesiredState; state: MonitoringState },
): Promise<MonitoringState> {
  let current = state
  for (const unseen of findUnseenAssets(desired, state)) {
    const { key } = unseen.asset
    if (!yes) await requireConfirmation(context, [`${formatInspection(unseen)}.`])
    const found = await inspectAsset(unseen, parts)
    refuseType(unseen, found)
    if (output === 'text') context.terminal.print(`asset ${key}: ${formatFound(found)}`)
    if (!yes) await confirmAdoption(context, unseen)
    current = { ...current, assets: { ...current.assets, [key]: toKnownAsset(found, unseen) } }
  }
  return current
}

/**
 * `asset web: to see what 5001 is, it is enabled; the API shows an asset only in answer to a
 * change`.
 */
export function formatInspection({ asset, known }: UnseenAsset): string {
  const reason = 'the API shows an asset only in answer to a change'
  return `asset ${asset.key}: to see what ${known.id} is, it is ${formatSwitch(asset)}; ${reason}`
}

/** Enables or disables the asset, as the file says, and returns it. */
export function inspectAsset(
  { asset, known }: UnseenAsset,
  { client, callOptions }: InspectParts,
): Promise<WireAsset> {
  const isDisabled = asset.enabled === false
  const thing = `asset ${asset.key} (${known.id})`
  return nameUpstreamError(
    thing,
    client.toggleAsset({ id: known.id, isDisabled, ...callOptions() }),
  )
}

/** Fields that already match the file count as written from it. */
export function toKnownAsset(found: WireAsset, { asset, known }: UnseenAsset): KnownAsset {
  const { body, written, enabled } = asset
  const isDisabled = enabled === false
  const atService: Record<string, unknown> = found
  const inFile: Record<string, unknown> = body
  const unchanged = Object.entries(written).filter(
    ([field]) =>
      field === 'assets_group_id' || toComparable(atService[field]) === toComparable(inFile[field]),
  )
  const switches = { disabled: isDisabled, disabled_by_file: isDisabled }
  return {
    ...known,
    ...toAssetState(found, isDisabled),
    ...switches,
    written: Object.fromEntries(unchanged),
  }
}

/** The order of lists has no meaning. */
function toComparable(value: unknown): string {
  return Array.isArray(value)
    ? canonicalJson(value.map(canonicalText).toSorted())
    : canonicalJson(value)
}

function canonicalText(value: unknown): string {
  return canonicalJson(value)
}

function refuseType({ asset, known }: UnseenAsset, found: WireAsset): void {
  if (found.type === asset.body.type) return
  const foundText = `asset ${formatFound(found)}`
  const callOptions = `${asset.key} of the file is of type ${asset.body.type}`
  throw new CommandError(
    'mistake',
    `--adopt: ${foundText}, and ${callOptions}; ${known.id} is ${formatSwitch(asset)} now, and else nothing was changed`,
  )
}

async function confirmAdoption(
  { terminal }: Context,
  { asset, known }: UnseenAsset,
): Promise<void> {
  if (await terminal.confirm(`Take it for ${asset.key}?`)) return
  const now = `${known.id} is ${formatSwitch(asset)} now`
  throw new CommandError('refused', `asset ${asset.key} was not adopted; ${now}`)
}

function formatFound({ id, name, type }: WireAsset): string {
  return `${id} is "${sanitize(name, 80)}", of type ${sanitize(type, 40)}`
}

function formatSwitch({ enabled }: DesiredAsset): string {
  return enabled === false ? 'disabled' : 'enabled'
}

/** Whether the API says that the thing does not exist; a 404 that is a web page does not say so. */
export function isNotFound(error: unknown): boolean {
  return error instanceof UpstreamError && error.status === 404 && error.fault === undefined
}

/** Prefixes an error with the thing that its step was about. */
export async function nameUpstreamError<Result>(
  thing: string,
  request: Promise<Result>,
): Promise<Result> {
  try {
    return await request
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    throw new UpstreamError(error.reason, `${thing}: ${error.message}`, error)
  }
}
