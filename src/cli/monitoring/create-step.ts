/**
 * Creations: each is written down before it leaves, so that one whose answer is lost is never sent
 * again unasked. One that never left, or was refused, leaves nothing behind.
 */
import type { Asked } from '../../service/operations/operation.ts'
import { ServiceError } from '../../service/service-error.ts'
import { CommandError } from '../command-error.ts'
import type { StepOf } from './plan-step.ts'
import { readAsset } from './read-asset.ts'
import { readPolicy } from './read-policy.ts'
import type { Intent, MonitoringState } from './state-file.ts'
import type { StepParts } from './step-parts.ts'

type Creation = Omit<Intent, 'at'>

export async function createAsset(
  { asset }: StepOf<'create asset'>,
  parts: StepParts,
): Promise<void> {
  const { key, body, written } = asset
  const creation = { kind: 'asset', name: key } as const
  const made = await intending(creation, parts, (asked) =>
    parts.client.createAsset({ asset: body, ...asked }),
  )
  const seen = readAsset(made, false)
  const known = { ...seen, id: made.id, written, disabled_by_file: false, policies: [] }
  keepMade({ ...creation, id: made.id }, parts, (state) => ({
    ...state,
    pending: null,
    assets: { ...state.assets, [key]: known },
  }))
}

export async function createPolicy(
  { policy: { key, body }, instead }: StepOf<'create policy'>,
  parts: StepParts,
): Promise<void> {
  const creation = { kind: 'policy', name: key } as const
  const made = await intending(creation, parts, (asked) =>
    parts.client.createPolicy({ policy: body, ...asked }),
  )
  const { name, type, value } = body
  const written = { name, type, value }
  const retired = instead === undefined ? [] : [{ name: key, uuid: instead }]
  keepMade({ ...creation, id: made.uuid }, parts, (state) => ({
    ...state,
    pending: null,
    policies: {
      ...state.policies,
      [key]: { uuid: made.uuid, written, returned: readPolicy(made) },
    },
    retired: [...state.retired, ...retired],
  }))
}

async function intending<Made>(
  creation: Creation,
  { file, now, asked }: StepParts,
  create: (asked: Asked) => Promise<Made>,
): Promise<Made> {
  const onSend = (): void => {
    const at = new Date(now()).toISOString()
    file.save({ ...file.current(), pending: { ...creation, at } })
  }
  try {
    return await create({ ...asked(), onSend })
  } catch (error) {
    const isRefused = error instanceof ServiceError && !error.mayBeDone
    if (isRefused && file.current().pending !== null) {
      file.save({ ...file.current(), pending: null })
    }
    throw error
  }
}

/** Where the state cannot be saved, the id is in the error: nobody else has it. */
function keepMade(
  { kind, name, id }: Creation & { id: number | string },
  { file }: StepParts,
  withIt: (state: MonitoringState) => MonitoringState,
): void {
  try {
    file.save(withIt(file.current()))
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    const made = `${kind} ${name} was created as ${id}: run again with --adopt ${name}=${id}`
    throw new CommandError(error.reason, `${made}; ${error.message}`, { cause: error })
  }
}
