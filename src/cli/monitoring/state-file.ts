/**
 * The state that `assets apply` keeps between runs: which asset of the service is which of the file,
 * what was written, what came back. A write replaces the file whole; only its owner can read it.
 */
import {
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { errorCode } from '../../lib/errors.ts'
import { z } from 'zod'
import { CommandError } from '../terminal.ts'

const text = z.string()
const fields = z.record(text, z.unknown())

const policyContent = z.object({ name: text, type: text, value: fields })
export type PolicyContent = z.infer<typeof policyContent>

const knownAsset = z.object({
  id: z.int().min(1),
  /**
   * The fields of the file that the service has, as the file says them; null for one that somebody
   * changed there. All null for an adopted asset.
   */
  written: fields.nullable(),
  /** As last seen; null: unknown, for an adopted asset that was not inspected. */
  disabled: z.boolean().nullable(),
  /** The asset was disabled because the file said so or no longer had it, not by anybody else. */
  disabled_by_file: z.boolean().default(false),
  /** Keys of the policies that were assigned to it from the file. */
  policies: z.array(text),
  /** As the API returned it last; of `data` a digest, or nothing from earlier versions. */
  returned: fields.nullable(),
})
export type KnownAsset = z.infer<typeof knownAsset>

const knownPolicy = z.object({
  uuid: text.min(1),
  /** Both are null for an adopted policy. */
  written: policyContent.nullable(),
  returned: policyContent.nullable(),
})
export type KnownPolicy = z.infer<typeof knownPolicy>

/** A creation that was sent and whose answer has not come: it may have been done. */
const intent = z.object({ kind: z.enum(['asset', 'policy']), name: text, at: text })
export type Intent = z.infer<typeof intent>

const content = z.object({
  assets: z.record(text, knownAsset),
  policies: z.record(text, knownPolicy),
  /** Policies that were replaced and are still to be deleted. */
  retired: z.array(z.object({ name: text, uuid: text.min(1) })),
  pending: intent.nullable(),
})
export type MonitoringState = z.infer<typeof content>

const format = 'tocsin monitoring state'
const version = 1
const heading = z.object({ format: z.literal(format), version: z.number() })
const owner = z.object({ account: z.object({ name: text, base_url: text }) })

/** Looks up an own key only: a key may be called like a property of every object. */
export function findAsset({ assets }: MonitoringState, key: string): KnownAsset | undefined {
  return Object.hasOwn(assets, key) ? assets[key] : undefined
}

export function findPolicy({ policies }: MonitoringState, key: string): KnownPolicy | undefined {
  return Object.hasOwn(policies, key) ? policies[key] : undefined
}

export function withoutPolicy(state: MonitoringState, key: string): MonitoringState {
  const policies = Object.entries(state.policies).filter(([name]) => name !== key)
  const assets = Object.entries(state.assets).map(([name, known]): [string, KnownAsset] => [
    name,
    { ...known, policies: known.policies.filter((policy) => policy !== key) },
  ])
  return {
    ...state,
    policies: Object.fromEntries(policies),
    assets: Object.fromEntries(assets),
  }
}

/** Whether the asset was adopted and nothing of it has come back yet. */
export function isUnseen({ disabled, returned }: KnownAsset): boolean {
  return disabled === null || returned === null
}

export const emptyState: MonitoringState = { assets: {}, policies: {}, retired: [], pending: null }

export interface StateFile {
  readonly path: string
  /** The state as on disk. */
  current(): MonitoringState
  /** Replaces the file. Throws CommandError when somebody else has changed it meanwhile. */
  save(state: MonitoringState): void
}

export interface StateOwner {
  name: string
  baseUrl: string
}

/**
 * Throws CommandError when the file is truncated, is something else, or belongs to another account.
 */
export function openStateFile(path: string, { name, baseUrl }: StateOwner): StateFile {
  let seen = readIfPresent(path)
  let state = seen === undefined ? emptyState : parseState(seen, path, { name, baseUrl })
  return {
    path,
    current: () => state,
    save(next) {
      if (readIfPresent(path) !== seen) {
        throw stateFileError(path, 'another run has changed it meanwhile; run again')
      }
      const account = { name, base_url: baseUrl }
      const written = `${JSON.stringify({ format, version, account, ...next }, null, 2)}\n`
      replaceFile(path, written, seen === undefined)
      seen = written
      state = next
    },
  }
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return undefined
    throw stateFileError(path, `cannot be read (${errorCode(cause)})`, cause)
  }
}

function parseState(written: string, path: string, { name, baseUrl }: StateOwner): MonitoringState {
  const json = parseJson(written, path)
  const head = heading.safeParse(json)
  if (!head.success) throw stateFileError(path, `not a state of assets apply; ${otherFileRemedy}`)
  if (head.data.version !== version) {
    throw stateFileError(path, `it has format ${head.data.version}, this version writes ${version}`)
  }
  const parsed = content.extend(owner.shape).safeParse(json)
  if (!parsed.success) throw damagedError(path, parsed.error)
  const { account, ...state } = parsed.data
  if (account.name === name && account.base_url === baseUrl) return state
  const ownerText = `account ${account.name} at ${account.base_url}`
  const remedy = 'ask that one, or give this one a state of its own with --state'
  throw stateFileError(path, `it is of ${ownerText}, not of ${name} at ${baseUrl}; ${remedy}`)
}

function parseJson(written: string, path: string): unknown {
  try {
    return JSON.parse(written) as unknown
  } catch (cause) {
    throw damagedError(path, cause)
  }
}

const otherFileRemedy = 'name another file with --state'

function damagedError(path: string, cause: unknown): CommandError {
  const remedy = 'put back an earlier one; without it, every asset would be created again'
  return stateFileError(path, `the state is torn; ${remedy}`, cause)
}

function stateFileError(path: string, problem: string, cause?: unknown): CommandError {
  return new CommandError('mistake', `${path}: ${problem}`, { cause })
}

/** Once there is a state, a lost file would mean that everything is created again. */
function replaceFile(path: string, written: string, isFirst: boolean): void {
  const next = `${path}.new`
  try {
    removeLeftover(next)
    const file = openSync(next, 'wx', 0o600) // no link that stands there leads elsewhere
    try {
      writeFileSync(file, written)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(next, path)
    syncFolder(dirname(path))
  } catch (cause) {
    const remedy = `make the folder writable${isFirst ? `, or ${otherFileRemedy}` : ''}`
    const problem = `cannot be written (${errorCode(cause)}); ${remedy}`
    throw new CommandError('refused', `${path}: ${problem}`, { cause })
  }
}

/** Removes what an interrupted run left. */
function removeLeftover(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })) unlinkSync(path)
}

/** Without this a power failure may bring the old file back. */
function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
