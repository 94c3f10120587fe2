import type { ThreatEvent } from '../events/threat-event.ts'
import type { MalformedItem, RoutedEvent } from '../intake/intake.ts'
import { canonicalJson } from './canonical-json.ts'
import type { CredentialLikeness, ParsedFeedItem } from './feed-type.ts'
import { typeOf } from './feed-types.ts'
import type { PolledFeed } from './polled-feed.ts'

export interface Sorting {
  feed: PolledFeed
  /** Older items are marked and counted, and nothing more. */
  floorMs: number
  plan: (event: ThreatEvent) => Pick<RoutedEvent, 'decisions' | 'items' | 'inhibits'>
  /** undefined where the account's key cannot be read: then nothing is recognised. */
  pairIdOf: (parts: readonly string[]) => string | undefined
  /** Encrypts a leaked secret; undefined where no sink reveals any. */
  seal: (uid: string, secret: string) => string | undefined
}

/** Sorts a page's raw items into events with their way fixed, and items that are not events. */
export function sortPage(
  items: readonly unknown[],
  sorting: Sorting,
): { events: RoutedEvent[]; malformed: MalformedItem[] } {
  const events: RoutedEvent[] = []
  const malformed: MalformedItem[] = []
  for (const raw of items) {
    const type = typeOf(sorting.feed)
    const parsed = type.parse(raw, sorting.feed)
    if (parsed.ok) {
      events.push(routed(parsed, sorting))
    } else {
      const { uid, problem } = parsed
      const kept = canonicalJson(type.keptOfMalformed(raw))
      const whole = canonicalJson(raw) // it may hold a secret: named under a key that Redis does not have
      const identity = sorting.pairIdOf([whole]) ?? whole
      malformed.push({ uid, problem, raw: kept, identity })
    }
  }
  return { events, malformed }
}

function routed(
  { event, pair, secret }: ParsedFeedItem & { ok: true },
  { feed, floorMs, plan, seal, pairIdOf }: Sorting,
): RoutedEvent {
  const isBaseline = (event.createdAtMs ?? Infinity) < floorMs
  const sealedSecret = secret && !isBaseline ? seal(event.uid, secret) : undefined
  return {
    event,
    ...(isBaseline ? { decisions: [], items: [] } : plan(event)),
    wantsDetail: feed.detail.includes(event.severity),
    isBaseline,
    ...pairOf(pair, pairIdOf),
    ...(sealedSecret !== undefined && { sealedSecret }),
  }
}

function pairOf(
  pair: CredentialLikeness | null | undefined,
  pairIdOf: Sorting['pairIdOf'],
): Pick<RoutedEvent, 'pair'> {
  if (!pair) return {}
  const { parts, ...told } = pair
  const id = pairIdOf(parts)
  return id === undefined ? {} : { pair: { id, ...told } }
}
