import type { PolledFeed } from '../../src/feeds/polled-feed.ts'

/** A feed with every default; say only what the test is about. */
export function aFeed(overrides: Partial<PolledFeed> = {}): PolledFeed {
  return {
    name: 'brand',
    type: 'events',
    account: 'main',
    scope: 'https://api.example.com 42',
    identifierGroup: 1042,
    filters: {},
    everyMs: 60_000,
    lagObjectiveMs: 300_000,
    startMs: 86_400_000,
    detail: [],
    tier: 'search',
    labels: {},
    ...overrides,
  }
}
