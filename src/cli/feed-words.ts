import type { CredentialQuery, FeedConfig } from '../feeds/config.ts'

/** What a feed reads, e.g. `identifier group 1042`. */
export function feedInWords(feed: FeedConfig): string {
  switch (feed.type) {
    case 'events':
      return `identifier group ${feed.identifierGroup}`
    case 'credentials':
      return `credentials of identifier ${feed.identifier}`
    case 'credential_search':
      return `credential search by ${queryInWords(feed.query)}`
  }
}

/** The same under the keys of the file. */
export function askedJson(feed: FeedConfig): Record<string, unknown> {
  switch (feed.type) {
    case 'events':
      return { identifier_group: feed.identifierGroup }
    case 'credentials':
      return { identifier: feed.identifier }
    case 'credential_search':
      return { query: feed.query }
  }
}

function queryInWords(query: CredentialQuery): string {
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
