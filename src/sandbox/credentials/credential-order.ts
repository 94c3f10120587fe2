import { comparePositions, positionOf, type Placed } from '../history/history.ts'
import type { SandboxSettings } from '../options.ts'
import { hashOf } from '../random.ts'
import type { SandboxCredential } from './sandbox-credential.ts'

/** A credential at its place in some order. */
export interface PlacedCredential extends Placed {
  credential: SandboxCredential
}

/** By import, then id. */
export function inImportOrder(credentials: readonly SandboxCredential[]): PlacedCredential[] {
  return placed(credentials, ({ importedAtMs }) => importedAtMs)
}

/**
 * The order of the searches: what their documented cursor decodes to is a reversed domain and an id. It
 * has nothing to do with time.
 */
export function inSearchOrder(credentials: readonly SandboxCredential[]): PlacedCredential[] {
  return placed(
    credentials,
    () => 0,
    ({ domain, id }) => `${(domain ?? '').split('.').toReversed().join('.')} ${paddedId(id)}`,
  )
}

/** The order of the v3 feed, and in which direction it is read. */
export function inFeedOrder(
  credentials: readonly SandboxCredential[],
  { credentialOrder, seed }: Pick<SandboxSettings, 'credentialOrder' | 'seed'>,
): { entries: PlacedCredential[]; order: 'asc' | 'desc' } {
  switch (credentialOrder) {
    case 'newest':
      return { entries: inImportOrder(credentials), order: 'desc' }
    case 'ascending':
      return { entries: inImportOrder(credentials), order: 'asc' }
    case 'shuffled':
      return { entries: placed(credentials, ({ id }) => hashOf(`${seed} ${id}`)), order: 'asc' }
  }
}

function placed(
  credentials: readonly SandboxCredential[],
  keyOf: (credential: SandboxCredential) => number,
  nameOf: (credential: SandboxCredential) => string = ({ id }) => paddedId(id),
): PlacedCredential[] {
  return credentials
    .map((credential) => ({
      createdAtMs: keyOf(credential),
      uid: nameOf(credential),
      credential,
    }))
    .sort((left, right) => comparePositions(positionOf(left), positionOf(right)))
}

function paddedId(id: number): string {
  return String(id).padStart(16, '0')
}
