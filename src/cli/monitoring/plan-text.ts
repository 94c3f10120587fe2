/** A plan as text and as JSON; never with a value of an asset, which may be a secret. */
import { maskText } from '../../masking/masking.ts'
import { pluralize, sanitize, type Style } from '../terminal.ts'
import { formatInspection, findUnseenAssets } from './actual.ts'
import {
  type DriftedField,
  isSame,
  type OtherHolders,
  ownUuids,
  type PlanInput,
  type Step,
  type StepOf,
  type SwitchReason,
  type PolicyReason,
} from './plan.ts'
import { findAsset, findPolicy, isUnseen } from './state-file.ts'

interface StepLine {
  text: string
  style: Style
}

export function stepLine(step: Step, cleanPastEvents: boolean): StepLine {
  return {
    text: `${stepMarks[step.do]} ${formatStep(step, cleanPastEvents)}`,
    style: stepStyles[step.do],
  }
}

const stepMarks: Record<Step['do'], string> = {
  'create policy': '+',
  'create asset': '+',
  'assign policy': '+',
  'assign to others': '+',
  'enable asset': '+',
  'replace asset': '~',
  'update policy': '~',
  'disable asset': '-',
  'unassign policy': '-',
  'delete policy': '-',
}

const stepStyles: Record<Step['do'], Style> = {
  'create policy': 'green',
  'create asset': 'green',
  'assign policy': 'green',
  'assign to others': 'green',
  'enable asset': 'green',
  'replace asset': 'yellow',
  'update policy': 'yellow',
  'disable asset': 'red',
  'unassign policy': 'red',
  'delete policy': 'red',
}

function formatStep(step: Step, cleanPastEvents: boolean): string {
  switch (step.do) {
    case 'create asset':
      return `asset ${step.asset.key}: create, type ${step.asset.body.type}`
    case 'replace asset':
      return formatReplacement(step)
    case 'enable asset':
    case 'disable asset':
      return formatSwitchStep(step)
    case 'create policy':
      return `policy ${step.policy.key}: create, ${step.policy.body.type}${reasonText[step.why]}`
    case 'update policy':
      return `policy ${step.policy.key} (${step.uuid}): update${reasonText[step.why]}${formatOtherHolders(step.others)}`
    case 'assign policy': {
      const clean = cleanPastEvents ? '; past events that it does not let through go' : ''
      return `policy ${step.key}: assign to ${step.assets.join(', ')}${formatDrift('taken it from', step.drifted)}${clean}`
    }
    case 'assign to others':
      return `policy ${step.key}: assign to ${formatIds(step.ids)} too, not of this file, which have the one before it`
    case 'unassign policy':
      return `policy ${step.key}: take from ${step.assets.join(', ')}${formatDrift('given it to', step.drifted)}`
    case 'delete policy':
      return `policy ${step.key} (${step.uuid}): delete, ${step.why === 'left' ? 'it left the file' : 'its successor is there'}${formatLosers(step.losers, '; ')}`
  }
}

function formatReplacement({
  asset,
  id,
  fields,
  drifted,
  isBlind,
}: StepOf<'replace asset'>): string {
  const changes = drifted.map(formatDriftedField).join(', ')
  const drift = changes === '' ? '' : `; somebody has changed ${changes}`
  const rest = isBlind
    ? '; the rest of it, whether it is enabled too, goes back to how the last run saw it'
    : ''
  return `asset ${asset.key} (${id}): replace, for ${fields.join(', ')}${drift}${rest}`
}

/** `risks to 1, 2`; of `data` the name alone. */
function formatDriftedField({ field, now }: DriftedField): string {
  if (field === 'data') return field
  const values = Array.isArray(now) ? now.map(String) : [`"${String(now)}"`]
  return `${field} to ${sanitize(maskText(values.join(', ')), 80) || 'nothing'}`
}

const reasonText: Record<PolicyReason, string> = {
  new: '',
  changed: '; it has changed in the file',
  drifted: '; somebody has changed it at the service',
  unassign: '; it takes the place of the one that too many assets have',
}

