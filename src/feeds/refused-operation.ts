/**
 * Feeds whose operation not every server has, or not every key may use. Where the service refuses it by 403,
 * 404 or 405 the feed stops: the refusal stands in its state, for commands, metrics and operators, and in
 * the account's memory of what it has, so that it is seldom asked again, and at once with another key.
 */
import { noteRefusal, type FeedState } from '../ledger/feed-state.ts'
import { isNotThere, isUnknownPath } from '../service/capabilities.ts'
import type { ServiceError } from '../service/service-error.ts'
import { typeOf } from './feed-types.ts'
import type { PolledFeed } from './polled-feed.ts'
import type { PollerOptions } from './poller.ts'

/** What of the service a feed cannot do without. */
export interface Need {
  /** Names it in the account's memory. */
  capability: string
  /** Such as `POST /firework/v4/events/tenant/_search`. */
  operation: string
  /** Whose data it reads, such as `identifier 77`. */
  what: string
}

type Asking = Pick<PollerOptions, 'client' | 'book' | 'clock' | 'logger' | 'metrics'>

/** A feed that never got an answer asks again once a day. */
const askAgainMs = 86_400_000
/** One that did may have met a fault of a gateway. */
const askSoonMs = 600_000

/** Whether the service refused it so lately that it is not asked again yet. Each feed asks for itself once. */
export async function isRefused(
  { client, clock }: Asking,
  feed: PolledFeed,
  { lastSuccessMs, refused }: FeedState,
): Promise<boolean> {
  if (!refused) return false
  const need = typeOf(feed).needs?.(feed)
  const known = need && (await client(feed.account).capabilities.read(need.capability))
  if (!known || known.has) return false
  return clock.now() - known.atMs < (lastSuccessMs === undefined ? askAgainMs : askSoonMs)
}

/** Whether the error is such a refusal; then it is noted, and said once. */
export async function noteRefused(
  { client, book, clock, logger, metrics }: Asking,
  feed: PolledFeed,
  error: ServiceError,
): Promise<boolean> {
  const need = typeOf(feed).needs?.(feed)
  if (!need || !isNotThere(error)) return false
  metrics.feedPollsFailedTotal.inc({ feed: feed.name, reason: error.reason })
  await client(feed.account).capabilities.note(need.capability, false)
  const reason = reasonOf(need, error)
  const refusal = { reason, sinceMs: clock.now() }
  const isFirst = await noteRefusal(book(feed.account), feed.name, refusal)
  const about = { feed: feed.name, account: feed.account, err: error }
  if (isFirst) logger.warn(about, `the feed stops: ${reason}`)
  return true
}

/** After a page came. */
export async function clearRefused(
  { client, book, logger }: Asking,
  feed: PolledFeed,
  { refused }: FeedState,
): Promise<void> {
  const need = typeOf(feed).needs?.(feed)
  if (!need || !refused) return
  await client(feed.account).capabilities.note(need.capability, true)
  await noteRefusal(book(feed.account), feed.name, undefined)
  logger.info(
    { feed: feed.name, account: feed.account },
    'the feed goes on: it is no longer refused',
  )
}

function reasonOf({ operation, what }: Need, error: ServiceError): string {
  const { status } = error
  if (status === 403) {
    return `403 to ${operation}: the user of the key needs access to ${what}`
  }
  if (status === 405 || isUnknownPath(error)) {
    return `${status} to ${operation}: this server is too old to have it; use a feed of another type`
  }
  return `${status} to ${operation}: there is no ${what}`
}
