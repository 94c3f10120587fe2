/** The state with what the operator says of it, held against what the service shows. */
import { CommandError } from '../command-error.ts'
import { harmless } from '../words.ts'
import type { Adoption, Doubts } from './doubts.ts'
import { twinsOf } from './lost-and-found.ts'
import { isSame } from './plan-policies.ts'
import type { Scene } from './plan-step.ts'
import {
  assetIn,
  policyIn,
  withoutPolicy,
  type KnownAsset,
  type MonitoringState,
  type PolicyContent,
} from './state-file.ts'

/** Throws CommandError where it fits neither file, state nor service. */
export function settleDoubts(
  scene: Scene,
  { adopt = [], createAgain = [] }: Doubts,
): MonitoringState {
  const forgotten = createAgain.reduce(
    (state, name) => forget(name, { ...scene, state }),
    scene.state,
  )
  return adopt.reduce((state, adoption) => take(adoption, { ...scene, state }), forgotten)
}

function take(adoption: Adoption, scene: Scene): MonitoringState {
  return adoption.kind === 'asset' ? takeAsset(adoption, scene) : takePolicy(adoption, scene)
}

/** What it is has not been seen: see `lookAtAdopted`. */
function takeAsset(
  { name, id }: Adoption & { kind: 'asset' },
  { state, actual }: Scene,
): MonitoringState {
  const before = assetIn(state, name)
  if (before !== undefined && !actual.gone.has(before.id)) refuseKnown('asset', name, before.id)
  refuseTaken(Object.entries(state.assets).find(([, known]) => known.id === id)?.[0], id)
  if (actual.gone.has(id)) refuseAbsent('asset', id)
  const unseen: KnownAsset = {
    id,
    written: null,
    disabled: null,
    disabled_by_file: false,
    returned: null,
    policies: [],
  }
  const pending = isPending(state, 'asset', name) ? null : state.pending
  return { ...state, pending, assets: { ...state.assets, [name]: unseen } }
}

/** One that was created in the place of another: that one is deleted once this one is assigned. */
function takePolicy({ name, id }: Adoption & { kind: 'policy' }, scene: Scene): MonitoringState {
  const { state, actual, wanted } = scene
  refuseTaken(Object.entries(state.policies).find(([, known]) => known.uuid === id)?.[0], id)
  const found = actual.policies.get(id)
  const body = wanted.policies.find(({ key }) => key === name)?.body
  if (found === undefined || body === undefined) return refuseAbsent('policy', id)
  if (found.type !== body.type) refuseType(name, id, { found, asked: body })
  const before = policyIn(state, name)?.uuid
  const there = before === undefined ? undefined : actual.policies.get(before)
  const isInPlace =
    isPending(state, 'policy', name) || (isSame(found, body) && !isTwin(there, body))
  if (before !== undefined && there !== undefined && !isInPlace) refuseKnown('policy', name, before)
  const replaced = before === undefined || there === undefined ? [] : [{ name, uuid: before }]
  const retired = state.retired.filter(({ uuid }) => uuid !== id)
  return {
    ...state,
    pending: isPending(state, 'policy', name) ? null : state.pending,
    policies: { ...state.policies, [name]: { uuid: id, written: null, returned: null } },
    retired: [...retired, ...replaced],
  }
}

function isTwin(there: PolicyContent | undefined, body: PolicyContent): boolean {
  return there !== undefined && isSame(there, body)
}

/** Of what is there, nothing is forgotten: it would be made twice. */
function forget(name: string, scene: Scene): MonitoringState {
  const { state, actual } = scene
  if (state.pending?.name === name) return { ...state, pending: null }
  const asset = assetIn(state, name)
  const policy = policyIn(state, name)
  const isAssetGone = asset !== undefined && actual.gone.has(asset.id)
  const isPolicyGone = policy !== undefined && !actual.policies.has(policy.uuid)
  if (isAssetGone || isPolicyGone) {
    const rest = isPolicyGone ? withoutPolicy(state, name) : state
    return isAssetGone ? withoutAsset(rest, name) : rest
  }
  if (policy === undefined && twinsOf(name, scene).length > 0) return state
  const id = asset?.id ?? policy?.uuid
  const problem =
    id === undefined
      ? `${name} has never been created`
      : `${name} is ${id}, which is there; another one would be made beside it`
  throw new CommandError('mistake', `--create-again: ${problem}`)
}

function withoutAsset(state: MonitoringState, key: string): MonitoringState {
  const others = Object.entries(state.assets).filter(([name]) => name !== key)
  return { ...state, assets: Object.fromEntries(others) }
}

function refuseKnown(kind: string, name: string, id: number | string): void {
  throw new CommandError('mistake', `--adopt: the ${kind} ${name} is ${id} already`)
}

function refuseTaken(holder: string | undefined, id: number | string): void {
  if (holder === undefined) return
  throw new CommandError('mistake', `--adopt: ${id} is ${holder} already`)
}

function refuseAbsent(kind: string, id: number | string): never {
  throw new CommandError('mistake', `--adopt: the service has no ${kind} ${id}`)
}

function refuseType(
  name: string,
  id: string,
  { found, asked }: { found: PolicyContent; asked: PolicyContent },
): void {
  const what = `${id} is "${harmless(found.name, 60)}" of type ${harmless(found.type, 40)}`
  throw new CommandError('mistake', `--adopt: ${what}, and ${name} of the file is ${asked.type}`)
}

function isPending({ pending }: MonitoringState, kind: string, name: string): boolean {
  return pending?.kind === kind && pending.name === name
}
