/** The service as far as monitoring goes, by its description: what it holds, and what each request makes of it. */
import type { MonitoringReads } from '../../../../src/cli/monitoring/actual.ts'
import type { MonitoringWrites } from '../../../../src/cli/monitoring/apply.ts'
import type { CallOptions } from '../../../../src/upstream/call.ts'
import { UpstreamError } from '../../../../src/upstream/error.ts'
import type { WireAsset } from '../../../../src/upstream/resources/assets.ts'
import type { WirePolicy } from '../../../../src/upstream/resources/policies.ts'
import { callBy } from '../../../support/call.ts'

interface PolicyRequest {
  policy_uuid?: string
  identifier_id?: number
  identifier_ids?: number[]
  name?: string
  type?: string
  value?: Record<string, unknown>
}

/** Before it is sent; refused; or done, and its answer lost. */
export type Failing = 'unsent' | 'refused' | 'unanswered'

export interface Model {
  client: MonitoringReads & MonitoringWrites
  assets: Map<number, WireAsset>
  policies: Map<string, WirePolicy>
  /** Uuids of policies by identifier. */
  assigned: Map<number, Set<string>>
  /** It has the operation that reads an asset. */
  showsAssets: boolean
  writes: () => number
  /** From now on the write of this number, 0 being the next, fails. */
  failAt: (write: number, when: Failing) => void
}

/**
 * `undescribed`: it also knows the operations that the description does not have. What it stores of an asset is not
 * what it was sent: search types in its own order, and data with the type in it.
 */
export function modelService(undescribed: boolean): Model {
  const assets = new Map<number, WireAsset>()
  const policies = new Map<string, WirePolicy>()
  const assigned = new Map<number, Set<string>>()
  let [writes, made, failing] = [0, 0, -1]
  let failsWhen: Failing = 'unsent'

  async function written<Result>({ onSend }: CallOptions, change: () => Result): Promise<Result> {
    const failure = writes === failing ? failsWhen : undefined
    writes += 1
    if (failure === 'unsent') throw new UpstreamError('timeout', 'no turn came')
    onSend?.()
    if (failure === 'refused') throw new UpstreamError('rejected', 'no', { status: 400 })
    const result = change()
    if (failure === 'unanswered') {
      throw new UpstreamError('timeout', 'no answer', { mayBeDone: true })
    }
    return result
  }

  function there<Value>(value: Value | undefined): Value {
    if (value === undefined) throw new UpstreamError('rejected', 'gone', { status: 404 })
    return value
  }

  function keep(asset: WireAsset): WireAsset {
    const search_types = asset.search_types?.toSorted().toReversed()
    const kept = { ...asset, search_types, data: { ...asset.data, type: asset.type } }
    assets.set(asset.id, kept)
    return kept
  }

  const client: Model['client'] = {
    createAsset: ({ asset, ...asked }) =>
      written(asked, () => {
        const id = 5000 + (made += 1)
        assigned.set(id, new Set())
        return keep({ ...asset, id, is_disabled: false, urn: `urn:${id}`, mark: `of ${id}` })
      }),
    replaceAsset: ({ id, asset, ...asked }) =>
      written(asked, () => {
        there(assets.get(id))
        return keep({ ...asset, id, urn: `urn:${id}` })
      }),
    toggleAsset: ({ id, isDisabled, ...asked }) =>
      written(asked, () => keep({ ...there(assets.get(id)), is_disabled: isDisabled })),
    call: callBy((name, request: PolicyRequest, asked) => {
      const { policy_uuid: uuid = '', identifier_ids: ids = [] } = request
      switch (name) {
        case 'policies.create':
          return written(asked, () => {
            const { name: called = '', type = '', value = {} } = request
            const policy = { uuid: `p${(made += 1)}`, name: called, policy_type: type, value }
            policies.set(policy.uuid, policy)
            return policy
          })
        case 'policies.update':
          return written(asked, () => {
            if (!undescribed) throw new Error('this service changes no policy')
            const policy = { ...there(policies.get(uuid)), ...request }
            policies.set(uuid, policy)
            return policy
          })
        case 'policies.delete':
          return written(asked, () => {
            there(policies.get(uuid))
            policies.delete(uuid)
            for (const having of assigned.values()) having.delete(uuid)
          })
        case 'policies.assign':
          return written(asked, () => {
            there(policies.get(uuid))
            for (const id of ids) there(assigned.get(id)).add(uuid)
          })
        case 'policies.unassign':
          return written(asked, () => {
            if (!undescribed) throw new Error('this service takes no policy away')
            for (const id of ids) there(assigned.get(id)).delete(uuid)
          })
        default:
          return Promise.resolve().then(() => read(name, request))
      }
    }),
    getAsset: async ({ id }) => {
      if (!undescribed) throw new UpstreamError('rejected', 'no such method', { status: 405 })
      return there(assets.get(id))
    },
  }

  function read(name: string, { policy_uuid: uuid = '', identifier_id: id = 0 }: PolicyRequest) {
    switch (name) {
      case 'policies.of-identifier':
        return [...there(assigned.get(id))].map((one) => ({
          matching_policy: there(policies.get(one)),
        }))
      case 'policies.get':
        return there(policies.get(uuid))
      case 'policies.list':
      case 'policies.assignments': {
        if (!undescribed) throw new UpstreamError('rejected', 'no such method', { status: 405 })
        const having = [...assigned].filter(([, uuids]) => uuids.has(uuid))
        const holders = having.map(([holder]) => ({ identifier_id: holder }))
        return { page: { items: name === 'policies.list' ? [...policies.values()] : holders } }
      }
      default:
        throw new Error(`the model has no ${name}`)
    }
  }

  return {
    client,
    assets,
    policies,
    assigned,
    showsAssets: undescribed,
    writes: () => writes,
    failAt(write, when) {
      failing = write < 0 ? -1 : writes + write
      failsWhen = when
    },
  }
}
