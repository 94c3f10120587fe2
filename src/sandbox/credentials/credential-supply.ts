/** How credentials come to be in the sandbox: those of the start, those asked for, those that arrive. */
import type { Loop } from '../../runtime/loop.ts'
import { createArrivals } from '../history/arrivals.ts'
import type { SandboxSettings } from '../options.ts'
import { createRandom } from '../random.ts'
import type { CredentialGenerator } from './credential-generator.ts'
import type { CredentialHistory } from './credential-history.ts'
import type { SandboxCredential } from './sandbox-credential.ts'

export interface CredentialSupply {
  /**
   * So many, or one for each of the list; `given` holds for all. Without `identifierIds` they go to the
   * first identifier, and are imported now.
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

  function ofAge(ageMs: number): SandboxCredential {
    const nowMs = now()
    return generator.make(random.pick(identifiers), nowMs, { importedAtMs: nowMs - ageMs })
  }

  const ages = Array.from({ length: credentialBacklog }, () => random.int(0, dayMs))
  history.add(ages.toSorted((left, right) => right - left).map(ofAge))
  return {
    supply: {
      addCredentials(wanted, given = {}) {
        const each =
          typeof wanted === 'number' ? Array.from({ length: wanted }, () => ({})) : wanted
        const made = each.map((own) => make({ ...given, ...own }))
        history.add(made)
        return made
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
            arrive: (ageMs) => history.add([ofAge(ageMs)]),
          })
        : undefined,
  }
}
