/**
 * The base of every error that is not a bug. `code` is stable and documented; `reason` words are
 * closed unions of the subclasses and label the metrics. No secret and no URL goes into a message.
 */
export abstract class TocsinError extends Error {
  abstract override readonly name: string
  abstract readonly code: string
}

/** What is said about an unknown thrown value, without its stack. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
