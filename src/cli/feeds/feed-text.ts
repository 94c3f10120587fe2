/** How commands describe a feed. */

import type { CredentialQuery, EventSearchQuery, FeedConfig } from '../../feed-types/config.ts'
import type { FeedReport } from '../../daemon/for-commands/feed-report.ts'
import { formatDuration } from '../terminal.ts'

/** What a feed reads, e.g. `identifier group 1042`. */
export function describeFeed(feed: FeedConfig): string {
  switch (feed.type) {
    case 'events':
      return `identifier group ${feed.identifierGroup}`
    case 'tenant_events':
      return 'all events of the tenant'
    case 'identifier_events':
      return `events of identifier ${feed.identifier}`
    case 'credentials':
      return `credentials of identifier ${feed.identifier}`
    case 'tenant_credentials':
      return 'all credentials of the tenant'
    case 'credential_search':
      return `credential search by ${formatCredentialQuery(feed.query)}`
    case 'cookies':
      return `cookies of ${feed.domain}`
    case 'event_search':
      return `event search by ${formatEventQuery(feed.query)}`
  }
}

/** What a feed reads, under the keys of the configuration. */
export function feedQueryJson(feed: FeedConfig): Record<string, unknown> {
  switch (feed.type) {
    case 'events':
      return { identifier_group: feed.identifierGroup }
    case 'tenant_events':
    case 'tenant_credentials':
      return {}
    case 'identifier_events':
    case 'credentials':
      return { identifier: feed.identifier }
    case 'cookies':
      return { domain: feed.domain, names: feed.names, paths: feed.paths }
    case 'credential_search':
    case 'event_search':
      return { query: feed.query }
  }
}

function formatCredentialQuery(query: CredentialQuery): string {
  switch (query.type) {
    case 'domain':
      return `domain ${query.fqdn}`
    case 'auth_domain':
      return `login domain ${query.fqdn}`
    case 'email':
      return `address ${query.email}`
    case 'keyword':
      return `keyword ${query.keyword}`
  }
}

/** `keyword acme`, `name Jo Doe`: the kind, then the search terms. */
function formatEventQuery({ type, ...terms }: EventSearchQuery): string {
  const values = Object.values(terms).filter((term) => typeof term === 'string')
  return [type.replaceAll('_', ' '), ...values].join(' ')
}

/** How soon late events are found at most. */
export function formatBounds(
  feed: FeedConfig,
  { soonMs, wholeMs, isMatched, isFrequent }: NonNullable<FeedReport['bounds']>,
): string {
  const soon = formatDuration(soonMs)
  if (isMatched) return `what is late, however old, is found by match time within ${soon}`
  const within =
    soonMs === wholeMs
      ? `what is late is found within ${soon}`
      : `what is late by minutes is found within ${soon}, what is late by days within ${formatDuration(wholeMs)}`
  const backMs = feed.rescan?.backMs ?? 0
  if (backMs === 0) return within // all there is
  const rest = isFrequent ? 'only by match time, where the service has it' : 'not at all'
  return `${within}, beyond ${formatDuration(backMs)} ${rest}`
}
