/** What `check --live` asks each account's service: whether the words of its feeds' filters are known there. */
import type { Config } from '../config/config.ts'
import type { FeedConfig } from '../feed-types/feed-config.ts'
import { nearest } from '../lib/errors.ts'
import type { ServiceClient } from '../upstream/client.ts'
import { ServiceError } from '../upstream/error.ts'
import type { Asked } from '../upstream/resources/operation.ts'

export interface LiveFindings {
  /** One line each; the service would refuse the feed. */
  mistakes: string[]
  /** What could not be found out, and what to do. */
  remarks: string[]
}

/** Asks every account that has feeds with filters, one request for each kind of filter. */
export async function checkLive(
  { accounts, feeds }: Config,
  ask: { client: (account: string) => ServiceClient; asked: () => Asked },
): Promise<LiveFindings> {
  const findings: LiveFindings = { mistakes: [], remarks: [] }
  for (const { name } of accounts) {
    const filtered = feeds.filter((feed) => feed.account === name && filtersOf(feed).length > 0)
    if (filtered.length > 0) await checkAccount(filtered, ask.client(name), ask.asked, findings)
  }
  return findings
}

type Kind = 'type' | 'severity'

interface Filter {
  kind: Kind
  words: readonly string[]
}

/** Of the feeds by the v4 event searches; the words of other feeds are held against lists beforehand. */
function filtersOf(feed: FeedConfig): Filter[] {
  if (!('filters' in feed) || feed.type === 'legacy_search') return []
  const { filters } = feed as { filters?: { type?: unknown; severity?: unknown } }
  return (['type', 'severity'] as const).flatMap((kind) => {
    const words = [filters?.[kind] ?? []].flat().filter((word) => typeof word === 'string')
    return words.length === 0 ? [] : [{ kind, words }]
  })
}

async function checkAccount(
  feeds: readonly FeedConfig[],
  client: ServiceClient,
  asked: () => Asked,
  { mistakes, remarks }: LiveFindings,
): Promise<void> {
  for (const kind of ['type', 'severity'] as const) {
    const wanted = feeds.flatMap((feed) =>
      filtersOf(feed)
        .filter((filter) => filter.kind === kind)
        .flatMap(({ words }) => words.map((word) => ({ feed: feed.name, word }))),
    )
    if (wanted.length === 0) continue
    const told = await wordsOf(client, kind, asked)
    if (typeof told === 'string') remarks.push(`account ${client.account.name}: ${told}`)
    else {
      mistakes.push(
        ...wanted
          .filter(({ word }) => !told.includes(word))
          .map(({ feed, word }) => problemOf({ feed, kind, word }, told)),
      )
    }
  }
}

/** The words that the server takes, or why it does not say. */
async function wordsOf(
  client: ServiceClient,
  kind: Kind,
  asked: () => Asked,
): Promise<readonly string[] | string> {
  try {
    const words =
      kind === 'type'
        ? await client.eventTypeFilters(asked())
        : await client.eventSeverityFilters(asked())
    if (words.length === 0) return `the service lists no word for ${kind} filters`
    return words
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return `whether the service knows the words of ${kind} filters could not be found out: ${error.message}`
  }
}

function problemOf(
  { feed, kind, word }: { feed: string; kind: Kind; word: string },
  known: readonly string[],
): string {
  const meant = nearest(word, known)
  const remedy = meant === undefined ? 'write one of its words' : `did you mean "${meant}"?`
  return `feed ${feed}: filters.${kind} "${word}" is no filter of this service, which would refuse the feed (422); ${remedy}`
}
