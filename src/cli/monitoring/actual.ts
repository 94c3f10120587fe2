/** What `assets apply` reads from the API, and what it remembers of what it has read. */

import { canonicalJson } from '../../feed-types/field-reader.ts'
import { maskText } from '../../masking/masking.ts'
import type { CallOptions } from '../../upstream/call.ts'
import { isUnknownPath } from '../../upstream/capabilities.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { UpstreamError } from '../../upstream/error.ts'
import type { WireAsset } from '../../upstream/resources/assets.ts'
import type { SearchPage } from '../../upstream/resources/operation.ts'
import {
  policyOperations,
  wireAssignee,
  type WirePolicy,
} from '../../upstream/resources/policies.ts'
import { nameFailure } from '../api/api-command.ts'
import { requireConfirmation, type Context } from '../context.ts'
import { CommandError, sanitize } from '../terminal.ts'
import type { Adoption } from './adoptions.ts'
import type { DesiredState, DesiredAsset } from './monitoring-file.ts'
import type { ActualState, PlanInput } from './plan.ts'
import {
  findAsset,
  isUnseen,
  type KnownAsset,
  type MonitoringState,
  type PolicyContent,
} from './state-file.ts'

/** The API operations that change nothing. */
export type MonitoringReads = Pick<UpstreamClient, 'getAsset' | 'call'>

/**
 * Reads the assets and policies of the state, or named by the operator, and which policies each
 * asset has.
 */
export async function readActual(
  client: MonitoringReads,
  callOptions: () => CallOptions,
  state: MonitoringState,
  adopt: readonly Adoption[] = [],
): Promise<ActualState> {
  const named = assetsToRead(state, adopt)
  const { assets, missingAssets, doubtfulAssets } = await readAssets(client, callOptions, named)
  const assigned = new Map<number, string[]>()
  const policies = new Map<string, PolicyContent>()
  for (const { name, id } of named.filter((one) => !missingAssets.has(one.id))) {
    const entries = await nameFailure(
      `asset ${name} (${id})`,
      undefinedIfNotFound(
        client.call(policyOperations.ofIdentifier, { identifier_id: id }, callOptions()),
      ),
    )
    if (entries === undefined) missingAssets.add(id)
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
      undefinedIfNotFound(client.call(policyOperations.get, { policy_uuid: uuid }, callOptions())),
    )
    if (policy !== undefined) policies.set(uuid, toPolicyContent(policy))
  }
  return { assets, assigned, policies, missingAssets, doubtfulAssets, ...describedOnly }
}

interface NamedAsset {
  name: string
  id: number
}

/**
 * Reads each asset, where the server shows single assets and the key may see them
 * (docs/api-notes.md, Assets). A 404 is about the asset once the server has shown another one; until
 * then it may be about the path, and the asset is in doubt unless the words say so.
 */
async function readAssets(
  client: Pick<MonitoringReads, 'getAsset'>,
  callOptions: () => CallOptions,
  named: readonly NamedAsset[],
): Promise<{
  assets: Map<number, WireAsset>
  missingAssets: Set<number>
  doubtfulAssets: Set<number>
}> {
  const assets = new Map<number, WireAsset>()
  const notFound = new Map<number, unknown>()
  for (const { name, id } of named) {
    try {
      const request = client.getAsset({ id, ...callOptions() })
      assets.set(id, await nameUpstreamError(`asset ${name} (${id})`, request))
    } catch (error) {
      const status = error instanceof UpstreamError ? error.status : undefined
      if (status === 405) break
      if (isNotFound(error)) notFound.set(id, error)
      else if (status !== 403 && status !== 404) throw error
    }
  }
  const ids = [...notFound.keys()]
  if (assets.size > 0) return { assets, missingAssets: new Set(ids), doubtfulAssets: new Set() }
  const doubtful = ids.filter((id) => !isUnknownPath(notFound.get(id)))
  return { assets, missingAssets: new Set(), doubtfulAssets: new Set(doubtful) }
}

/** For a server that has only the documented operations. */
const describedOnly = { holders: new Map(), capabilities: { update: false, unassign: false } }

function assetsToRead({ assets }: MonitoringState, adopt: readonly Adoption[]): NamedAsset[] {
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
  const list = await ifSupported(client.call(policyOperations.list, {}, callOptions()))
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
    const request: { policy_uuid: string; from: string | null } = { policy_uuid: uuid, from }
    const found: SearchPage | undefined = await ifSupported(
      client.call(policyOperations.assignments, request, callOptions()),
    )
    if (found === undefined) return undefined
    const { page } = found
    ids.push(
      ...page.items.flatMap((item) => wireAssignee.safeParse(item).data?.identifier_id ?? []),
    )
    const isLast = (page.next ?? null) === null || page.next === from
    if (isLast) return ids
    from = page.next ?? null
  }
  return undefined
}

