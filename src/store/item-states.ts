/** The states of an item: one list of words for lists, JSON, questions and the docs. */
import { type Item, type ItemState, pendingStates } from './records.ts'

export const itemStates = {
  queued: 'waits to be sent, or for the batch of its sink',
  held: 'waits for a mute to end or its full event',
  grouped: 'waits for the message of its group, or its digest',
  frozen: 'is in a message that is composed and not delivered yet',
  sending: 'an attempt is under way',
  retrying: 'an attempt failed, and the next one is due later',
  delivered: 'the sink accepted it',
  dead: 'could not be delivered; nothing more is tried',
  discarded: 'an operator gave it up; it counts as dead',
  diverted: 'went to a fallback, or where an operator moved it',
  suppressed: 'a rule decided not to send it',
  quarantined: 'could not be parsed as an event; nothing was sent',
} as const

export type State = keyof typeof itemStates

export const stateWords = Object.keys(itemStates) as State[]

/** Stored states that say where an item waits, and not how it stands. */
const wordOf: Partial<Record<ItemState, State>> = {
  group: 'grouped',
  digest: 'grouped',
  batch: 'frozen',
}

export function stateOf({ state }: Pick<Item, 'state'>): State {
  return wordOf[state] ?? (state as State)
}

/** Of the states in which an item is not final. */
export const pendingWords: ReadonlySet<State> = new Set(
  pendingStates.map((state) => stateOf({ state })),
)

/** Counts by stored state as counts by word; without states that do not occur. */
export function countByState(counts: Readonly<Record<string, number>>): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const [state, count] of Object.entries(counts)) {
    const word = stateOf({ state: state as ItemState })
    if (count !== 0) sums[word] = (sums[word] ?? 0) + count
  }
  return sums
}

/** Why an item stands as it does: the reason of its last failure, or the rule. */
export function reasonOf({ state, history, heldFor, rule }: Item): string | undefined {
  if (state === 'dead' || state === 'retrying') return history.at(-1)?.reason ?? 'unknown'
  if (state === 'held' || state === 'suppressed') return heldFor
  return state === 'diverted' || state === 'discarded' ? rule : undefined
}

/** The rule that suppresses or holds it; of a shadow the route that is in it. */
export function ruleOf({ rule, heldFor, routes }: Item): string | undefined {
  return rule ?? (heldFor === 'shadow' ? routes[0] : undefined)
}

const fallbackRulePrefix = 'fallback to '

export function fallbackRule(sink: string): string {
  return `${fallbackRulePrefix}${sink}`
}

/** Whether failover diverted the item; what an operator moved does not come back. */
export function wentToFallback({ state, rule = '' }: Pick<Item, 'state' | 'rule'>): boolean {
  return state === 'diverted' && rule.startsWith(fallbackRulePrefix)
}
