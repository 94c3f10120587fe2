/** The configuration of feeds: the reports feed, poll limits, and the schema of any feed. */
import { z } from 'zod'
import { severities } from '../event.ts'
import {
  byType,
  duration,
  foreignKeys,
  list,
  positiveNumber,
  refusal,
  section,
  textField,
  word,
} from '../lib/config-fields.ts'
import {
  cookiesFeedConfig,
  credentialSearchFeedConfig,
  credentialsFeedConfig,
  tenantCredentialsFeedConfig,
} from './credentials-config.ts'
import {
  eventSearchFeedConfig,
  eventsFeedConfig,
  identifierEventsFeedConfig,
  tenantEventsFeedConfig,
} from './events-config.ts'
import {
  commonKeys,
  labelNames,
  type ReportsFeedConfig,
  tierKey,
  type Written,
} from './feed-config.ts'

const requestId = textField({
  describe: 'Id of a request, as the service gave it when the report was ordered.',
  remedy: 'write the id of a request, in quotes',
  parse: (input) =>
    /^[\w.-]{1,100}$/.test(input)
      ? input
      : refusal('not the id of a request', 'copy the id as the service gave it'),
})

const { account, labels } = commonKeys

/** Reports by request id; each is sent once, when it is ready or has failed. */
const reportsFeedConfig = section(
  {
    type: z
      .literal('reports')
      .meta({ description: 'Threat-flow reports, by the requests that have them made.' }),
    requests: list(requestId, 'Ids of requests.', "write ids of requests, such as ['5f3c…']"),
    severity: word(severities, 'The severity of its reports: the API gives them none.').prefault(
      'info',
    ),
    timeout: duration(
      'How long a report may be in the making before the delay is reported.',
      '1m',
    ).prefault('1h'),
    account,
    every: duration(
      'The time between polls at first; it grows while nothing happens.',
      '5s',
    ).prefault('15s'),
    labels,
    tier: tierKey('basic'),
    ...foreignKeys({
      start: 'remove the line: a report is sent whenever it was made',
      initial_poll: 'remove the line: each report is a message',
      audit: 'remove the line: each report is asked for until it is there',
      rescan: 'remove the line: a report is asked for until it is there',
      detail: 'remove the line: a report comes whole',
      filters: 'remove the line: requests says which reports are read',
      query: 'write requests and the ids of requests',
      quota_reserve: 'remove the line: reports cost no quota',
      lag_objective: 'remove the line: a report has no lag; timeout says when it is overdue',
    }),
  },
  { describe: 'Threat-flow reports that are being made.', rules: [labelNames] },
).transform((file): Written<ReportsFeedConfig> => ({
  type: file.type,
  requests: [...new Set(file.requests)],
  severity: file.severity,
  timeoutMs: file.timeout,
  account: file.account,
  everyMs: file.every,
  longestMs: undefined,
  lagObjectiveMs: undefined,
  startMs: 0,
  initialPoll: 'send',
  tier: file.tier,
  labels: file.labels,
  audit: undefined,
  rescan: undefined,
  detail: [],
}))

export type {
  CookiesFeedConfig,
  CredentialSearchFeedConfig,
  CredentialsFeedConfig,
  EventSearchFeedConfig,
  EventsFeedConfig,
  FeedCommon,
  FeedConfig,
  IdentifierEventsFeedConfig,
  PairDedupe,
  ReportsFeedConfig,
  TenantCredentialsFeedConfig,
  TenantEventsFeedConfig,
} from './feed-config.ts'

export const pollLimits = section(
  {
    polls: positiveNumber(
      'How often all feeds together are looked at for something new in a second.',
    ).prefault(100),
  },
  { describe: 'What polling may take, whatever the limits of the accounts.' },
).transform((file) => ({ pollsPerSecond: file.polls }))

/** Limits of all feeds and replicas together, whatever the limits of the accounts. */
export type PollLimits = z.output<typeof pollLimits>

/** One feed of the file. Its name is its key; its account may be left out. */
export const feedConfig = byType([
  eventsFeedConfig,
  tenantEventsFeedConfig,
  identifierEventsFeedConfig,
  credentialsFeedConfig,
  tenantCredentialsFeedConfig,
  credentialSearchFeedConfig,
  cookiesFeedConfig,
  eventSearchFeedConfig,
  reportsFeedConfig,
])
