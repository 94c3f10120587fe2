/**
 * What an adopted asset is. The API shows an asset only in answer to a change, so it is switched to
 * what the file says, which is asked about before; and what came back, before it is taken.
 */
import { canonicalJson } from '../../feeds/canonical-json.ts'
import type { ServiceClient } from '../../service/client.ts'
import type { Asked } from '../../service/operations/operation.ts'
import type { WireAsset } from '../../service/wire/assets.ts'
import { askFirst } from '../ask-first.ts'
import { CommandError } from '../command-error.ts'
import type { Context } from '../context.ts'
import { harmless } from '../words.ts'
import { nameServiceError } from './name-service-error.ts'
import { readAsset } from './read-asset.ts'
import { assetIn, isUnseen, type KnownAsset, type MonitoringState } from './state-file.ts'
import type { Wanted, WantedAsset } from './wanted.ts'

export interface LookParts {
  client: Pick<ServiceClient, 'toggleAsset'>
  asked: () => Asked
}

export interface Unseen {
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
