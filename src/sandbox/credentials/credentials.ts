/** Leaked credentials of the sandbox, in order of arrival: generated at the start, on request, and as they arrive. */
import { createHash } from 'node:crypto'
import type { Loop } from '../../lib/loop.ts'
import { createArrivals } from '../history/supply.ts'
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
  /** Lets credentials arrive by themselves; undefined if none do. */
  arrivals: Loop | undefined
}

const dayMs = 86_400_000

export function createCredentials(settings: SandboxSettings): Credentials {
  const { credentialsPerSecond, credentialBacklog, now } = settings
  const identifiers = settings.groups.flatMap((group) => group.identifiers)
  const random = createRandom(settings.seed + 6)
  const make = createGenerator(random)
  const arrived: SandboxCredential[] = []
  const byUid = new Map<string, SandboxCredential>()

  function add(given: Partial<SandboxCredential>, by = identifiers[0]): SandboxCredential {
    const identifier = identifiers.find(({ id }) => id === given.identifierIds?.[0]) ?? by
    if (!identifier) throw new Error('the sandbox has no identifier to add a credential to')
    const credential = make(identifier, now(), given)
    const uid = `credential/${credential.id}`
    if (byUid.has(uid)) throw new Error(`the sandbox already has a ${uid}`)
    byUid.set(uid, credential)
    arrived.push(credential)
    return credential
  }

  function arrive(ageMs: number): void {
    add({ importedAtMs: now() - ageMs }, random.pick(identifiers))
  }

  const ages = Array.from({ length: credentialBacklog }, () => random.int(0, dayMs))
  for (const ageMs of ages.toSorted((left, right) => right - left)) arrive(ageMs)
  return {
    all: () => arrived,
    get: (uid) => byUid.get(uid),
    addCredentials(wanted, given = {}) {
      const each = typeof wanted === 'number' ? Array.from({ length: wanted }, () => ({})) : wanted
      return each.map((own) => add({ ...given, ...own }))
    },
    arrivals:
      credentialsPerSecond > 0 ? createArrivals(credentialsPerSecond, settings, arrive) : undefined,
  }
}

type Make = (
  identifier: { id: number; name: string },
  nowMs: number,
  given: Partial<SandboxCredential>,
) => SandboxCredential

type Pair = Pick<SandboxCredential, 'identityName' | 'hash' | 'hashType' | 'domain'>

/** Ids of the real API are of this size, beyond 32 bits (docs/api-notes.md, Events). */
const firstId = 406_285_232_303
/** Probability that the last pair of an identifier is repeated, from another source. */
const repeatShare = 0.1

const sources = [
  { id: 'combolists', name: 'Combolists', piiTags: ['email', 'password'] },
  { id: 'stealer_logs', name: 'Stealer logs', piiTags: ['email', 'password', 'ip_address'] },
  { id: 'telegram_dump', name: 'Дамп из Telegram', piiTags: [] },
  { id: 'hostile', name: '<!channel> =cmd|’/C calc’!A0 <b>Combo</b>', piiTags: ['email'] },
] as const

/** In clear text, hashed, and some of them repeated from another source. */
function createGenerator(random: Random): Make {
  const last = new Map<number, { pair: Pair; sourceId: string }>()
  let number = 0
  let nextId = firstId

  return (identifier, nowMs, given) => {
    number += 1
    nextId += random.int(1, 9)
    const host = toHost(identifier.name)
    const known = random.chance(repeatShare) ? last.get(identifier.id) : undefined
    const pair = known?.pair ?? newPair(random, number, host)
    const source = random.pick(sources.filter(({ id }) => id !== known?.sourceId))
    last.set(identifier.id, { pair, sourceId: source.id })
    const importedAtMs = given.importedAtMs ?? nowMs
    return {
      id: nextId,
      importedAtMs,
      arrivedAtMs: nowMs,
      ...pair,
      authDomains: [`vpn.${host}`, `mail.${host}`, 'login.example.net'].slice(random.int(0, 2)),
      knownPasswordId: random.chance(0.7) ? random.int(1, 2 ** 31) : null,
      source: {
        ...source,
        piiTags: [...source.piiTags],
        breachedAtMs: random.chance(0.4) ? importedAtMs - 30 * dayMs : null,
        leakedAtMs: random.chance(0.5) ? importedAtMs - dayMs : null,
      },
      remediatedAtMs: null,
      ignoredAtMs: null,
      identifierIds: [identifier.id],
      ...given,
    }
  }
}

function newPair(random: Random, number: number, host: string): Pair {
  const name = random.pick(['anna', 'j.doe', 'søren', 'admin', 'li.wei', 'o’neil'])
  const isHashed = random.chance(0.3)
  const hash = isHashed ? random.hex(64) : makePassword(random)
  return {
    identityName: `${name}${number}@${host}`,
    hash: random.chance(0.03) ? null : hash,
    hashType: isHashed ? 'sha256' : null,
    domain: random.chance(0.03) ? null : host,
  }
}

/** Identifies the pair of identity and secret without revealing it; null if there is no secret. */
export function hashPair({ identityName, hash }: SandboxCredential): string | null {
  if (hash === null) return null
  return createHash('sha256')
    .update(JSON.stringify([identityName, hash]))
    .digest('hex')
}
