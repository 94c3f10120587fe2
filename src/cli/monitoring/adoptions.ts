/**
 * `--adopt` and `--create-again`: the operator says whether a creation without an answer was done,
 * and under which id.
 */
import { InvalidArgumentError } from 'commander'
import { suggestion } from '../../lib/errors.ts'
import { parseUuid, parseId } from '../api/api-command.ts'
import { CommandError, sanitize } from '../terminal.ts'
import type { DesiredState } from './monitoring-file.ts'
import { isSame, mayBeGone, type PlanInput, findTwins } from './plan.ts'
import {
  findAsset,
  type KnownAsset,
  type MonitoringState,
  type PolicyContent,
  findPolicy,
  withoutPolicy,
} from './state-file.ts'

/** `<name>=<id>`: an asset by its number, a policy by its uuid. */
export type Adoption =
  | { kind: 'asset'; name: string; id: number }
  | { kind: 'policy'; name: string; id: string }

export interface AdoptionOptions {
  adopt?: readonly Adoption[]
  createAgain?: readonly string[]
}

/** Collects the values of `--adopt`. Throws InvalidArgumentError. */
export function appendAdoption(text: string, before: readonly Adoption[] = []): Adoption[] {
  const [, name = '', id = ''] = /^([a-z][\w-]*)=(.+)$/.exec(text) ?? []
  if (name === '') throw new InvalidArgumentError('Write <name>=<id>, such as brand=5001.')
  return [
    ...before,
    /^\d+$/.test(id)
      ? { kind: 'asset', name, id: parseId(id) }
      : { kind: 'policy', name, id: parseUuid(id) },
  ]
}

export function appendName(text: string, before: readonly string[] = []): string[] {
  return [...before, text]
}

/** Throws CommandError when an option names what the file does not have. */
export function refuseUnknownNames(
  { adopt = [], createAgain = [] }: AdoptionOptions,
  { assets, policies }: DesiredState,
  { pending }: MonitoringState,
): void {
  const assetKeys = assets.map(({ key }) => key)
  const policyKeys = policies.map(({ key }) => key)
  for (const { kind, name } of adopt) {
    refuseUnknown(kind, name, kind === 'asset' ? assetKeys : policyKeys)
  }
  for (const name of createAgain) {
    if (name !== pending?.name)
      refuseUnknown('asset or policy', name, [...assetKeys, ...policyKeys])
  }
}

function refuseUnknown(kind: string, name: string, names: readonly string[]): void {
  if (names.includes(name)) return
  const remedy = names.length === 0 ? 'it has none' : suggestion(name, names, 'there are')
  throw new CommandError('mistake', `the file has no ${kind} "${name}"; ${remedy}`)
}

/**
 * Throws CommandError when a creation was sent, its outcome is unknown, and no option says what it
 * was.
 */
export function refuseUnresolved(
  { pending }: MonitoringState,
  { adopt = [], createAgain = [] }: AdoptionOptions,
): void {
  if (pending === null) return
  const { kind, name, at } = pending
  if (createAgain.includes(name)) return
  if (adopt.some((adoption) => adoption.kind === kind && adoption.name === name)) return
  const id = kind === 'asset' ? '<id>' : '<uuid>'
  throw new CommandError(
    'refused',
    `${kind} ${name}: its creation was sent at ${at} and no answer came, so it may be there; ` +
      `look at the service, then say --adopt ${name}=${id} if it is, or --create-again ${name} if it is not`,
  )
}

/**
 * Returns the state with the operator's statements. Throws CommandError when one contradicts the
 * file, the state or the API.
 */
export function applyAdoptions(
  input: PlanInput,
  { adopt = [], createAgain = [] }: AdoptionOptions,
): MonitoringState {
  const forgotten = createAgain.reduce(
    (state, name) => forgetCreated(name, { ...input, state }),
    input.state,
  )
  return adopt.reduce((state, adoption) => applyAdoption(adoption, { ...input, state }), forgotten)
}

function applyAdoption(adoption: Adoption, input: PlanInput): MonitoringState {
  return adoption.kind === 'asset' ? adoptAsset(adoption, input) : adoptPolicy(adoption, input)
}

/** Adopts an asset whose content is not known yet; `inspectAdopted` finds it out. */
function adoptAsset(
  { name, id }: Adoption & { kind: 'asset' },
  { state, actual }: PlanInput,
): MonitoringState {
  const before = findAsset(state, name)
  if (before !== undefined && !mayBeGone(before.id, actual))
    refuseAlreadyKnown('asset', name, before.id)
  refuseTaken(Object.entries(state.assets).find(([, known]) => known.id === id)?.[0], id)
  if (actual.missingAssets.has(id)) refuseNotFound('asset', id)
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

/**
 * Adopts a policy. One that replaces another retires it: the old policy is deleted once the new one
 * is assigned.
 */
function adoptPolicy(
  { name, id }: Adoption & { kind: 'policy' },
  input: PlanInput,
): MonitoringState {
  const { state, actual, desired } = input
  refuseTaken(Object.entries(state.policies).find(([, known]) => known.uuid === id)?.[0], id)
  const found = actual.policies.get(id)
  const body = desired.policies.find(({ key }) => key === name)?.body
  if (found === undefined || body === undefined) return refuseNotFound('policy', id)
  if (found.type !== body.type) refuseType(name, id, { found, asked: body })
  const before = findPolicy(state, name)?.uuid
  const there = before === undefined ? undefined : actual.policies.get(before)
  const isInPlace =
    isPending(state, 'policy', name) || (isSame(found, body) && !isTwin(there, body))
  if (before !== undefined && there !== undefined && !isInPlace)
    refuseAlreadyKnown('policy', name, before)
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

/** Forgets a creation. Refuses to forget what exists, since it would be created twice. */
function forgetCreated(name: string, input: PlanInput): MonitoringState {
  const { state, actual } = input
  if (state.pending?.name === name) return { ...state, pending: null }
  const asset = findAsset(state, name)
  const policy = findPolicy(state, name)
  const isAssetGone = asset !== undefined && mayBeGone(asset.id, actual)
  const isPolicyGone = policy !== undefined && !actual.policies.has(policy.uuid)
  if (isAssetGone || isPolicyGone) {
    const rest = isPolicyGone ? withoutPolicy(state, name) : state
    return isAssetGone ? withoutAsset(rest, name) : rest
  }
  if (policy === undefined && findTwins(name, input).length > 0) return state
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

function refuseAlreadyKnown(kind: string, name: string, id: number | string): void {
  throw new CommandError('mistake', `--adopt: the ${kind} ${name} is ${id} already`)
}

function refuseTaken(holder: string | undefined, id: number | string): void {
  if (holder === undefined) return
  throw new CommandError('mistake', `--adopt: ${id} is ${holder} already`)
}

function refuseNotFound(kind: string, id: number | string): never {
  throw new CommandError('mistake', `--adopt: the service has no ${kind} ${id}`)
}

function refuseType(
  name: string,
  id: string,
  { found, asked }: { found: PolicyContent; asked: PolicyContent },
): void {
  const what = `${id} is "${sanitize(found.name, 60)}" of type ${sanitize(found.type, 40)}`
  throw new CommandError('mistake', `--adopt: ${what}, and ${name} of the file is ${asked.type}`)
}

function isPending({ pending }: MonitoringState, kind: string, name: string): boolean {
  return pending?.kind === kind && pending.name === name
}