/** undefined: the server does not know path or method, or answers in an unexpected shape. */
async function ifSupported<Result>(request: Promise<Result>): Promise<Result | undefined> {
  try {
    return await request
  } catch (error) {
    const { status, reason } = error instanceof UpstreamError ? error : {}
    if (status === 404 || status === 405 || reason === 'contract') return undefined
    throw error
  }
}

async function undefinedIfNotFound<Result>(read: Promise<Result>): Promise<Result | undefined> {
  try {
    return await read
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** A keyed digest: what an asset watches for may be a secret, and the state holds none. */
export type DataDigest = (data: unknown) => string

/** The part of a returned asset that the state remembers: of `data`, its digest. */
export function toAssetState(
  { data, ...returned }: WireAsset,
  fallback: boolean | null,
  digest: DataDigest,
): Pick<KnownAsset, 'returned' | 'disabled'> {
  const digested = data === undefined || data === null ? {} : { data: digest(data) }
  return { returned: { ...returned, ...digested }, disabled: returned.is_disabled ?? fallback }
}

/**
 * Returns the state with the assets as the service shows them. Returns the same state when nothing
 * differs but what the service counts by itself.
 */
export function refreshState(
  { desired, state, actual }: PlanInput,
  digest: DataDigest,
): MonitoringState {
  const changed = Object.entries(state.assets).flatMap(([key, known]) => {
    const found = actual.assets.get(known.id)
    if (found === undefined || isUnseen(known)) return []
    const asset = desired.assets.find((one) => one.key === key)
    const refreshed = refreshAsset(found, { asset, known }, digest)
    return comparableAsset(refreshed) === comparableAsset(known) ? [] : [[key, refreshed] as const]
  })
  if (changed.length === 0) return state
  return { ...state, assets: { ...state.assets, ...Object.fromEntries(changed) } }
}

function refreshAsset(
  found: WireAsset,
  { asset, known }: { asset: DesiredAsset | undefined; known: KnownAsset },
  digest: DataDigest,
): KnownAsset {
  const seen = toAssetState(found, known.disabled, digest)
  // The file says nothing, and somebody enabled it: from now on it is theirs to switch.
  const isReleased = asset !== undefined && asset.enabled !== false && seen.disabled === false
  return {
    ...known,
    ...seen,
    disabled_by_file: known.disabled_by_file && !isReleased,
    written: findWritten(found, { asset, known }, digest),
  }
}

/**
 * The fields of the file that the service has. A field that somebody changed there since it last
 * came back is null, so that it is put right even if this run stops before. What the service itself
 * made of a value, such as lower case, is no change.
 */
function findWritten(
  found: Readonly<Record<string, unknown>>,
  { asset, known }: { asset: DesiredAsset | undefined; known: KnownAsset },
  digest: DataDigest,
): Record<string, unknown> {
  const before = known.written ?? {}
  const inFile: Readonly<Record<string, unknown>> = asset?.body ?? {}
  const fields = new Set([...Object.keys(before), ...Object.keys(asset?.written ?? {})])
  const entries = [...fields].flatMap((field): [string, unknown][] => {
    const [now, last] = [found[field], known.returned?.[field]]
    if (now !== undefined && field in inFile && isAlike(now, inFile[field])) {
      return [[field, asset?.written[field]]]
    }
    const shown = field === 'data' ? digest(now) : now
    if (now !== undefined && last !== undefined && !isAlike(shown, last)) return [[field, null]]
    return Object.hasOwn(before, field) ? [[field, before[field]]] : []
  })
  return Object.fromEntries(entries)
}

/** What the service changes by itself between two answers. */
const measuredFields = new Set([
  'count',
  'fetching_progress',
  'data_updated_at',
  'updated_at',
  'enrichments',
])

function comparableAsset({ returned, ...known }: KnownAsset): string {
  const fields = Object.entries(returned ?? {}).filter(([field]) => !measuredFields.has(field))
  return canonicalJson({ ...known, returned: Object.fromEntries(fields) })
}

/** The content of a policy as the API returns it, where `type` is called `policy_type`. */
export function toPolicyContent({ name, policy_type: type, value }: WirePolicy): PolicyContent {
  return { name, type, value: value ?? {} }
}

/**
 * Finds out what an adopted asset is. Where the server shows no single asset, it shows one only in
 * answer to a change: the asset is set to the enabled state of the file, after a confirmation;
 * another confirmation precedes its adoption.
 */

interface InspectParts {
  client: Pick<UpstreamClient, 'toggleAsset'>
  callOptions: () => CallOptions
  digest: DataDigest
}

interface InspectOptions {
  yes?: true
  plan?: true
  output: string
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
 * Returns the state with what the assets are; a mere plan leaves out what would have to be changed
 * to be seen. Throws CommandError when one has another type, or the operator says no.
 */
export async function inspectAdopted(
  context: Context,
  { yes, plan, output }: InspectOptions,
  parts: InspectParts,
  { desired, state, actual }: PlanInput,
): Promise<MonitoringState> {
  let current = state
  for (const unseen of findUnseenAssets(desired, state)) {
    const { key } = unseen.asset
    const shown = actual.assets.get(unseen.known.id)
    if (shown === undefined && plan) continue
    if (shown === undefined && !yes)
      await requireConfirmation(context, [`${formatInspection(unseen)}.`])
    const found = shown ?? (await inspectAsset(unseen, parts))
    const change =
      shown === undefined ? `${unseen.known.id} is ${formatSwitch(unseen.asset)} now` : undefined
    refuseType(unseen, found, change)
    if (output === 'text') context.terminal.print(`asset ${key}: ${formatFound(found)}`)
    if (!yes && !plan) await confirmAdoption(context, unseen, { found, change })
    const known = toKnownAsset(found, unseen, parts.digest)
    current = { ...current, assets: { ...current.assets, [key]: known } }
  }
  return current
}

/**
 * `asset web: to see what 5001 is, it is enabled; this server shows an asset only in answer to a
 * change`.
 */
export function formatInspection({ asset, known }: UnseenAsset): string {
  const reason = 'this server shows an asset only in answer to a change'
  return `asset ${asset.key}: to see what ${known.id} is, it is ${formatSwitch(asset)}; ${reason}`
}

/** Enables or disables the asset, as the file says, and returns it. */
export function inspectAsset(
  { asset, known }: UnseenAsset,
  { client, callOptions }: Pick<InspectParts, 'client' | 'callOptions'>,
): Promise<WireAsset> {
  const isDisabled = asset.enabled === false
  const thing = `asset ${asset.key} (${known.id})`
  return nameUpstreamError(
    thing,
    client.toggleAsset({ id: known.id, isDisabled, ...callOptions() }),
  )
}

/** Fields that already match the file count as written from it. */
export function toKnownAsset(
  found: WireAsset,
  { asset, known }: UnseenAsset,
  digest: DataDigest,
): KnownAsset {
  const group = asset.written['assets_group_id']
  const blank = { ...known, written: group === undefined ? {} : { assets_group_id: group } }
  const isDisabled = asset.enabled === false
  const seen = toAssetState(found, isDisabled, digest)
  return {
    ...blank,
    ...seen,
    disabled_by_file: isDisabled && seen.disabled === true,
    written: findWritten(found, { asset, known: blank }, digest),
  }
}

/** The order of lists has no meaning, and no list is an empty one. */
function isAlike(left: unknown, right: unknown): boolean {
  return comparableText(left) === comparableText(right)
}

function comparableText(value: unknown): string {
  if (value === null) return '[]'
  return canonicalJson(Array.isArray(value) ? value.map(canonicalText).toSorted() : value)
}

function canonicalText(value: unknown): string {
  return canonicalJson(value)
}

/** `change`: what was done to see the asset, such as `77 is enabled now`. */
function refuseType(
  { asset, known }: UnseenAsset,
  found: WireAsset,
  change: string | undefined,
): void {
  if (found.type === asset.body.type) return
  const foundText = `asset ${formatFound({ ...found, id: known.id })}`
  const wanted = `${asset.key} of the file is of type ${asset.body.type}`
  const rest =
    change === undefined ? 'nothing was changed' : `${change}, and else nothing was changed`
  throw new CommandError('mistake', `--adopt: ${foundText}, and ${wanted}; ${rest}`)
}

async function confirmAdoption(
  context: Context,
  { asset }: UnseenAsset,
  { found, change }: { found: WireAsset; change: string | undefined },
): Promise<void> {
  const { key } = asset
  if (change === undefined) {
    const about = [`Asset ${key} of the file is taken to be ${formatFound(found, ',')}.`]
    return requireConfirmation(context, about)
  }
  if (await context.terminal.confirm(`Take it for ${key}?`)) return
  throw new CommandError('refused', `asset ${key} was not adopted; ${change}`)
}

/** `77 is "example.com", of type domain`. */
function formatFound({ id, name, type }: WireAsset, verb = ' is'): string {
  return `${id}${verb} "${sanitize(maskText(name), 80)}", of type ${sanitize(type, 40)}`
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
