import { appHost } from '../../sandbox/api/search-item.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'

/** Requests per second that the demo's sandbox grants: more than the service does, to be lively. */
export const demoLimits = { search: 5, basic: 10 }
export const demoSlackLimit = { perSecond: 12, burst: 12 }

/** The sink that has a digest. */
export const digestSink = 'email'

export interface DemoConfigOptions {
  redisUrl: string
  httpPort: number
  /** Whose leaked credentials are polled. */
  identifier: number
  sandbox: Pick<
    Sandbox,
    'url' | 'apiKeys' | 'slackUrl' | 'webhookUrl' | 'webhookSecret' | 'smtpUrl'
  >
}

const text = JSON.stringify // a JSON text is a YAML text

/** The configuration that the demo's daemon runs with, as an operator would write it. */
export function demoConfig({ redisUrl, httpPort, identifier, sandbox }: DemoConfigOptions): string {
  return `# Written by the demo at every start: what its daemon runs with, every value filled in. Your own
# has the same form; the examples to copy are config/minimal.yaml and config/tocsin.yaml.
redis:
  url: ${text(redisUrl)}

http:
  port: ${httpPort} # /metrics /healthz /readyz

accounts:
  sandbox:
    base_url: ${text(sandbox.url)}
    link_hosts: [${appHost}] # where the pretend service's links lead; beside an api.… none is needed
    api_key: ${text(sandbox.apiKeys[0])}
    limits: { search: ${demoLimits.search}, basic: ${demoLimits.basic} } # the service itself grants 1 and 4

${feedsOf(identifier)}
${sinksOf(sandbox)}
${route}`
}

function feedsOf(identifier: number): string {
  return `feeds:
  brand:
    type: events
    identifier_group: 1042
    every: 5s
    lag_objective: 15s
    sweep: { every: 10s, back: 24h } # finds what arrived late; 1h and 7d are usual
    detail: [high, critical] # the full event is fetched before anybody is told
    labels: { team: brand }
  suppliers:
    type: events
    identifier_group: 1043
    every: 5s
    lag_objective: 15s
    sweep: { every: 10s, back: 24h }
    detail: [high, critical]
    labels: { team: purchasing }
  staff:
    type: credentials
    identifier: ${identifier}
    severity: high # the API gives credentials none
    every: 5s
    lag_objective: 15s
    labels: { team: identity }
`
}

function sinksOf(sandbox: DemoConfigOptions['sandbox']): string {
  return `sinks:
  slack:
    type: slack
    url: ${text(sandbox.slackUrl)}
    limit: 10/s # Slack itself grants 1/s
    allow_private: true # the sandbox is on this machine
  email:
    type: email
    smtp: ${text(sandbox.smtpUrl)}
    from: tocsin@example.com
    to: [oncall@example.com]
    tls: off # for the sandbox alone
    # The demo sends one before it ends, as "tocsin digests send email" does.
    digest: { schedule: '*/15 * * * *', timezone: UTC, immediate: critical, max_items: 10 }
  webhook:
    type: webhook
    url: ${text(sandbox.webhookUrl)}
    secret: ${text(sandbox.webhookSecret)}
    allow_private: true
    batch: { max: 20, wait: 1s }
`
}

const route = `route:
  sinks: [webhook] # what no branch takes
  group_by: [feed] # people get a feed's events in one message
  group_wait: 5s
  group_interval: 15s
  routes:
    - name: critical
      matchers: ['severity>=critical']
      sinks: [slack, webhook, email]
      group_wait: 0s # each at once, in a message of its own
    - name: people
      matchers: ['severity>=medium']
      sinks: [slack, webhook, email]
`
