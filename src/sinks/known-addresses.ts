/** Addresses that look right for a sink and take nothing of it, told before the first message is lost. */
import { refusal, type Refusal } from '../lib/config/config-fields.ts'

type Type = 'slack' | 'teams' | 'webhook'

interface KnownAddress {
  /** Of its host and path. */
  at: RegExp
  /** The types of sinks that it is not for. */
  not: readonly Type[]
  /** Not even for a body of one's own: its answer is a success whatever became of the message. */
  never?: true
  problem: string
  remedy: string
}

const all = ['slack', 'teams', 'webhook'] as const

const knownAddresses: readonly KnownAddress[] = [
  {
    at: /^hooks\.slack(?:-gov)?\.com\//,
    not: ['teams', 'webhook'],
    problem: 'a webhook of Slack',
    remedy: 'write type: slack',
  },
  {
    at: /^(?:[\w-]+\.)?(?:enterprise\.)?slack(?:-gov)?\.com\//,
    not: all,
    never: true,
    problem: 'a page or the API of Slack, where no message can be posted',
    remedy: 'make an incoming webhook, and copy its URL: https://hooks.slack.com/services/…',
  },
  {
    at: /(?:^|\.)webhook\.office(?:365)?\.com\/|^outlook\.office(?:365)?\.com\/webhook/i,
    not: all,
    problem: 'the address of an Office 365 connector, which Microsoft has retired',
    remedy:
      'make a workflow in Teams that posts when a webhook request is received, and copy its URL',
  },
  {
    // to a webhook it is a logic app of one's own
    at: /\.(?:logic\.azure|api\.powerplatform)\.com\//,
    not: ['slack'],
    problem: 'the webhook of a workflow of Microsoft',
    remedy: 'write type: teams',
  },
  {
    at: /^events\.(?:eu\.)?pagerduty\.com\//,
    not: all,
    problem: 'the Events API of PagerDuty',
    remedy: 'write type: pagerduty, with a routing_key',
  },
]

/**
 * Refuses an address that takes no message of the type, without quoting it. A webhook with a body of
 * its own may lead to most.
 */
export function knownAddressProblem(
  type: Type,
  input: string,
  sink: Readonly<Record<string, unknown>> = {},
): Refusal | undefined {
  const url = URL.parse(input)
  if (url === null) return undefined
  const place = `${url.hostname}${url.pathname}`
  const known = knownAddresses.find(({ at }) => at.test(place))
  const isRefused = known?.never ?? sink['templates'] === undefined
  return isRefused && known?.not.includes(type) ? refusal(known.problem, known.remedy) : undefined
}
