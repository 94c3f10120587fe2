import type {
  CookiesFeedConfig,
  CredentialSearchFeedConfig,
  CredentialsFeedConfig,
  EventSearchFeedConfig,
  EventsFeedConfig,
  FeedCommon,
} from '../../src/feeds/types/config.ts'
import type { Polled } from '../../src/feeds/types/polled-feed.ts'
import type { FeedState, RescanState } from '../../src/store/feed-state.ts'

const common: FeedCommon & { scope: string; everyMs: number } = {
  name: 'brand',
  account: 'main',
  scope: 'https://api.example.com 42',
  everyMs: 60_000,
  longestMs: undefined,
  lagObjectiveMs: 300_000,
  startMs: 86_400_000,
  initialPoll: 'summary',
  detail: [],
  tier: 'search',
  labels: {},
  rescan: { everyMs: 3_600_000, backMs: 604_800_000 },
}

/** Of feeds that are read by rate. */
const watched = { ...common, everyMs: undefined, longestMs: 60_000 }

/** A feed with every default but no full events; say only what the test is about. */
export function aFeed(overrides: Partial<Polled<EventsFeedConfig>> = {}): Polled<EventsFeedConfig> {
  const scope = { identifierGroup: 1042, identifier: undefined }
  return { ...watched, type: 'events', ...scope, filters: {}, ...overrides }
}

/** A feed of all events of the tenant, likewise. */
export function aTenantFeed(
  overrides: Partial<Polled<EventsFeedConfig>> = {},
): Polled<EventsFeedConfig> {
  return aFeed({ identifierGroup: undefined, ...overrides })
}

/** A feed of an identifier's events, likewise. */
export function anIdentifierFeed(
  overrides: Partial<Polled<EventsFeedConfig>> = {},
): Polled<EventsFeedConfig> {
  return aFeed({ identifierGroup: undefined, identifier: 77, ...overrides })
}

/** A feed of an identifier's leaked credentials, likewise. */
export function aCredentialFeed(
  overrides: Partial<Polled<CredentialsFeedConfig>> = {},
): Polled<CredentialsFeedConfig> {
  return {
    ...common,
    name: 'staff',
    type: 'credentials',
    tier: 'basic',
    rescan: { everyMs: 86_400_000, backMs: 0 },
    identifier: 77,
    severity: 'high',
    ...overrides,
  }
}

/** A feed of all leaked credentials of the tenant, likewise. */
export function aTenantCredentialFeed(
  overrides: Partial<Polled<CredentialsFeedConfig>> = {},
): Polled<CredentialsFeedConfig> {
  return aCredentialFeed({ identifier: undefined, ...overrides })
}

/** A feed of what a global credential search finds, likewise. */
export function aCredentialSearch(
  overrides: Partial<Polled<CredentialSearchFeedConfig>> = {},
): Polled<CredentialSearchFeedConfig> {
  return {
    ...common,
    name: 'leaks',
    type: 'credential_search',
    everyMs: 3_600_000,
    lagObjectiveMs: 10_800_000,
    rescan: { everyMs: 86_400_000, backMs: 604_800_000 },
    query: { type: 'domain', fqdn: 'example.com' },
    severity: 'high',
    astp: false,
    quotaReserve: 0,
    ...overrides,
  }
}

/** A feed of the stolen cookies of a domain, likewise. */
export function aCookieFeed(
  overrides: Partial<Polled<CookiesFeedConfig>> = {},
): Polled<CookiesFeedConfig> {
  return {
    ...common,
    name: 'sessions',
    type: 'cookies',
    tier: 'basic',
    rescan: { everyMs: 86_400_000, backMs: 604_800_000 },
    domain: 'vpn.example.com',
    names: [],
    paths: [],
    severity: 'high',
    expiredSeverity: 'info',
    ...overrides,
  }
}

/** A feed of what a global search for events finds, likewise. */
export function anEventSearch(
  overrides: Partial<Polled<EventSearchFeedConfig>> = {},
): Polled<EventSearchFeedConfig> {
  return {
    ...common,
    name: 'hunting',
    type: 'event_search',
    query: { type: 'keyword', keyword: 'acme' },
    filters: {},
    quotaReserve: 0,
    ...overrides,
  }
}

function aScanState(): RescanState {
  return {
    sequence: 0,
    generation: 0,
    scan: undefined,
    isDone: false,
    lastCompletedMs: undefined,
    lastEnded: undefined,
  }
}

/** A feed that never polled, opened at this time with a start of a day. */
export function aFeedState(overrides: Partial<FeedState> & { nowMs: number }): FeedState {
  return {
    sequence: 0,
    generation: 1,
    startBoundMs: overrides.nowMs - 86_400_000,
    scan: undefined,
    isRewound: false,
    newestMs: undefined,
    aheadMs: undefined,
    aheadAtMs: undefined,
    lastSuccessMs: undefined,
    lastCaughtUpMs: undefined,
    isBackfilling: false,
    isEnded: false,
    whole: aScanState(),
    recent: aScanState(),
    long: aScanState(),
    rescans: {
      snapshotId: undefined,
      rungMs: [],
      matched: undefined,
      perWeek: undefined,
      firstPollMs: undefined,
    },
    unreadable: undefined,
    paused: undefined,
    trouble: undefined,
    rescanTrouble: undefined,
    ...overrides,
  }
}
