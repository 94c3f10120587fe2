/**
 * The base of every error that is not a bug. `code` is stable and documented; the `reason` of a
 * subclass is a closed union and labels the metrics. Messages contain no secret and no URL.
 */
export abstract class TocsinError extends Error {
  abstract override readonly name: string
  abstract readonly code: string
}

/** An error whose causes are a closed list. */
export abstract class ReasonedError<Reason extends string> extends TocsinError {
  readonly reason: Reason

  constructor(reason: Reason, message: string, { cause }: { cause?: unknown } = {}) {
    super(message, { cause })
    this.reason = reason
  }
}

/** The user pressed Ctrl-C, or the process is asked to stop. */
export class Interruption extends Error {
  override readonly name = 'Interruption'
}

/** The message of an unknown thrown value, without its stack. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export function pluralize(count: number, thing: string, several = `${thing}s`): string {
  return `${count} ${count === 1 ? thing : several}`
}

/** The code of a failed system call, such as ENOENT; `orElse` for whatever has none. */
export function errorCode(error: unknown, orElse = 'unknown'): string {
  return error instanceof Error && 'code' in error ? String(error.code) : orElse
}

/**
 * Returns the candidate most likely meant by `word`, at most `most` letters away; undefined if none
 * is close.
 */
export function findNearest(
  word: string,
  candidates: Iterable<string>,
  most = Infinity,
): string | undefined {
  let best: { candidate: string; distance: number } | undefined
  for (const candidate of candidates) {
    const distance = editDistance(word, candidate)
    const limit = Math.min(most, allowedDistance(Math.max(word.length, candidate.length)))
    if (distance <= limit && distance < (best?.distance ?? Infinity)) best = { candidate, distance }
  }
  return best?.candidate
}

/** Two swapped letters count as two; in a word of three they would be another word. */
function allowedDistance(length: number): number {
  return length < 4 ? 1 : Math.max(2, Math.floor(length / 3))
}

/** `did you mean "every"?`, or the list of candidates. */
export function suggestion(
  word: string,
  candidates: readonly string[],
  listPrefix: string,
): string {
  const meant = findNearest(word, candidates)
  return meant === undefined
    ? `${listPrefix}: ${formatList(candidates)}`
    : `did you mean "${meant}"?`
}

/** Words in a list for people: nobody reads all of a thousand accounts. */
const maxListed = 100

/** `a, b, c`, or the first of many and how many more there are. */
export function formatList(words: readonly string[]): string {
  const more = words.length - maxListed
  if (more <= 0) return words.join(', ')
  return `${words.slice(0, maxListed).join(', ')} and ${more} more`
}

/** A path as one word of a command that somebody copies into a shell. */
export function quoteForShell(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`
}

/** Levenshtein distance, one row at a time. Words of a configuration are short. */
function editDistance(left: string, right: string): number {
  if (Math.abs(left.length - right.length) > 20) return Infinity
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (const [i, letter] of left.split('').entries()) {
    const next = [i + 1]
    for (const [j, other] of right.split('').entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
