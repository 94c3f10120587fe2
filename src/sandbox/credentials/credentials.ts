/** Leaked credentials of the sandbox, in order of arrival. */
import { createHash } from 'node:crypto'
import { makePassword, toHost } from '../history/texts.ts'
import { createRandom, type Random, type SandboxSettings } from '../options.ts'

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

export interface Credentials {
  all: () => readonly SandboxCredential[]
  /** By the uid that Tocsin gives it: `credential/<id>`. */
  get(uid: string): SandboxCredential | undefined
  /**
   * Adds `wanted` credentials, or one per entry of the list; `given` applies to all. By default
   * they belong to the first identifier and are imported now. Throws if an id exists already.
   */
  addCredentials: (
    wanted: number | readonly Partial<SandboxCredential>[],
    given?: Partial<SandboxCredential>,
  ) => SandboxCredential[]
}

/** Ids of the real API are of this size, beyond 32 bits (docs/api-notes.md, Events). */
const firstId = 406_285_232_303

export function createCredentials({ groups, seed, now }: SandboxSettings): Credentials {
  const identifiers = groups.flatMap((group) => group.identifiers)
  const random = createRandom(seed + 6)
  const all: SandboxCredential[] = []
  const byUid = new Map<string, SandboxCredential>()

  function add(given: Partial<SandboxCredential>): SandboxCredential {
    const identifier = identifiers.find(({ id }) => id === given.identifierIds?.[0])
    const about = identifier ?? identifiers[0]
    if (!about) throw new Error('the sandbox has no identifier to add a credential to')
    const credential = {
      ...generate(random, all.length + 1, toHost(about.name)),
      importedAtMs: now(),
      arrivedAtMs: now(),
      identifierIds: [about.id],
      ...given,
    }
    const uid = `credential/${credential.id}`
    if (byUid.has(uid)) throw new Error(`the sandbox already has a ${uid}`)
    byUid.set(uid, credential)
    all.push(credential)
    return credential
  }

  return {
    all: () => all,
    get: (uid) => byUid.get(uid),
    addCredentials(wanted, given = {}) {
      const each = typeof wanted === 'number' ? Array.from({ length: wanted }, () => ({})) : wanted
      return each.map((own) => add({ ...given, ...own }))
    },
  }
}

const sources = [
  { id: 'combolists', name: 'Combolists', piiTags: ['email', 'password'] },
  { id: 'telegram_dump', name: 'Дамп из Telegram', piiTags: [] },
  { id: 'hostile', name: '<!channel> =cmd|’/C calc’!A0 <b>Combo</b>', piiTags: ['email'] },
]

/** In clear text or hashed. */
function generate(
  random: Random,
  number: number,
  host: string,
): Omit<SandboxCredential, 'importedAtMs' | 'arrivedAtMs' | 'identifierIds'> {
  const name = random.pick(['anna', 'j.doe', 'søren', 'admin', 'li.wei', 'o’neil'])
  const isHashed = random.chance(0.3)
  return {
    id: firstId + number * 7,
    identityName: `${name}${number}@${host}`,
    hash: isHashed ? random.hex(64) : makePassword(random),
    hashType: isHashed ? 'sha256' : null,
    domain: host,
    authDomains: [`vpn.${host}`, 'login.example.net'],
    knownPasswordId: random.int(1, 2 ** 31),
    source: { ...random.pick(sources), breachedAtMs: null, leakedAtMs: null },
    remediatedAtMs: null,
    ignoredAtMs: null,
  }
}

/** Identifies the pair of identity and secret without revealing it; null if there is no secret. */
export function hashPair({ identityName, hash }: SandboxCredential): string | null {
  if (hash === null) return null
  return createHash('sha256')
    .update(JSON.stringify([identityName, hash]))
    .digest('hex')
}
