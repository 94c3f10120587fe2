/** Every credential of the sandbox, in order of arrival. */
import type { CredentialChange, SandboxCredential } from './sandbox-credential.ts'

export interface CredentialHistory {
  /** Throws where an id is already there. */
  add(credentials: readonly SandboxCredential[]): void
  /** Changes what the next readings show; throws where there is no such credential. */
  change: (uid: string, change: CredentialChange) => void
  /** By the uid that Tocsin gives it: `credential/<id>`. */
  get(uid: string): SandboxCredential | undefined
  all: () => readonly SandboxCredential[]
}

export function createCredentialHistory(): CredentialHistory {
  const arrived: SandboxCredential[] = []
  const byUid = new Map<string, SandboxCredential>()

  return {
    add(credentials) {
      for (const credential of credentials) {
        const uid = credentialUid(credential.id)
        if (byUid.has(uid)) throw new Error(`the sandbox already has a ${uid}`)
        byUid.set(uid, credential)
        arrived.push(credential)
      }
    },
    change(uid, change) {
      const credential = byUid.get(uid)
      if (!credential) throw new Error(`the sandbox has no ${uid}`)
      Object.assign(credential, change)
    },
    get: (uid) => byUid.get(uid),
    all: () => arrived,
  }
}

export function credentialUid(id: number): string {
  return `credential/${id}`
}
