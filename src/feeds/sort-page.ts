import type { ThreatEvent } from '../events/threat-event.ts'
import type { MalformedItem, RoutedEvent } from '../intake/intake.ts'
import { canonicalJson } from './canonical-json.ts'
import type { PolledFeed } from './polled-feed.ts'
import { maskSecrets } from './mask-secrets.ts'
import { parseItem } from './parse-item.ts'

/** Sorts a page's raw items into events with their way fixed, and items that are not events. */
export function sortPage(
  items: readonly unknown[],
  feed: PolledFeed,
  plan: (event: ThreatEvent, feed: PolledFeed) => Pick<RoutedEvent, 'decisions' | 'items'>,
): { events: RoutedEvent[]; malformed: MalformedItem[] } {
  const events: RoutedEvent[] = []
  const malformed: MalformedItem[] = []
  for (const raw of items) {
    const parsed = parseItem(raw)
    if (parsed.ok) {
      const { event } = parsed
      events.push({
        event,
        ...plan(event, feed),
        wantsDetail: feed.detail.includes(event.severity),
      })
    } else {
      const { uid, problem } = parsed
      malformed.push({ uid, problem, raw: canonicalJson(maskSecrets(raw)) })
    }
  }
  return { events, malformed }
}
