/** Pages to take in, made of events as the service shows them. */
import type { ThreatEvent } from '../../src/events/threat-event.ts'
import { parseItem } from '../../src/feeds/parse-item.ts'
import { acceptPage, type RoutedEvent } from '../../src/intake/intake.ts'
import type { Book } from '../../src/ledger/book.ts'
import type { MadeWork } from '../../src/ledger/collecting.ts'
import type { FetchLoop } from './fetch-loop.ts'

/** The service returns at most ten items a page (service description, Limits). */
export const pageSize = 10

/** The first events of the sandbox, as they are taken in. */
export async function sampleEvents(fetchLoop: FetchLoop, count: number): Promise<ThreatEvent[]> {
  const events: ThreatEvent[] = []
  for await (const items of fetchLoop.walk()) {
    for (const item of items) {
      const parsed = parseItem(item)
      if (parsed.ok) events.push(parsed.event)
    }
    if (events.length >= count) break
  }
  return events
}

export interface PageSource {
  /** Takes in one page of ten new events, for each of the destinations; page after page. */
  takeIn(): Promise<{ uids: string[]; made: MadeWork[] }>
}

/** `samples` come again and again, each time under a uid of its own. */
export function createPageSource(
  book: Book,
  samples: ThreatEvent[],
  destinations: string[],
): PageSource {
  let sequence = 0

  function nextEvent(place: number): RoutedEvent {
    const number = sequence * pageSize + place
    const sample = samples[number % samples.length]!
    return {
      event: { ...sample, uid: `${sample.uid}-${number}` },
      decisions: [{ route: 'root', path: ['root'], why: [] }],
      items: destinations.map((destination) => ({
        sink: destination.split(':')[0]!,
        destination,
        routes: ['root'],
      })),
      wantsDetail: false,
    }
  }

  return {
    async takeIn() {
      const events = Array.from({ length: pageSize }, (_none, place) => nextEvent(place))
      const accepted = await acceptPage(book, pageOf(events, sequence), () => undefined)
      if (accepted.status !== 'committed' || accepted.counts.new !== pageSize) {
        throw new Error(`a page was not taken in: ${JSON.stringify(accepted)}`)
      }
      sequence += 1
      return { uids: events.map(({ event }) => event.uid), made: accepted.made }
    },
  }
}

function pageOf(events: RoutedEvent[], sequence: number): Parameters<typeof acceptPage>[1] {
  const body = { size: pageSize, order: 'asc', filters: {} }
  const cursor = Buffer.from(`cursor ${sequence}`).toString('base64')
  return {
    feed: 'all',
    labels: {},
    sequence,
    generation: 1,
    walk: { fingerprint: '0123456789abcdef', body, cursor, reason: 'first', startedAtMs: 0 },
    requestedAtMs: Date.now(),
    isCaughtUp: false,
    isBackfilling: true,
    events,
    malformed: [],
  }
}
