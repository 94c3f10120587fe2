/**
 * Who changed which events and credentials at the service by `tocsin api`, one stream per account.
 * The service does not say who it was, since all share a key.
 */
import type { AccountLedger } from '../account-ledger.ts'

export interface WriteRequest {
  by: string
  /** The operation, and what it is to do: `events.act ignore`. */
  action: string
  /**
   * The uids and hashes that the request names. Only their digests are stored: a hash can be guessed
   * against, and a uid has any length.
   */
  targets: readonly string[]
}

/**
 * What came of a request; `unclear` if it may have been done in whole or in part, `not done` if the
 * service could not take it.
 */
type WriteOutcome = 'done' | 'refused' | 'unclear' | 'not done'

/** What was asked for one target, and when; `asked` while no outcome is known. */
export interface KnownWrite {
  atMs: number
  by: string
  action: string
  outcome: WriteOutcome | 'asked'
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
export async function noteWrite(
  ledger: AccountLedger,
  { by, action, targets }: WriteRequest,
): Promise<string> {
  const digests = targets.map((target) => ledger.fingerprints.recordId(target))
  const note = JSON.stringify({ by, action, targets: digests })
  return append(ledger, ['request', note])
}

/** Notes what came of a request, by the id of its note. */
export async function noteWriteOutcome(
  ledger: AccountLedger,
  id: string,
  outcome: WriteOutcome,
): Promise<void> {
  await append(ledger, ['outcome', outcome, 'of', id])
}

async function append(ledger: AccountLedger, fields: string[]): Promise<string> {
  const key = ledger.key('writes')
  return String(await ledger.redis.xadd(key, 'MAXLEN', '~', maxNotes, '*', ...fields))
}

/** What is known of one target, oldest first. */
export async function readWrites(ledger: AccountLedger, target: string): Promise<KnownWrite[]> {
  const digest = ledger.fingerprints.recordId(target)
  const known = new Map<string, KnownWrite>()
  for (let from = '-', isEnd = false; !isEnd;) {
    const page = await ledger.redis.xrange(ledger.key('writes'), from, '+', 'COUNT', pageSize)
    for (const [id, [kind, text = '', , of = '']] of page) {
      const request = known.get(of)
      if (kind === 'request') addRequest(known, { id, text, digest })
      else if (request) request.outcome = text as WriteOutcome
    }
    from = `(${page.at(-1)?.[0]}`
    isEnd = page.length < pageSize
  }
  return [...known.values()]
}

function addRequest(
  known: Map<string, KnownWrite>,
  { id, text, digest }: { id: string; text: string; digest: string },
): void {
  const { by, action, targets } = JSON.parse(text) as WriteRequest
  if (!targets.includes(digest)) return
  known.set(id, { atMs: Number.parseInt(id, 10), by, action, outcome: 'asked' })
}
