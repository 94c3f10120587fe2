/** A plan as people read it, and as machines do; never a value of an asset, which may be a secret. */
import { counted, harmless, type Style } from '../terminal.ts'
import { lookWords, unseenAssets } from './actual.ts'
import {
  isSame,
  type Others,
  ownUuids,
  type Scene,
  type Step,
  type StepOf,
  type WhyPolicy,
} from './plan.ts'
import { assetIn, policyIn } from './state-file.ts'

interface StepLine {
  text: string
  style: Style
}

export function stepLine(step: Step, cleanPastEvents: boolean): StepLine {
  return { text: `${marks[step.do]} ${wordsOf(step, cleanPastEvents)}`, style: styles[step.do] }
}

const marks: Record<Step['do'], string> = {
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

const styles: Record<Step['do'], Style> = {
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

function wordsOf(step: Step, cleanPastEvents: boolean): string {
  switch (step.do) {
    case 'create asset':
      return `asset ${step.asset.key}: create, type ${step.asset.body.type}`
    case 'replace asset':
      return `asset ${step.asset.key} (${step.id}): replace, for ${step.fields.join(', ')}; the rest of it, whether it is enabled too, goes back to how the last run saw it`
    case 'enable asset':
    case 'disable asset':
      return switchWords(step)
    case 'create policy':
      return `policy ${step.policy.key}: create, ${step.policy.body.type}${whyWords[step.why]}`
    case 'update policy':
      return `policy ${step.policy.key} (${step.uuid}): update${whyWords[step.why]}${sharedWords(step.others)}`
    case 'assign policy': {
      const clean = cleanPastEvents ? '; past events that it does not let through go' : ''
      return `policy ${step.key}: assign to ${step.assets.join(', ')}${driftWords('taken it from', step.drifted)}${clean}`
    }
    case 'assign to others':
      return `policy ${step.key}: assign to ${idWords(step.ids)} too, not of this file, which have the one before it`
    case 'unassign policy':
      return `policy ${step.key}: take from ${step.assets.join(', ')}${driftWords('given it to', step.drifted)}`
    case 'delete policy':
      return `policy ${step.key} (${step.uuid}): delete, ${step.why === 'left' ? 'it left the file' : 'its successor is there'}${losersWords(step.losers, '; ')}`
  }
}

const whyWords: Record<WhyPolicy, string> = {
  new: '',
  changed: '; it has changed in the file',
  drifted: '; somebody has changed it at the service',
  unassign: '; it takes the place of the one that too many assets have',
}

function driftWords(verb: string, assets: readonly string[]): string {
  return assets.length === 0 ? '' : `; somebody has ${verb} ${assets.join(', ')}`
}

function switchWords(step: StepOf<'enable asset' | 'disable asset'>): string {
  const { do: verb, key, id, why } = step
  const reason = why === 'left' ? '; it left the file, and the API deletes no asset' : ''
  return `asset ${key}${id === undefined ? '' : ` (${id})`}: ${verb === 'enable asset' ? 'enable' : 'disable'}${reason}`
}

function sharedWords(others: Others): string {
  if (others === 'unknown' || others.length === 0) return ''
  return `; ${idWords(others)}, not of this file, ${others.length === 1 ? 'has' : 'have'} it too`
}

/** Who loses a policy that is deleted; '' where nobody does. */
function losersWords(losers: Others, before: string): string {
  if (losers === 'unknown') {
    return `${before}whatever has it and is not of this file loses it, and the server does not tell what that is`
  }
  if (losers.length === 0) return ''
  return `${before}${idWords(losers)}, not of this file, ${losers.length === 1 ? 'loses' : 'lose'} it`
}

const mostIds = 20

function idWords(ids: readonly number[]): string {
  const shown = ids.slice(0, mostIds).join(', ')
  return ids.length > mostIds ? `${shown} and ${ids.length - mostIds} more` : shown
}

/** What a plan leaves as it is, and who should know; each a sentence. */

export function notesOn(scene: Scene): string[] {
  return [
    ...adoptedAssets(scene),
    ...adoptedPolicies(scene),
    ...foreignPolicies(scene),
    ...disabledByOthers(scene),
  ]
}

/** Of a plan alone, which switches nothing. */
function adoptedAssets({ wanted, state }: Scene): string[] {
  return unseenAssets(wanted, state).map(
    (unseen) => `${lookWords(unseen)}, so what must be replaced in it is not known yet`,
  )
}

function adoptedPolicies({ wanted, state, actual }: Scene): string[] {
  return wanted.policies.flatMap(({ key, body }) => {
    const known = policyIn(state, key)
    const there = known?.written === null ? actual.policies.get(known.uuid) : undefined
    if (known === undefined || there === undefined || isSame(there, body)) return []
    return [
      `policy ${key} is taken to be "${harmless(there.name, 60)}" (${known.uuid}), which is not as the file has it`,
    ]
  })
}

/** Policies of an asset that the file does not know, which are left alone. */
function foreignPolicies({ state, actual }: Scene): string[] {
  const own = ownUuids(state)
  return Object.entries(state.assets).flatMap(([key, { id }]) =>
    (actual.assigned.get(id) ?? [])
      .filter((uuid) => !own.has(uuid))
      .map((uuid) => {
        const name = harmless(actual.policies.get(uuid)?.name ?? '', 60)
        return `asset ${key} also has the policy "${name}" (${harmless(uuid, 64)}), which is not of this file: left as it is`
      }),
  )
}

function disabledByOthers({ wanted, state }: Scene): string[] {
  return wanted.assets.flatMap(({ key, enabled }) => {
    const known = assetIn(state, key)
    const isLeft = enabled === undefined && known?.disabled === true && !known.disabled_by_file
    return isLeft
      ? [
          `asset ${key} (${known.id}) is disabled, and not by this file: left as it is; "enabled: true" enables it`,
        ]
      : []
  })
}

/** Operations of a plan that the API's description does not have. */
export function undescribedIn(steps: readonly Step[]): string[] {
  const isGrouped = (step: Step): boolean =>
    step.do === 'create asset' && step.asset.body.assets_group_id !== undefined
  return [
    ...(steps.some(isGrouped) ? ['the group of a new asset'] : []),
    ...(steps.some((step) => step.do === 'assign to others') ? ['GET of assignments'] : []),
    ...(steps.some((step) => step.do === 'update policy') ? ['PUT of a policy'] : []),
    ...(steps.some((step) => step.do === 'unassign policy') ? ['DELETE of assignments'] : []),
  ]
}

/** What cannot be taken back, as a sentence; undefined where there is nothing of it. */
export function riskIn(steps: readonly Step[], cleanPastEvents: boolean): string | undefined {
  const count = (kind: Step['do']): number =>
    steps.filter((step) => step.do === kind && !isOfNew(step)).length
  const said = [
    of(count('replace asset'), 'asset', 'replaced (what others changed is undone)'),
    of(count('disable asset'), 'asset', 'disabled'),
    of(count('update policy'), 'policy', 'changed'),
    of(count('unassign policy'), 'policy', 'taken from assets'),
    of(count('delete policy'), 'policy', 'deleted'),
    ...(cleanPastEvents && count('assign policy') > 0 ? ['past events taken away'] : []),
  ].filter((part) => part !== '')
  if (said.length === 0) return undefined
  return [said.join(', '), ...lossesIn(steps)].map((sentence) => `${sentence}.`).join(' ')
}

/** An asset that is created disabled was never enabled. */
function isOfNew(step: Step): boolean {
  return step.do === 'disable asset' && step.id === undefined
}

function lossesIn(steps: readonly Step[]): string[] {
  return steps.flatMap((step) => {
    const words = step.do === 'delete policy' ? losersWords(step.losers, '') : ''
    return step.do === 'delete policy' && words !== '' ? [`Policy ${step.key}: ${words}`] : []
  })
}

function of(count: number, thing: string, done: string): string {
  if (count === 0) return ''
  return `${counted(count, thing, thing === 'policy' ? 'policies' : `${thing}s`)} ${done}`
}

/** A step without the values of what it writes. */
export function stepJson(step: Step): Record<string, unknown> {
  switch (step.do) {
    case 'create asset':
      return { do: step.do, asset: step.asset.key, type: step.asset.body.type }
    case 'replace asset':
      return { do: step.do, asset: step.asset.key, id: step.id, fields: step.fields }
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
        others: idsOf(step.others),
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
        losers: idsOf(step.losers),
      }
  }
}

/** null: the server does not tell. */
function idsOf(others: Others): readonly number[] | null {
  return others === 'unknown' ? null : others
}
