/**
 * Generates leaked credentials, in clear text and hashed, some of them repeated from another
 * source.
 */
import type { Loop } from '../../lib/loop.ts'
import { toHost, makePassword } from '../history/draft.ts'
import { createArrivals } from '../history/supply.ts'
import { createRandom, type Random, type SandboxSettings } from '../options.ts'
import type { CredentialHistory, SandboxCredential } from './history.ts'

interface CredentialGenerator {
  /** Makes a credential for the feed of `identifier`; `given` overrides what is generated. */
  make(
    identifier: { id: number; name: string },
    nowMs: number,
    given?: Partial<SandboxCredential>,
  ): SandboxCredential
  state: () => CredentialGeneratorState
}

/** State of a generator. A generator that continues from it repeats no id and no pair. */
export interface CredentialGeneratorState {
  number: number
  id: number
  seed: number
}

type Pair = Pick<
  SandboxCredential,
  'identityName' | 'hash' | 'hashType' | 'domain' | 'knownPasswordId'
>

/** Ids of the real API are of this size, beyond 32 bits (docs/api-notes.md, Events). */
const firstId = 406_285_232_303
/** Probability that a pair is repeated from another source, and how many pairs can be. */
const repeatShare = 0.1
const maxPairs = 500

const sources = [
  { id: 'combolists', name: 'Combolists', piiTags: ['email', 'password'] },
  { id: 'stealer_logs', name: 'Stealer logs', piiTags: ['email', 'password', 'ip_address'] },
  { id: 'online_shop_2026', name: 'Online Shop 2026', piiTags: ['email', 'phone_number'] },
  { id: 'telegram_dump', name: 'Дамп из Telegram', piiTags: [] },
  { id: 'hostile', name: '<!channel> =cmd|’/C calc’!A0 <b>Combo</b>', piiTags: ['email'] },
] as const

const hashTypes = ['md5', 'bcrypt', 'sha256'] as const
const localParts = ['anna', 'j.doe', 'søren', 'admin', 'li.wei', 'o’neil'] as const

export function createCredentialGenerator(
  seed: number,
  from?: CredentialGeneratorState,
): CredentialGenerator {
  const random = createRandom(from?.seed ?? seed)
  const pairs = new Map<number, { pair: Pair; sourceId: string }[]>()
  let number = from?.number ?? 0
  let nextId = from?.id ?? firstId

  return {
    state: () => ({ number, id: nextId, seed: random.seed() }),
    make(identifier, nowMs, given = {}) {
      number += 1
      nextId += random.int(1, 9)
      const known = pairs.get(identifier.id) ?? []
      pairs.set(identifier.id, known)
      const repeated = known.length > 0 && random.chance(repeatShare) ? random.pick(known) : null
      const pair = repeated?.pair ?? newPair(random, number, toHost(identifier.name))
      const source = random.pick(sources.filter(({ id }) => id !== repeated?.sourceId))
      known.push({ pair, sourceId: source.id })
      if (known.length > maxPairs) known.shift()
      const importedAtMs = given.importedAtMs ?? nowMs
      const host = toHost(identifier.name)
      return {
        id: nextId,
        importedAtMs,
        arrivedAtMs: nowMs,
        ...pair,
        authDomains: [`vpn.${host}`, `mail.${host}`, 'login.example.net'].slice(random.int(0, 2)),
        source: {
          ...source,
          piiTags: [...source.piiTags],
          breachedAtMs: random.chance(0.4) ? importedAtMs - 2_592_000_000 : null,
          leakedAtMs: random.chance(0.5) ? importedAtMs - 86_400_000 : null,
        },
        remediatedAtMs: null,
        ignoredAtMs: null,
        identifierIds: [identifier.id],
        ...given,
      }
    },
  }
}

function newPair(random: Random, number: number, host: string): Pair {
  const hashType = random.chance(0.3) ? random.pick(hashTypes) : null
  return {
    identityName: `${random.pick(localParts)}${number}@${host}`,
    ...(random.chance(0.03) ? { hash: null, hashType: null } : makeHash(random, hashType)),
    domain: random.chance(0.03) ? null : host,
    knownPasswordId: random.chance(0.7) ? random.int(1, 2 ** 31) : null,
  }
}

function makeHash(
  random: Random,
  hashType: (typeof hashTypes)[number] | null,
): Pick<Pair, 'hash' | 'hashType'> {
  switch (hashType) {
    case 'md5':
      return { hash: random.hex(32), hashType }
    case 'sha256':
      return { hash: random.hex(64), hashType }
    case 'bcrypt':
      return { hash: `$2b$12$${random.hex(53)}`, hashType }
    case null:
      return { hash: makePassword(random), hashType: null }
  }
}

/**
 * Adds credentials to the sandbox on request; others are there at the start or arrive by
 * themselves.
 */
export interface CredentialSupply {
  /**
   * Adds `wanted` credentials, or one per entry of the list; `given` applies to all. By default
   * they belong to the first identifier and are imported now.
   */
  addCredentials(
    wanted: number | readonly Partial<SandboxCredential>[],
    given?: Partial<SandboxCredential>,
  ): SandboxCredential[]
}

const dayMs = 86_400_000

export function createCredentialSupply(
  settings: SandboxSettings,
  { history, generator }: { history: CredentialHistory; generator: CredentialGenerator },
): { supply: CredentialSupply; arrivals: Loop | undefined } {
  const { credentialsPerSecond, credentialBacklog, lateShare, lateMinMs, lateMaxMs, logger, now } =
    settings
  const identifiers = settings.groups.flatMap((group) => group.identifiers)
  const random = createRandom(settings.seed + 7)

  function make(given: Partial<SandboxCredential>): SandboxCredential {
    const identifier = identifiers.find(({ id }) => id === given.identifierIds?.[0])
    const chosen = identifier ?? identifiers[0]
    if (!chosen) throw new Error('the sandbox has no identifier to add a credential to')
    return generator.make(chosen, now(), given)
  }

  function makeAged(ageMs: number): SandboxCredential {
    const nowMs = now()
    return generator.make(random.pick(identifiers), nowMs, { importedAtMs: nowMs - ageMs })
  }

  const ages = Array.from({ length: credentialBacklog }, () => random.int(0, dayMs))
  history.add(ages.toSorted((left, right) => right - left).map(makeAged))
  return {
    supply: {
      addCredentials(wanted, given = {}) {
        const each =
          typeof wanted === 'number' ? Array.from({ length: wanted }, () => ({})) : wanted
        const added = each.map((own) => make({ ...given, ...own }))
        history.add(added)
        return added
      },
    },
    arrivals:
      credentialsPerSecond > 0
        ? createArrivals({
            perSecond: credentialsPerSecond,
            lateShare,
            lateMinMs,
            lateMaxMs,
            random,
            logger,
            arrive: (ageMs) => history.add([makeAged(ageMs)]),
          })
        : undefined,
  }
}
