/** What `assets apply` may do, one thing at a time; and what it must know before it plans. */
import type { MonitoringState, PolicyContent } from './state-file.ts'
import type { Wanted, WantedAsset, WantedPolicy } from './wanted.ts'

/** What the service said before anything is planned. */
export interface Actual {
  /** Of each identifier the uuids of its policies. */
  assigned: ReadonlyMap<number, readonly string[]>
  /** Of the policies that the state knows, or the operator names, those that are there. */
  policies: ReadonlyMap<string, PolicyContent>
  /** Ids of assets that are not there. */
  gone: ReadonlySet<number>
  /** To which identifiers a policy is assigned, whoever did it; none of one that the server does not tell. */
  holders: ReadonlyMap<string, readonly number[]>
  can: Capabilities
}

/** Operations that the description does not have and a server may. */
export interface Capabilities {
  update: boolean
  unassign: boolean
}

/** What a plan is made from. */
export interface Scene {
  wanted: Wanted
  state: MonitoringState
  actual: Actual
}

export type WhyPolicy = 'new' | 'changed' | 'drifted' | 'unassign'

/** Identifiers that are not of the file; `unknown`: the server does not tell. */
export type Others = readonly number[] | 'unknown'

export type Step =
  /** `instead`: uuid of the one whose place it takes. */
  | { do: 'create policy'; policy: WantedPolicy; why: WhyPolicy; instead?: string }
  | { do: 'create asset'; asset: WantedAsset }
  | { do: 'replace asset'; asset: WantedAsset; id: number; fields: readonly string[] }
  /** `id` is open of an asset that another step creates. */
  | { do: 'enable asset' | 'disable asset'; key: string; id?: number; why: 'asked' | 'left' }
  /** `others` have it too. */
  | { do: 'update policy'; policy: WantedPolicy; uuid: string; why: WhyPolicy; others: Others }
  /** Keys of assets, whose ids another step may bring; `drifted`: what somebody else has changed. */
  | { do: 'assign policy'; key: string; assets: readonly string[]; drifted: readonly string[] }
  /** Those that have the policy whose place it takes, and are not of the file. */
  | { do: 'assign to others'; key: string; ids: readonly number[] }
  | {
      do: 'unassign policy'
      key: string
      uuid: string
      assets: readonly string[]
      drifted: readonly string[]
    }
  /** `losers`: those that have it, and no successor. */
  | { do: 'delete policy'; key: string; uuid: string; why: 'left' | 'replaced'; losers: Others }

export type StepOf<Kind extends Step['do']> = Extract<Step, { do: Kind }>
