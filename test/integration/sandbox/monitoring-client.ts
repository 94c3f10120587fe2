import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { wireAssetAnswer, type WireAsset } from '../../../src/upstream/resources/assets.ts'
import { wirePolicy, type WirePolicy } from '../../../src/upstream/resources/policies.ts'
import { ask, searchGroup, tokenOf, uidOf, type Answer } from './client.ts'

/** A sandbox, and requests of its key's first tenant; `tenant` asks as another. */
export interface MonitoringClient {
  sandbox: Sandbox
  call(method: string, path: string, body?: unknown): Promise<Answer>
  createAsset(given?: Record<string, unknown>): Promise<WireAsset>
  createPolicy(type: string, value: unknown): Promise<WirePolicy>
  assign(policy: WirePolicy, ids: number[], clean?: boolean): Promise<Answer>
  /** Which events a group shows. */
  shownIn(group: number): Promise<string[]>
  close(): Promise<void>
}

export const policiesPath = '/firework/v4/matching_policies'

const anAsset = {
  name: 'ACME',
  type: 'domain',
  search_types: ['illicit_networks', 'open_web', 'leaks', 'domains'],
  data: { fqdn: 'acme.test' },
}

/** The spelling and the operations of the description; today's servers have others. */
const asDescribed = { policyPaths: 'underscore', undescribed: false } as const

export async function openMonitoring(
  options: SandboxOptions = {},
  tenant?: number,
): Promise<MonitoringClient> {
  return clientOf(await startSandbox({ enforceLimits: false, ...asDescribed, ...options }), tenant)
}

async function clientOf(sandbox: Sandbox, tenant?: number): Promise<MonitoringClient> {
  const token = await tokenOf(sandbox, sandbox.apiKeys[0], tenant)

  function call(method: string, path: string, body?: unknown): Promise<Answer> {
    return ask(sandbox.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  }

  return {
    sandbox,
    call,
    createAsset: async (given = {}) => {
      const { json } = await call('POST', '/firework/v2/assets/', { ...anAsset, ...given })
      return wireAssetAnswer.parse(json).asset
    },
    createPolicy: async (type, value) => {
      const { json } = await call('POST', policiesPath, { name: type, type, value })
      return wirePolicy.parse(json)
    },
    assign: ({ uuid }, ids, clean) =>
      call('POST', `${policiesPath}/${uuid}/assignments`, {
        identifier_ids: ids,
        ...(clean === undefined ? {} : { clean_past_events: clean }),
      }),
    async shownIn(group) {
      const uids: string[] = []
      for (let from: string | undefined; ;) {
        const body = { order: 'asc', ...(from ? { from } : {}) }
        const { json } = await searchGroup(sandbox, token, body, group)
        const page = json as { items: unknown[]; next: string | null }
        uids.push(...page.items.map(uidOf))
        if (!page.next) return uids
        from = page.next
      }
    },
    close: () => sandbox.close(),
  }
}
