/** Every credential of the sandbox, in order of arrival. */

export interface CredentialHistory {
  /** Throws if an id exists already. */
  add(credentials: readonly SandboxCredential[]): void
  /** Changes what later reads show. Throws if there is no such credential. */
  change: (uid: string, change: CredentialChange) => void
  /** Finds a credential by the uid that Tocsin gives it: `credential/<id>`. */
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

/** A leaked credential as the sandbox stores it; its wire shape is made on each read. */
export interface SandboxCredential {
  /** Increases with every generated credential; exceeds 32 bits. */
  id: number
  importedAtMs: number
  /** When it became visible: later than `importedAtMs` for a late arrival. */
  arrivedAtMs: number
  identityName: string | null
  /** In clear text, or hashed as `hashType` says. */
  hash: string | null
  hashType: string | null
  domain: string | null
  authDomains: string[]
  knownPasswordId: number | null
  source: CredentialSource | null
  /** Uid of the stealer log that holds it. */
  eventUid?: string | null
  remediatedAtMs: number | null
  ignoredAtMs: number | null
  /** The identifiers whose feeds show it; a global search always does. */
  identifierIds: number[]
  /** If set, the page has this value in place of the record, whatever it is. */
  raw?: unknown
}

interface CredentialSource {
  id: string
  name: string
  breachedAtMs: number | null
  leakedAtMs: number | null
  piiTags: string[]
}

/** What may change after a credential arrived; its position may not. */
type CredentialChange = Partial<Omit<SandboxCredential, 'id' | 'importedAtMs' | 'identifierIds'>>