function formatDrift(verb: string, assets: readonly string[]): string {
  return assets.length === 0 ? '' : `; somebody has ${verb} ${assets.join(', ')}`
}

function formatSwitchStep({
  do: verb,
  key,
  id,
  why,
}: StepOf<'enable asset' | 'disable asset'>): string {
  const place = `asset ${key}${id === undefined ? '' : ` (${id})`}`
  return verb === 'enable asset'
    ? `${place}: enable${why === 'drifted' ? '; somebody has disabled it' : ''}`
    : `${place}: disable${disableText[why]}`
}

const disableText: Record<SwitchReason, string> = {
  asked: '',
  drifted: '; somebody has enabled it',
  left: '; it left the file, and what it found stays at the service',
  'left, and enabled again': '; it left the file, and somebody has enabled it',
}

function formatOtherHolders(others: OtherHolders): string {
  if (others === 'unknown' || others.length === 0) return ''
  return `; ${formatIds(others)}, not of this file, ${others.length === 1 ? 'has' : 'have'} it too`
}

/** Who loses a policy when it is deleted; '' when nobody does. */
function formatLosers(losers: OtherHolders, before: string): string {
  if (losers === 'unknown') {
    return `${before}whatever has it and is not of this file loses it, and the server does not tell what that is`
  }
  if (losers.length === 0) return ''
  return `${before}${formatIds(losers)}, not of this file, ${losers.length === 1 ? 'loses' : 'lose'} it`
}

const maxIds = 20

function formatIds(ids: readonly number[]): string {
  const shown = ids.slice(0, maxIds).join(', ')
  return ids.length > maxIds ? `${shown} and ${ids.length - maxIds} more` : shown
}

/** Sentences about what the plan leaves unchanged, and who should know. */

export function planNotes(input: PlanInput): string[] {
  return [
    ...adoptedAssets(input),
    ...doubtfulAssets(input),
    ...adoptedPolicies(input),
    ...foreignPolicies(input),
    ...disabledByOthers(input),
  ]
}

/** Adopted assets that were not inspected, as in a mere plan, which changes nothing. */
function adoptedAssets({ desired, state }: PlanInput): string[] {
  return findUnseenAssets(desired, state).map(
    (unseen) => `${formatInspection(unseen)}, so what must be replaced in it is not known yet`,
  )
}

function doubtfulAssets({ desired, state, actual }: PlanInput): string[] {
  return desired.assets.flatMap(({ key }) => {
    const known = findAsset(state, key)
    if (known === undefined || isUnseen(known) || !actual.doubtfulAssets.has(known.id)) return []
    const reason = 'the service answers 404 to whoever asks for it, and shows no other'
    return [
      `asset ${key} (${known.id}) may be gone: ${reason}; if it is, say --create-again ${key}`,
    ]
  })
}

function adoptedPolicies({ desired, state, actual }: PlanInput): string[] {
  return desired.policies.flatMap(({ key, body }) => {
    const known = findPolicy(state, key)
    const there = known?.written === null ? actual.policies.get(known.uuid) : undefined
    if (known === undefined || there === undefined || isSame(there, body)) return []
    return [
      `policy ${key} is taken to be "${sanitize(there.name, 60)}" (${known.uuid}), which is not as the file has it`,
    ]
  })
}

/** Policies of the assets that are not of the file, and are left alone. */
function foreignPolicies({ state, actual }: PlanInput): string[] {
  const own = ownUuids(state)
  return Object.entries(state.assets).flatMap(([key, { id }]) =>
    (actual.assigned.get(id) ?? [])
      .filter((uuid) => !own.has(uuid))
      .map((uuid) => {
        const name = sanitize(actual.policies.get(uuid)?.name ?? '', 60)
        return `asset ${key} also has the policy "${name}" (${sanitize(uuid, 64)}), which is not of this file: left as it is`
      }),
  )
}

function disabledByOthers({ desired, state }: PlanInput): string[] {
  return desired.assets.flatMap(({ key, enabled }) => {
    const known = findAsset(state, key)
    const isLeft = enabled === undefined && known?.disabled === true && !known.disabled_by_file
    return isLeft
      ? [
          `asset ${key} (${known.id}) is disabled, and not by this file: left as it is; "enabled: true" enables it`,
        ]
      : []
  })
}

