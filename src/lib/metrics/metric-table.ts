/**
 * Every metric that Tocsin exports, in one table. The names and help texts, the typed access of
 * `metrics.ts` and the zero start all follow from it. A label's values are a closed list written
 * here or names of the configuration; never a uid, an address or an error text.
 */
import type { LabelDomains, MetricDefinition } from './metric-kinds.ts'
import { unreadableFields } from './unreadable-fields.ts'

/** The values of a `severity` label; the first five are the `severities` of `event.ts`. */
export const severityWords = ['info', 'low', 'medium', 'high', 'critical', 'unknown'] as const

/** The upstream limits that requests count against. */
const tiers = ['search', 'basic'] as const

/** The reasons of an `UpstreamError`. */
const pollFailures = [
  'auth',
  'rate_limited',
  'rejected',
  'invalid',
  'unavailable',
  'timeout',
  'contract',
] as const

/** The reasons of a `SinkError`, after the one good outcome. */
const attemptOutcomes = [
  'delivered',
  'rate_limited',
  'unavailable',
  'timeout',
  'connection_lost',
  'rejected',
  'invalid',
  'unauthorized',
  'gone',
  'recipient_refused',
  'recipient_deferred',
  'redirected',
  'forbidden_address',
  'misconfigured',
] as const

/** The values of a `code` label. `none`: no answer came. */
export const responseCodes = [
  '200',
  '400',
  '401',
  '403',
  '404',
  '422',
  '429',
  '500',
  '502',
  '503',
  '504',
  'none',
  'other',
] as const

/** Why an item was settled without a message. */
const suppressionReasons = [
  'silence',
  'inhibition',
  'mute',
  'shadow',
  'ignored',
  'remediated',
  'seen_again',
  'superseded',
] as const

/** Why a request for the page or its API is refused: the reasons of `page/access/refusals.ts`. */
const httpRefusals = [
  'no_users',
  'sign_in_required',
  'wrong_password',
  'wrong_token',
  'unknown_user',
  'role',
  'missing',
  'forged',
  'expired',
  'replayed',
  'cross_site',
  'media_type',
  'rate_limited',
  'busy',
  'unavailable',
] as const

/** From a minute to a week. */
const latenessBuckets = [60, 600, 3600, 86_400, 604_800]
const detectionBuckets = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600]
/** From one quick answer to the longest that is waited for. */
const answerBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** From one quick webhook to an hour of retries. */
const deliveryBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600]

const feed = { feed: 'feeds' } as const
const sink = { sink: 'sinks' } as const
const accountAndTier = { account: 'accounts', tier: tiers } as const

