/** Who gets a free slot: pure, so that a better schedule replaces one function. */

/**
 * `token`: renewing or testing the token, which everything else waits for; `feed`: a page of a feed;
 * `sweep`: a page of a feed's sweep, which looks for late arrivals; `detail`: the full event of a
 * message about to be sent; `command`: what an operator asked for.
 */
export type TurnKind = 'token' | 'feed' | 'sweep' | 'detail' | 'command'

export interface Turn {
  kind: TurnKind
  /** Of the feed, sink or command. */
  name: string
  /** Wall clock ms since when the request is owed. */
  dueSinceMs: number
  /** From now on it waits for its slot alone: token and organization are known. */
  onJoin?: (() => void) | undefined
  /** Its slot has come: the request goes out now. */
  onSlot?: (() => void) | undefined
}

/** One slot in so many goes to each kind that gives way to feeds, however many feeds are due. */
export const leastShare = 10

/** Those that give way to feeds; among each other the oldest debt decides. */
const patient = ['sweep', 'detail', 'command'] as const

/**
 * Tokens first; then whichever of the patient kinds had none of the last nine slots; then feeds by
 * oldest debt; then the patient kinds, by oldest debt. `recent`: the kinds served, newest last.
 */
export function pickNext<T extends Turn>(
  waiting: readonly T[],
  recent: readonly TurnKind[],
): T | undefined {
  const oldest = (...kinds: readonly TurnKind[]): T | undefined =>
    waiting
      .filter(({ kind }) => kinds.includes(kind))
      .reduce<T | undefined>((a, b) => (a && a.dueSinceMs <= b.dueSinceMs ? a : b), undefined)
  return (
    oldest('token') ??
    oldest(...patient.filter((kind) => isOwedAShare(kind, recent))) ??
    oldest('feed') ??
    oldest(...patient)
  )
}

function isOwedAShare(kind: TurnKind, recent: readonly TurnKind[]): boolean {
  const last = recent.slice(1 - leastShare)
  return last.length === leastShare - 1 && !last.includes(kind)
}