/** The undocumented operations that a plan uses. */
export function listUndescribed(steps: readonly Step[]): string[] {
  const isGrouped = (step: Step): boolean =>
    step.do === 'create asset' && step.asset.body.assets_group_id !== undefined
  return [
    ...(steps.some(isGrouped) ? ['the group of a new asset'] : []),
    ...(steps.some((step) => step.do === 'assign to others') ? ['GET of assignments'] : []),
    ...(steps.some((step) => step.do === 'update policy') ? ['PUT of a policy'] : []),
    ...(steps.some((step) => step.do === 'unassign policy') ? ['DELETE of assignments'] : []),
  ]
}

/** A sentence about what cannot be undone; undefined when there is nothing. */
export function describeRisk(steps: readonly Step[], cleanPastEvents: boolean): string | undefined {
  const count = (kind: Step['do']): number =>
    steps.filter((step) => step.do === kind && !disablesNewAsset(step)).length
  const isBlind = steps.some((step) => step.do === 'replace asset' && step.isBlind)
  const parts = [
    formatCount(
      count('replace asset'),
      'asset',
      `replaced${isBlind ? ' (what others changed is undone)' : ''}`,
    ),
    formatCount(count('disable asset'), 'asset', 'disabled'),
    formatCount(count('update policy'), 'policy', 'changed'),
    formatCount(count('unassign policy'), 'policy', 'taken from assets'),
    formatCount(count('delete policy'), 'policy', 'deleted'),
    ...(cleanPastEvents && count('assign policy') > 0 ? ['past events taken away'] : []),
  ].filter((part) => part !== '')
  if (parts.length === 0) return undefined
  return [parts.join(', '), ...describeLosses(steps)].map((sentence) => `${sentence}.`).join(' ')
}

/** An asset that is created disabled was never enabled. */
function disablesNewAsset(step: Step): boolean {
  return step.do === 'disable asset' && step.id === undefined
}

function describeLosses(steps: readonly Step[]): string[] {
  return steps.flatMap((step) => {
    const words = step.do === 'delete policy' ? formatLosers(step.losers, '') : ''
    return step.do === 'delete policy' && words !== '' ? [`Policy ${step.key}: ${words}`] : []
  })
}

function formatCount(count: number, thing: string, done: string): string {
  if (count === 0) return ''
  return `${pluralize(count, thing, thing === 'policy' ? 'policies' : `${thing}s`)} ${done}`
}

/** A step without the values that it writes. */
export function stepJson(step: Step): Record<string, unknown> {
  switch (step.do) {
    case 'create asset':
      return { do: step.do, asset: step.asset.key, type: step.asset.body.type }
    case 'replace asset':
      return {
        do: step.do,
        asset: step.asset.key,
        id: step.id,
        fields: step.fields,
        drifted: step.drifted.map(({ field }) => field),
      }
    case 'enable asset':
    case 'disable asset':
      return { do: step.do, asset: step.key, id: step.id ?? null, why: step.why }
    case 'create policy':
      return {
        do: step.do,
        policy: step.policy.key,
        type: step.policy.body.type,
        why: step.why,
        instead: step.instead ?? null,
      }
    case 'update policy':
      return {
        do: step.do,
        policy: step.policy.key,
        uuid: step.uuid,
        why: step.why,
        others: idsOrNull(step.others),
      }
    case 'assign to others':
      return { do: step.do, policy: step.key, identifiers: step.ids }
    case 'assign policy':
      return { do: step.do, policy: step.key, assets: step.assets, drifted: step.drifted }
    case 'unassign policy':
      return {
        do: step.do,
        policy: step.key,
        uuid: step.uuid,
        assets: step.assets,
        drifted: step.drifted,
      }
    case 'delete policy':
      return {
        do: step.do,
        policy: step.key,
        uuid: step.uuid,
        why: step.why,
        losers: idsOrNull(step.losers),
      }
  }
}

/** null: the server does not list the holders. */
function idsOrNull(others: OtherHolders): readonly number[] | null {
  return others === 'unknown' ? null : others
}