export const metricTable = {
  feed_polls_total: counter('Polls started.', feed),
  feed_polls_failed_total: counter(
    'Polls that failed, by reason.',
    {
      ...feed,
      reason: pollFailures,
    },
    'sparse',
  ),
  feed_pages_total: counter('Pages taken in.', feed, 'sparse'),
  feed_cursor_resets_total: counter(
    'Scans that restarted instead of continuing at their cursor.',
    {
      ...feed,
      reason: ['configuration_changed', 'cursor_refused', 'page_too_large', 'rewound'],
    },
    'sparse',
  ),
  feed_last_success_timestamp_seconds: shared('Last successful poll; 0: never.', feed),
  feed_newest_event_timestamp_seconds: shared(
    'Creation time of the newest event; 0: none yet.',
    feed,
  ),
  feed_lag_seconds: shared(
    'Time since the feed was last read to its end, or since it was configured; grows while polls fail.',
    feed,
  ),
  feed_backfill_in_progress: shared('1 while the feed works off older pages.', feed, 'sparse'),
  feed_rescan_last_completed_timestamp_seconds: shared(
    'Last complete rescan of rescan.back; 0: never.',
    feed,
  ),
  feed_rescan_interval_seconds: gaugeWhenKnown(
    'Interval of complete rescans: rescan.every, or what the rate limit allows.',
    { feed: 'rescannedFeeds' },
  ),
  rescan_late_events_total: counter('Late events: found by a rescan behind the tail.', feed),
  events_dated_ahead_total: counter('New events dated ahead of now.', feed, 'sparse'),
  match_time_doubted_total: counter('Wrong results of the filter by match time.', feed, 'sparse'),
  feed_unreadable: shared(
    '1 while half or more of the last page with items could not be read, also where the feed is caught up.',
    feed,
    'sparse',
  ),
  quarantine_entries: shared('Quarantined items, by the feed that showed them.', feed, 'sparse'),
  feed_paused: shared(
    '1 while the feed is not polled, by reason; auth: the key of its account is refused.',
    {
      ...feed,
      reason: ['operator', 'quota', 'auth'],
    },
    'sparse',
  ),
  feed_lag_objective_seconds: gauge(
    'lag_objective, or what follows from the interval that the limit allows the organization.',
    feed,
  ),
  feed_poll_interval_seconds: gauge(
    'Current poll interval of the feed; the expected one while another instance reads it.',
    feed,
  ),

  api_requests_total: counter(
    'API requests, by status code.',
    {
      ...accountAndTier,
      code: 'code',
    },
    'sparse',
  ),
  api_budget_wait_seconds_total: counter(
    'Time that API requests waited for a slot of the rate limit.',
    accountAndTier,
  ),
  api_budget_utilization_ratio: gauge(
    "Recently used share of the tier's rate limit, 0 to 1; sum the instances.",
    accountAndTier,
  ),
  api_searches_remaining: sharedWhenKnown('Remaining search quota, from the last response.', {
    account: 'accounts',
  }),
  account_paused: shared(
    '1 while requests of the account are paused, by reason.',
    {
      account: 'accounts',
      reason: ['auth'],
    },
    'sparse',
  ),
  account_configured: sharedWhenKnown(
    '1 for a configured account; 0 for one that left and still has a ledger.',
    { account: 'accounts' },
  ),
  account_items_pending: shared(
    'Pending items of the account.',
    {
      account: 'accounts',
    },
    'sparse',
  ),

  events_fetched_total: counter('Items received: new, duplicate, quarantined and baseline.', feed),
  events_new_total: counter('New events.', feed),
  events_new_by_severity_total: counter('New events of all feeds, by severity.', {
    severity: 'severity',
  }),
  events_duplicate_total: counter('Items that the feed had shown before.', feed, 'sparse'),
  events_quarantined_total: counter('Unreadable items, quarantined.', feed, 'sparse'),
  events_baseline_total: counter(
    'Items older than the start bound of the feed: remembered, not sent.',
    feed,
    'sparse',
  ),
  events_severity_raised_total: counter(
    'Known events whose severity rose: routed again.',
    feed,
    'sparse',
  ),
  events_unreadable_total: counter(
    'Unreadable items, known ones included; a part of events_fetched_total.',
    feed,
  ),
  event_fields_unread_total: counter(
    'Fields of new events that could not be parsed, or only in part.',
    { ...feed, field: unreadableFields },
    'sparse',
  ),
  unknown_severity_total: counter(
    'Events of unknown severity, treated as critical.',
    feed,
    'sparse',
  ),
  events_routed_total: counter('Events that matched a route.', { route: 'routes' }),
  events_unrouted_total: counter('Events that matched no route but the root.', {
    severity: 'severity',
  }),
  feed_poll_stage_seconds: histogram(
    'Duration of a stage of a poll, for each page.',
    { stage: ['open', 'choose', 'slot', 'fetch', 'parse', 'commit', 'announce'] },
    answerBuckets,
  ),
  delivery_stage_seconds: histogram(
    'Duration of a stage of a delivery. prepare: until the first byte of an attempt, connecting included. send: from there to its answer. claim, settle: a call of Redis.',
    { stage: ['claim', 'prepare', 'send', 'settle'] },
    answerBuckets,
  ),
  event_match_to_fetch_seconds: histogram(
    'Time from the match at the service to the fetch.',
    {},
    detectionBuckets,
  ),
  event_detection_lower_bound_seconds: histogram(
    'Lower bound of the delay of an event: time from the request of its page to its intake.',
    {},
    answerBuckets,
  ),
  event_detection_upper_bound_seconds: histogram(
    'Upper bound of the delay of an event: time between two complete reads of the feed.',
    {},
    detectionBuckets,
  ),
  event_lateness_seconds: histogram(
    'Age of late events when a rescan found them.',
    {},
    latenessBuckets,
  ),
  event_fetch_to_delivery_seconds: histogram(
    "Time from the fetch to the sink's acceptance.",
    { audience: ['people', 'machines'], severity: 'severity' },
    deliveryBuckets,
  ),

  items_created_total: counter('Items created; an item is one event for one destination.', sink),
  items_settled_total: counter(
    'Items that became final, by outcome.',
    {
      ...sink,
      outcome: ['delivered', 'dead', 'suppressed', 'diverted'],
    },
    'sparse',
  ),
  items_replayed_total: sharedCounter('Dead letters sent again on request.', sink, 'sparse'),
  items_pending: shared(
    'Pending items, by state.',
    {
      ...sink,
      state: ['queued', 'held', 'group', 'digest', 'batch', 'sending', 'retrying'],
    },
    'sparse',
  ),
  deliveries_total: counter(
    'Messages that ended, by outcome.',
    {
      ...sink,
      outcome: ['delivered', 'dead', 'split'],
    },
    'sparse',
  ),
  delivery_attempts_total: counter(
    'Delivery attempts, by outcome or reason of the failure.',
    {
      ...sink,
      outcome: attemptOutcomes,
    },
    'sparse',
  ),
  template_failures_total: counter(
    'Messages sent without a template of their sink, because it failed.',
    { ...sink, template: ['title', 'body', 'webhook_body'] },
    'sparse',
  ),
  possible_duplicates_total: counter(
    'Attempts that may repeat an earlier one whose answer was lost.',
    sink,
    'sparse',
  ),
  delivery_oldest_due_timestamp_seconds: shared(
    'When the oldest due item became due; 0: none is due. Held and collected items are not due.',
    sink,
    'sparse',
  ),
  delivery_oldest_critical_timestamp_seconds: shared(
    'When the oldest undelivered critical event came in; 0: none. Held items and items of a digest do not count.',
    sink,
    'sparse',
  ),
  dead_letters: shared('Dead letters kept for replay.', sink),
  sink_circuit_state: shared('1 for the current state of the circuit.', {
    ...sink,
    state: ['closed', 'half_open', 'open', 'disabled'],
  }),
  sink_fallbacks_total: counter('Items diverted to the fallback of the sink.', sink, 'sparse'),
  sink_last_success_timestamp_seconds: shared('Last accepted delivery; 0: never.', sink),
  sink_paused: shared('1 while an operator pauses the sink.', sink, 'sparse'),
  canary_interval_seconds: gaugeWhenKnown(
    'The configured canary.every; only for sinks with a canary.',
    { sink: 'canarySinks' },
  ),
  canary_last_delivered_timestamp_seconds: sharedWhenKnown(
    'Last canary that the sink accepted; only for sinks with a canary.',
    sink,
  ),
  suppressed_total: counter(
    'Items settled without a message, by reason.',
    {
      ...sink,
      severity: 'severity',
      reason: suppressionReasons,
    },
    'sparse',
  ),
  silences_active: shared('Active silences.', {}),
  digest_items: shared('Items that wait for the next digest.', sink, 'sparse'),
  digest_last_sent_timestamp_seconds: sharedWhenKnown(
    'Last digest that was sent; 0: none yet. Only for sinks with a digest.',
    sink,
  ),
  digest_next_due_timestamp_seconds: sharedWhenKnown(
    'When the next digest is due; only for sinks with a digest.',
    sink,
  ),

  feed_items_unaccounted: shared(
    'Items fetched less new, duplicate, quarantined and baseline ones; must be 0.',
    feed,
    'sparse',
  ),
  sink_items_unaccounted: shared(
    'Items created and resent, minus those ended and pending; must be 0.',
    sink,
    'sparse',
  ),
  ledger_lost_timestamp_seconds: shared('Last loss of the ledger in Redis; 0: none in a day.', {}),
  retention_kept_bytes: shared(
    'Size of records and payloads, bounded by retention.max_bytes; 0: no pass of retention yet.',
    {},
  ),
  retention_oldest_timestamp_seconds: shared(
    'When the oldest kept settled event was settled, by the last pass of retention; 0: none is kept.',
    {},
  ),
  retention_trimmed_total: counter('Settled events dropped to make room.', {}),
  config_last_reload_successful: gauge('1 if the last read of the configuration succeeded.', {}),
  config_hash: gauge('Hash of the running configuration, sinks and secrets included.', {}),
  http_refusals_total: counter(
    'Refused requests of the page and its API, by reason.',
    { reason: httpRefusals },
    'sparse',
  ),
  build_info: gauge('Always 1; the label tells the version.', { version: 'version' }),
  redis_up: gauge('1 if Redis answered the last probe.', {}),
  state_age_seconds: gauge(
    'Age of the values read from Redis; since the start before the first reading.',
    {},
  ),
  redis_durable: shared('1 if Redis keeps its data over a restart.', {}),
  redis_eviction_safe: shared('1 if Redis never evicts keys.', {}),
  redis_memory_used_bytes: shared('Memory that Redis uses; of several masters the fullest.', {}),
  redis_memory_max_bytes: sharedWhenKnown(
    'maxmemory of the same master; nothing more is polled from 70 % of it on. Only where it has one.',
    {},
  ),
} as const satisfies Record<string, MetricDefinition>

