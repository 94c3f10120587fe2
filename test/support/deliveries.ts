import type { Delivery, DeliveryMember, Sink } from '../../src/sinks/sink.ts'
import { createLinkFilter } from '../../src/upstream/links.ts'
import { aThreatEvent } from './events.ts'

const serviceLink = createLinkFilter([
  { name: 'main', baseUrl: 'https://api.example.com', linkHosts: [] },
])

/** A plausible member; say only what the test is about. */
export function aMember(overrides: Partial<DeliveryMember> = {}): DeliveryMember {
  const { event = aThreatEvent() } = overrides
  return {
    id: 'item1',
    account: 'main',
    feed: 'brand',
    labels: { team: 'brand' },
    routes: ['urgent'],
    event,
    link: serviceLink('main', event.url),
    fetchedAtMs: Date.UTC(2026, 10, 1, 12, 2, 0),
    ...overrides,
  }
}

/** A first attempt of one member at the sink's first destination. */
export function aDelivery(sink: Sink, overrides: Partial<Delivery> = {}): Delivery {
  const destination = sink.destinations[0]
  if (destination === undefined) throw new Error(`sink ${sink.name} has no destination`)
  return {
    id: '0123456789abcdef',
    destination,
    members: [aMember()],
    attempt: 1,
    mayBeRepeat: false,
    ...overrides,
  }
}
