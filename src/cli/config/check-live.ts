/**
 * `check --live`: asks the API of each account whether it knows the words in the feeds' filters,
 * and names filters that find less than they did.
 */
import type { Config } from '../../config/config.ts'
import type { FeedConfig } from '../../feed-types/feed-config.ts'
import { findNearest } from '../../lib/errors.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { UpstreamError } from '../../upstream/error.ts'
import type { CallOptions } from '../../upstream/call.ts'
import { eventOperations } from '../../upstream/resources/events.ts'

export interface LiveFindings {
  /** One line for each filter that the API would refuse. */
  mistakes: string[]
  /** What the service does not tell, and filters that have gone quiet. */
  remarks: string[]
  /** Requests that failed; another attempt may tell more. */
  failures: string[]
}

/** Checks every account that has feeds with filters; one request for each kind of filter. */
export async function checkLive(
  { accounts, feeds }: Config,
  ask: { client: (account: string) => UpstreamClient; callOptions: () => CallOptions },
): Promise<LiveFindings> {
  const findings: LiveFindings = { mistakes: [], remarks: [], failures: [] }
  for (const { name } of accounts) {
    const own = feeds.filter((feed) => feed.account === name)
    findings.remarks.push(...own.flatMap(describeQuiet))
    const filtered = own.filter((feed) => listFilters(feed).length > 0)
    if (filtered.length > 0)
      await checkAccount(filtered, ask.client(name), ask.callOptions, findings)
  }
  return findings
}

type Kind = 'type' | 'severity'

interface Filter {
  kind: Kind
  words: readonly string[]
}

/**
 * Filters of the feeds that use the v4 event searches; `check` compares the words of other feeds
 * with lists.
 */
function listFilters(feed: FeedConfig): Filter[] {
  if (!('filters' in feed) || feed.type === 'legacy_search') return []
  const { filters } = feed as { filters?: { type?: unknown; severity?: unknown } }
  return (['type', 'severity'] as const).flatMap((kind) => {
    const words = [filters?.[kind] ?? []].flat().filter((word) => typeof word === 'string')
    return words.length === 0 ? [] : [{ kind, words }]
  })
}

/** Words whose new events come under another type (docs/api-notes.md, Types that stand for others). */
const successors: Readonly<Record<string, string>> = {
  leak: 'leaked_credential',
  leaks: 'leaked_credential',
}

/** A filter that the service accepts, and that misses what it found before. */
function describeQuiet(feed: FeedConfig): string[] {
  const { filters } = feed as { filters?: Partial<Record<'type' | 'types', string[]>> }
  const [key, words] = filters?.types ? ['types', filters.types] : ['type', filters?.type ?? []]
  return words.flatMap((word) => {
    const successor = successors[word]
    if (successor === undefined || words.includes(successor)) return []
    const problem = `feed ${feed.name}: filters.${key} "${word}" has gone quiet: since March 2026 new events come as "${successor}"`
    return [`${problem}; add ${successor}`]
  })
}

async function checkAccount(
  feeds: readonly FeedConfig[],
  client: UpstreamClient,
  callOptions: () => CallOptions,
  { mistakes, remarks, failures }: LiveFindings,
): Promise<void> {
  for (const kind of ['type', 'severity'] as const) {
    const wanted = feeds.flatMap((feed) =>
      listFilters(feed)
        .filter((filter) => filter.kind === kind)
        .flatMap(({ words }) => words.map((word) => ({ feed: feed.name, word }))),
    )
    if (wanted.length === 0) continue
    const known = await readKnownWords(client, kind, callOptions)
    const unknown = (why: string): string => `account ${client.account.name}: ${why}`
    if (known instanceof UpstreamError) {
      const found = known.status === 404 ? remarks : failures // not every service has the lists
      found.push(
        unknown(
          `whether the service knows the words of ${kind} filters could not be found out: ${known.message}`,
        ),
      )
    } else if (known.length === 0) {
      remarks.push(unknown(`the service lists no word for ${kind} filters`))
    } else {
      mistakes.push(
        ...wanted
          .filter(({ word }) => !known.includes(word))
          .map(({ feed, word }) => formatProblem({ feed, kind, word }, known)),
      )
    }
  }
}

/** Returns the words that the service accepts, or why they are unknown. */
async function readKnownWords(
  client: UpstreamClient,
  kind: Kind,
  callOptions: () => CallOptions,
): Promise<readonly string[] | UpstreamError> {
  try {
    const list = kind === 'type' ? eventOperations.types : eventOperations.severities
    return await client.call(list, {}, callOptions())
  } catch (error) {
    if (error instanceof UpstreamError) return error
    throw error
  }
}

function formatProblem(
  { feed, kind, word }: { feed: string; kind: Kind; word: string },
  known: readonly string[],
): string {
  const nearestWord = findNearest(word, known)
  const remedy =
    nearestWord === undefined ? 'write one of its words' : `did you mean "${nearestWord}"?`
  return `feed ${feed}: filters.${kind} "${word}" is no filter of this service, which would refuse the feed (422); ${remedy}`
}
