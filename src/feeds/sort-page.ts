import type { ThreatEvent } from '../events/threat-event.ts'
import { isKnownSeverity } from '../events/severity.ts'
import type { MalformedItem, RoutedEvent } from '../intake/intake.ts'
import { canonicalJson } from './canonical-json.ts'
import type { CredentialLikeness, ParsedFeedItem } from './feed-type.ts'
import { typeOf } from './feed-types.ts'
import type { PolledFeed } from './polled-feed.ts'

export interface Sorting {
  feed: PolledFeed
  /** The start bound: what was created before it was there before the feed began. */
  floorMs: number
  /**
   * Whether what stands below the start bound is marked as baseline, and not sent. Once all of it was
   * seen, what appears there is new.
   */
  readsBaseline: boolean
  plan: (event: ThreatEvent) => Pick<RoutedEvent, 'decisions' | 'items' | 'inhibits'>
  /** undefined where the account's key cannot be read: then nothing is recognised. */
  pairIdOf: (parts: readonly string[]) => string | undefined
  /** Encrypts a leaked secret; undefined where no sink reveals any. */
  seal: (uid: string, secret: string) => string | undefined
  /** Whether something stands in the quarantine: then an event is named as it would stand there. */
  hasQuarantine?: boolean
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
      const identity = sorting.hasQuarantine === true && { identity: identityOf(raw, sorting) }
      events.push({ ...routed(parsed, sorting), ...identity })
    } else {
      const { uid, problem } = parsed
      const kept = canonicalJson(type.keptOfMalformed(raw))
      malformed.push({ uid, problem, raw: kept, identity: identityOf(raw, sorting) })
    }
  }
  return { events, malformed }
}

/** The whole item may hold a secret: it is named under a key that Redis does not have. */
function identityOf(raw: unknown, { pairIdOf }: Sorting): string {
  const whole = canonicalJson(raw)
  return pairIdOf([whole]) ?? whole
}

function routed(
  { event, pair, secret }: ParsedFeedItem & { ok: true },
  { feed, floorMs, readsBaseline, plan, seal, pairIdOf }: Sorting,
): RoutedEvent {
  const isBelow = (event.createdAtMs ?? Infinity) < floorMs
  const isBaseline = isBelow && readsBaseline
  const sealedSecret = secret && !isBaseline ? seal(event.uid, secret) : undefined
  return {
    event,
    ...(isBaseline ? { decisions: [], items: [] } : plan(event)),
    wantsDetail: feed.detail.includes(
      isKnownSeverity(event.severity) ? event.severity : 'critical',
    ),
    isBelow,
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