export type MetricTable = typeof metricTable

/** Full names of all metrics of the table, as a scrape shows them. */
export function metricNames(): string[] {
  return Object.keys(metricTable).map((name) => `tocsin_${name}`)
}

function counter<const L extends LabelDomains>(help: string, labels: L, sparse?: 'sparse') {
  return { kind: 'counter', scope: 'local', help, labels, ...sparseFields(sparse) } as const
}

function gauge<const L extends LabelDomains>(help: string, labels: L) {
  return { kind: 'gauge', scope: 'local', help, labels } as const
}

/** A gauge that has no sample until it is set. */
function gaugeWhenKnown<const L extends LabelDomains>(help: string, labels: L) {
  return { kind: 'gauge', scope: 'local', help, labels, startsUnset: true } as const
}

/** Counted in Redis, because a command of another process counts it. */
function sharedCounter<const L extends LabelDomains>(help: string, labels: L, sparse?: 'sparse') {
  return { kind: 'counter', scope: 'shared', help, labels, ...sparseFields(sparse) } as const
}

function shared<const L extends LabelDomains>(help: string, labels: L, sparse?: 'sparse') {
  return { kind: 'gauge', scope: 'shared', help, labels, ...sparseFields(sparse) } as const
}

function sharedWhenKnown<const L extends LabelDomains>(help: string, labels: L) {
  return { kind: 'gauge', scope: 'shared', help, labels, startsUnset: true } as const
}

function histogram<const L extends LabelDomains>(
  help: string,
  labels: L,
  buckets: readonly number[],
) {
  return { kind: 'histogram', scope: 'local', help, labels, buckets } as const
}

function sparseFields(sparse: 'sparse' | undefined): { startsUnset?: true; isSparse?: true } {
  return sparse === undefined ? {} : { startsUnset: true, isSparse: true }
}
