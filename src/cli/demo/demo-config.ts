import type { Sandbox } from '../../sandbox/sandbox.ts'

/** Requests per second that the demo's sandbox grants: more than the service does, to be lively. */
export const demoLimits = { search: 3, basic: 10 }
export const demoSlackLimit = { perSecond: 12, burst: 12 }

export interface DemoConfigOptions {
  redisUrl: string
  httpPort: number
  sandbox: Pick<
    Sandbox,
    'url' | 'apiKeys' | 'slackUrl' | 'webhookUrl' | 'webhookSecret' | 'smtpUrl'
  >
}

const text = JSON.stringify // a JSON text is a YAML text

/** The configuration that the demo's daemon runs with, as an operator would write it. */
export function demoConfig({ redisUrl, httpPort, sandbox }: DemoConfigOptions): string {
  return `# Written by the demo at every start: what its daemon runs with, every value filled in. Your own
# has the same form; the examples to copy are config/minimal.yaml and config/tocsin.yaml.
redis:
  url: ${text(redisUrl)}

http:
  port: ${httpPort} # /metrics /healthz /readyz

accounts:
  sandbox:
    base_url: ${text(sandbox.url)}
    api_key: ${text(sandbox.apiKeys[0])}
    limits: { search: ${demoLimits.search}, basic: ${demoLimits.basic} } # the service itself grants 1 and 4

${feeds}
${sinksOf(sandbox)}
${route}`
}

const feeds = `feeds:
  brand:
    type: events
    identifier_group: 1042
    every: 5s
    lag_objective: 15s
    detail: [high, critical] # the full event is fetched before anybody is told
    labels: { team: brand }
  suppliers:
    type: events
    identifier_group: 1043
    every: 5s
    lag_objective: 15s
    detail: [high, critical]
    labels: { team: purchasing }
`

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
  routes:
    - name: urgent
      matchers: ['severity>=high']
      sinks: [slack, webhook, email]
    - name: medium
      matchers: ['severity="medium"']
      sinks: [slack, webhook]
`
