import type { ServiceClient } from '../../service/client.ts'
import type { Asked } from '../../service/operations/operation.ts'
import type { StateFile } from './state-file.ts'

/** The operations that change something. */
export type MonitoringWrites = Pick<
  ServiceClient,
  | 'createAsset'
  | 'replaceAsset'
  | 'toggleAsset'
  | 'createPolicy'
  | 'deletePolicy'
  | 'assignPolicy'
  | 'updatePolicy'
  | 'unassignPolicy'
>

/** What a step is taken with. */
export interface StepParts {
  client: MonitoringWrites
  asked: () => Asked
  file: Pick<StateFile, 'current' | 'save'>
  cleanPastEvents: boolean
  now: () => number
}
