/**
 * Who ignored, remediated, restored or annotated what at the service: the record of the commands
 * that do so, one stream per account. The service does not say who it was, since all share a key.
 */
import type { AccountLedger } from './account-ledger.ts'

interface TriageNote {
  by: string
  /** What was asked for: `ignore`, `tag`. */
  action: string
  /** Uids of events, or hashes of credentials. */
  targets: readonly string[]
  /**
   * `asked` is written before a request is sent, the others once it ended; `unclear` if it may have
   * been done although its answer did not come, `not done` if the service could not take it.
   */
  outcome: 'asked' | 'done' | 'refused' | 'unclear' | 'not done'
}

/** What was done to one event or credential, and when. */
export type KnownTriage = Omit<TriageNote, 'targets'> & { atMs: number }

/** Some weeks of a busy desk; older notes are dropped. */
const maxNotes = 10_000

/** Throws when Redis takes no more writes: what cannot be recorded is not to be done. */
export async function noteTriage(ledger: AccountLedger, note: TriageNote): Promise<void> {
  const text = JSON.stringify(note)
  await ledger.redis.xadd(ledger.key('triage'), 'MAXLEN', '~', maxNotes, '*', 'note', text)
}

/** What is known of one target, oldest first; `asked` only where no outcome followed. */
export async function readTriage(ledger: AccountLedger, target: string): Promise<KnownTriage[]> {
  const entries = await ledger.redis.xrange(ledger.key('triage'), '-', '+')
  const known = entries
    .map(([id, [, text = '{}']]) => ({ atMs: Number.parseInt(id, 10), ...parseNote(text) }))
    .filter(({ targets }) => targets.includes(target))
  return known
    .filter(
      ({ outcome }, at) => outcome !== 'asked' || (known[at + 1]?.outcome ?? 'asked') === 'asked',
    )
    .map(({ atMs, by, action, outcome }) => ({ atMs, by, action, outcome }))
}

function parseNote(text: string): TriageNote {
  return JSON.parse(text) as TriageNote
}
