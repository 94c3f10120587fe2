/** One step of a plan, and what it leaves in the state. All but creations may be repeated. */
import type { AssetReplacement } from '../../service/wire/assets.ts'
import { createAsset, createPolicy } from './create-step.ts'
import { isAbsent } from './is-absent.ts'
import type { Step, StepOf } from './plan-step.ts'
import { readAsset } from './read-asset.ts'
import { readPolicy } from './read-policy.ts'
import {
  assetIn,
  policyIn,
  withoutPolicy,
  type KnownAsset,
  type PolicyContent,
} from './state-file.ts'
import type { StepParts } from './step-parts.ts'
import type { WantedAsset } from './wanted.ts'

/** Throws ServiceError, and what the state file throws. */
export async function takeStep(step: Step, parts: StepParts): Promise<void> {
  switch (step.do) {
    case 'create asset':
      return createAsset(step, parts)
    case 'replace asset':
      return replaceAsset(step, parts)
    case 'enable asset':
    case 'disable asset':
      return toggleAsset(step, parts)
    case 'create policy':
      return createPolicy(step, parts)
    case 'update policy':
      return updatePolicy(step, parts)
    case 'assign policy':
    case 'unassign policy':
      return assignPolicy(step, parts)
    case 'assign to others':
      return assignToOthers(step, parts)
    case 'delete policy':
      return deletePolicy(step, parts)
  }
}

async function replaceAsset(step: StepOf<'replace asset'>, parts: StepParts): Promise<void> {
  const { asset, id } = step
  const known = knownAsset(asset.key, parts)
  const body = replacementOf(asset, known)
  const made = await parts.client.replaceAsset({ id, asset: body, ...parts.asked() })
  const group = known.written?.['assets_group_id']
  const written = { ...asset.written, ...(group === undefined ? {} : { assets_group_id: group }) }
  keepAsset(asset.key, { ...known, ...readAsset(made, known.disabled), written }, parts)
}

/** The whole of what came back last, with what the file says in its place. */
function replacementOf(
  { body }: WantedAsset,
  { returned, disabled }: KnownAsset,
): AssetReplacement {
  const { assets_group_id: _group, ...said } = body
  const search_types = said.search_types as AssetReplacement['search_types'] // checked before: no ad
  return {
    ...returned,
    ...(disabled === null ? {} : { is_disabled: disabled }),
    ...said,
    search_types,
  }
}

async function toggleAsset(
  step: StepOf<'enable asset' | 'disable asset'>,
  parts: StepParts,
): Promise<void> {
  const known = knownAsset(step.key, parts)
  const isDisabled = step.do === 'disable asset'
  const made = await parts.client.toggleAsset({ id: known.id, isDisabled, ...parts.asked() })
  const switched = { disabled: isDisabled, disabled_by_file: isDisabled }
  keepAsset(step.key, { ...known, ...readAsset(made, isDisabled), ...switched }, parts)
}

async function updatePolicy(step: StepOf<'update policy'>, parts: StepParts): Promise<void> {
  const { uuid, policy } = step
  const { name, value } = policy.body
  const made = await parts.client.updatePolicy({ uuid, name, value, ...parts.asked() })
  const state = parts.file.current()
  const known = { uuid, written: contentOf(policy.body), returned: readPolicy(made) }
  parts.file.save({ ...state, policies: { ...state.policies, [policy.key]: known } })
}

async function assignPolicy(
  step: StepOf<'assign policy' | 'unassign policy'>,
  parts: StepParts,
): Promise<void> {
  const { key, assets } = step
  const { client, file } = parts
  const identifier_ids = assets.map((asset) => knownAsset(asset, parts).id)
  if (step.do === 'assign policy') {
    const { uuid } = knownPolicy(key, parts)
    const assignment = { identifier_ids, clean_past_events: parts.cleanPastEvents }
    await client.assignPolicy({ uuid, assignment, ...parts.asked() })
  } else {
    const assignment = { identifier_ids }
    await client.unassignPolicy({ uuid: step.uuid, assignment, ...parts.asked() })
  }
  const state = file.current()
  const changed = assets.map((asset): [string, KnownAsset] => {
    const known = knownAsset(asset, parts)
    const others = known.policies.filter((policy) => policy !== key)
    return [asset, { ...known, policies: step.do === 'assign policy' ? [...others, key] : others }]
  })
  file.save({ ...state, assets: { ...state.assets, ...Object.fromEntries(changed) } })
}

/** Whatever else the file says of them: what they matched before stays theirs. */
async function assignToOthers(
  { key, ids }: StepOf<'assign to others'>,
  { client, asked, ...parts }: StepParts,
): Promise<void> {
  const { uuid } = knownPolicy(key, parts)
  const assignment = { identifier_ids: [...ids], clean_past_events: false }
  await client.assignPolicy({ uuid, assignment, ...asked() })
}

async function deletePolicy(step: StepOf<'delete policy'>, parts: StepParts): Promise<void> {
  const { key, uuid, why } = step
  try {
    await parts.client.deletePolicy({ uuid, ...parts.asked() })
  } catch (error) {
    if (!isAbsent(error)) throw error
  }
  const state = parts.file.current()
  const retired = state.retired.filter((one) => one.uuid !== uuid)
  parts.file.save(
    why === 'left' ? withoutPolicy({ ...state, retired }, key) : { ...state, retired },
  )
}

function contentOf({ name, type, value }: PolicyContent): PolicyContent {
  return { name, type, value }
}

function keepAsset(key: string, known: KnownAsset, { file }: StepParts): void {
  const state = file.current()
  file.save({ ...state, assets: { ...state.assets, [key]: known } })
}

function knownAsset(key: string, { file }: Pick<StepParts, 'file'>): KnownAsset {
  const known = assetIn(file.current(), key)
  if (known === undefined) throw new Error(`the state has no asset ${key}`)
  return known
}

function knownPolicy(key: string, { file }: Pick<StepParts, 'file'>): { uuid: string } {
  const known = policyIn(file.current(), key)
  if (known === undefined) throw new Error(`the state has no policy ${key}`)
  return known
}
