/** Who gets a free slot: pure, so that a better schedule replaces one function. */

/**
 * `token`: renewing or testing the token, which everything else waits for; `feed`: a page of a feed;
 * `detail`: the full event of a message about to be sent; `command`: what an operator asked for.
 */
export type TurnKind = 'token' | 'feed' | 'detail' | 'command'

export interface Turn {
  kind: TurnKind
  /** Of the feed, sink or command. */
  name: string
  /** Wall clock ms since when the request is owed. */
  dueSinceMs: number
}

/** One slot in so many goes to a command, however many feeds are due. */
export const commandShare = 10

/**
 * Tokens first; feeds by oldest debt; detail after feeds; commands when no feed is due, in the order of
 * their debt among the details, or one slot in ten. `recent`: the kinds served, newest last.
 */
export function pickNext<T extends Turn>(
  waiting: readonly T[],
  recent: readonly TurnKind[],
): T | undefined {
  const oldest = (...kinds: TurnKind[]): T | undefined =>
    waiting
      .filter(({ kind }) => kinds.includes(kind))
      .reduce<T | undefined>((a, b) => (a && a.dueSinceMs <= b.dueSinceMs ? a : b), undefined)
  const command = isCommandsTurn(recent) ? oldest('command') : undefined
  return oldest('token') ?? command ?? oldest('feed') ?? oldest('detail', 'command')
}

function isCommandsTurn(recent: readonly TurnKind[]): boolean {
  const last = recent.slice(1 - commandShare)
  return last.length === commandShare - 1 && !last.includes('command')
}
