/** The leaked credentials that the demo's sandbox shows: as the events, a story that goes on. */
import { createCredentialGenerator } from '../../sandbox/credentials/credential-generator.ts'
import type { SandboxCredential } from '../../sandbox/credentials/sandbox-credential.ts'
import { openStoryFile, type StoryLine } from './demo-story-file.ts'

export interface DemoCredentials {
  /** Those of earlier runs that still stand, oldest first. */
  readonly earlier: readonly SandboxCredential[]
  /** The next one, imported and shown at `nowMs`. */
  next(nowMs: number): SandboxCredential
}

export interface DemoCredentialsOptions {
  file: string
  seed: number
  nowMs: number
  /** Whose feed shows them. */
  identifier: { id: number; name: string }
}

interface Line extends StoryLine {
  credential: SandboxCredential
}

/** As the events: so many, and long before the ledger forgets that it had one. */
const keep = 2_000
const keepMs = 30 * 86_400_000

export function openDemoCredentials(options: DemoCredentialsOptions): DemoCredentials {
  const { file, seed, nowMs, identifier } = options
  const stands = ({ credential }: Line): boolean => credential.importedAtMs > nowMs - keepMs
  const story = openStoryFile<Line>({ file, keep, stands })
  const generator = createCredentialGenerator(seed)
  for (let again = 0; again < story.told; again++) generator.make(identifier, 0)
  let number = story.told
  return {
    earlier: story.kept.map(({ credential }) => credential),
    next(atMs) {
      number += 1
      const credential = generator.make(identifier, atMs)
      story.append({ number, credential })
      return credential
    },
  }
}
