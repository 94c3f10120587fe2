/** What only the operator knows: whether a creation without an answer was done, and under which id. */
import { InvalidArgumentError } from 'commander'
import { suggestion } from '../../runtime/nearest.ts'
import { CommandError } from '../command-error.ts'
import { uuid, wholeId } from '../query/id-values.ts'
import type { MonitoringState } from './state-file.ts'
import type { Wanted } from './wanted.ts'

/** `<name>=<id>`: an asset by its number, a policy by its uuid. */
export type Adoption =
  | { kind: 'asset'; name: string; id: number }
  | { kind: 'policy'; name: string; id: string }

export interface Doubts {
  adopt?: readonly Adoption[]
  createAgain?: readonly string[]
}

/** A value of `--adopt`, which may be given several times. */
export function anotherAdoption(text: string, before: readonly Adoption[] = []): Adoption[] {
  const [, name = '', id = ''] = /^([a-z][\w-]*)=(.+)$/.exec(text) ?? []
  if (name === '') throw new InvalidArgumentError('Write <name>=<id>, such as brand=5001.')
  return [
    ...before,
    /^\d+$/.test(id)
      ? { kind: 'asset', name, id: wholeId(id) }
      : { kind: 'policy', name, id: uuid(id) },
  ]
}

export function anotherName(text: string, before: readonly string[] = []): string[] {
  return [...before, text]
}

/** Throws CommandError where an option names what the file does not have. */
export function refuseUnknownNames(
  { adopt = [], createAgain = [] }: Doubts,
  { assets, policies }: Wanted,
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

/** Throws CommandError where a creation was sent and nobody says what became of it. */
export function refuseDoubt(
  { pending }: MonitoringState,
  { adopt = [], createAgain = [] }: Doubts,
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
