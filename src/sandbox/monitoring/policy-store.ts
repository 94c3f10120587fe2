import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { sandboxPolicy, type SandboxPolicy } from './sandbox-policy.ts'

/** Every matching policy of the sandbox, of whatever tenant. */
export interface PolicyStore {
  /** In order of creation. */
  all(): readonly SandboxPolicy[]
  get(uuid: string): SandboxPolicy | undefined
  create(given: Pick<SandboxPolicy, 'tenantId' | 'name' | 'type' | 'value'>): SandboxPolicy
  /** Throws where there is no such policy. */
  change(uuid: string, given: Pick<SandboxPolicy, 'name' | 'value'>): SandboxPolicy
  delete(uuid: string): void
  snapshot(): unknown
  /** Instead of what is there. Throws ZodError on what no snapshot is. */
  restore(snapshot: unknown): void
}

export function createPolicyStore(now: () => number, changed: () => void): PolicyStore {
  let policies = new Map<string, SandboxPolicy>()

  function keep(policy: SandboxPolicy): SandboxPolicy {
    policies.set(policy.uuid, policy)
    changed()
    return policy
  }

  return {
    all: () => [...policies.values()],
    get: (uuid) => policies.get(uuid),
    create(given) {
      const nowMs = now()
      return keep({ uuid: randomUUID(), ...given, createdAtMs: nowMs, updatedAtMs: nowMs })
    },
    change(uuid, given) {
      const policy = policies.get(uuid)
      if (!policy) throw new Error(`the sandbox has no matching policy ${uuid}`)
      return keep({ ...policy, ...given, updatedAtMs: now() })
    },
    delete(uuid) {
      policies.delete(uuid)
      changed()
    },
    snapshot: () => [...policies.values()],
    restore(snapshot) {
      const restored = z.array(sandboxPolicy).parse(snapshot)
      policies = new Map(restored.map((policy) => [policy.uuid, policy]))
      changed()
    },
  }
}
