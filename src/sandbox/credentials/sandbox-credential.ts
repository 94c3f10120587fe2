/** A leaked credential as the sandbox holds it; what the wire shows of it is made at each reading. */
export interface SandboxCredential {
  /** Grows with every credential that is made up, beyond 32 bits. */
  id: number
  importedAtMs: number
  /** When it became visible: later than `importedAtMs` for a late arrival. */
  arrivedAtMs: number
  identityName: string | null
  /** In clear, or hashed as `hashType` says. */
  hash: string | null
  hashType: string | null
  domain: string | null
  authDomains: string[]
  knownPasswordId: number | null
  source: CredentialSource | null
  /** The stealer log that holds it. */
  eventUid?: string | null
  remediatedAtMs: number | null
  ignoredAtMs: number | null
  /** The identifiers whose feed shows it; a global search shows it in any case. */
  identifierIds: number[]
  /** Set: the page carries this instead of a record, whatever it is. */
  raw?: unknown
}

interface CredentialSource {
  id: string
  name: string
  breachedAtMs: number | null
  leakedAtMs: number | null
  piiTags: string[]
}

/** What may change after a credential arrived: its place in the order may not. */
export type CredentialChange = Partial<
  Omit<SandboxCredential, 'id' | 'importedAtMs' | 'identifierIds'>
>
