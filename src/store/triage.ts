/**
 * Who ignored, remediated, restored or annotated what at the service: the record of the commands
 * that do so, one stream per account. The service does not say who it was, since all share a key.
 */
import type { AccountLedger } from './account-ledger.ts'

interface TriageRequest {
  by: string
  /** What is asked for: `ignore`, `tag`. */
  action: string
  /**
   * Uids of events, or hashes of credentials. Only their digests are stored: a hash can be guessed
   * against, and a uid has any length.
   */
  targets: readonly string[]
}

/**
 * What came of a request; `unclear` if it may have been done in whole or in part, `not done` if the
 * service could not take it.
 */
type TriageOutcome = 'done' | 'refused' | 'unclear' | 'not done'

/** What was asked for one event or credential, and when; `asked` while no outcome is known. */
export interface KnownTriage {
  atMs: number
  by: string
  action: string
  outcome: TriageOutcome | 'asked'
}

/**
 * Some weeks of a busy desk; older notes are dropped. A note is at most 3 KB: 100 targets of 24
 * characters.
 */
const maxNotes = 10_000
/** Notes read at once. */
const pageSize = 500

/**
 * Notes a request before it is sent; returns the note's id. Throws when Redis takes no more writes:
 * what cannot be recorded is not to be done.
 */
export async function noteTriage(
  ledger: AccountLedger,
  { by, action, targets }: TriageRequest,
): Promise<string> {
  const digests = targets.map((target) => ledger.fingerprints.recordId(target))
  const note = JSON.stringify({ by, action, targets: digests })
  return append(ledger, ['request', note])
}

/** Notes what came of a request, by the id of its note. */
export async function noteTriageOutcome(
  ledger: AccountLedger,
  id: string,
  outcome: TriageOutcome,
): Promise<void> {
  await append(ledger, ['outcome', outcome, 'of', id])
}

async function append(ledger: AccountLedger, fields: string[]): Promise<string> {
  const key = ledger.key('triage')
  return String(await ledger.redis.xadd(key, 'MAXLEN', '~', maxNotes, '*', ...fields))
}

/** What is known of one target, oldest first. */
export async function readTriage(ledger: AccountLedger, target: string): Promise<KnownTriage[]> {
  const digest = ledger.fingerprints.recordId(target)
  const known = new Map<string, KnownTriage>()
  for (let from = '-', isEnd = false; !isEnd;) {
    const page = await ledger.redis.xrange(ledger.key('triage'), from, '+', 'COUNT', pageSize)
    for (const [id, [kind, text = '', , of = '']] of page) {
      const request = known.get(of)
      if (kind === 'request') addRequest(known, { id, text, digest })
      else if (request) request.outcome = text as TriageOutcome
    }
    from = `(${page.at(-1)?.[0]}`
    isEnd = page.length < pageSize
  }
  return [...known.values()]
}

function addRequest(
  known: Map<string, KnownTriage>,
  { id, text, digest }: { id: string; text: string; digest: string },
): void {
  const { by, action, targets } = JSON.parse(text) as TriageRequest
  if (!targets.includes(digest)) return
  known.set(id, { atMs: Number.parseInt(id, 10), by, action, outcome: 'asked' })
}
