/** The configuration of the demo's daemon, as an operator would write it. */
import { appHost } from '../../sandbox/api/event-items.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'

/** Requests per second that the demo's sandbox allows: more than the real API, to be lively. */
export const demoLimits = { search: 5, basic: 10 }

/** Groups of the sandbox that the demo's feeds read, and the identifier whose credentials leak. */
export const demoGroups = [1042, 1043] as const
export const demoIdentifier = 77

const yamlText = JSON.stringify // a JSON text is a YAML text

export function demoConfig(sandbox: Sandbox, redisFolder: string): string {
  return `# Written by the demo. Your own has the same form: config/minimal.yaml, config/tocsin.yaml.
redis:
  embedded: ${yamlText(redisFolder)}

http:
  port: 0 # a free one; 9464 is usual

accounts:
  sandbox:
    base_url: ${yamlText(sandbox.url)}
    link_hosts: [${appHost}] # where the pretend service's links lead
    api_key: ${yamlText(sandbox.apiKeys[0])}
    limits: { search: ${demoLimits.search}, basic: ${demoLimits.basic} } # the service itself grants 1 and 4

feeds:
  brand:
    type: events
    identifier_group: ${demoGroups[0]}
    every: 5s
    rescan: { every: 10s, back: 24h } # finds what arrived late; 1h and 7d are usual
    detail: [high, critical] # the full event is fetched before anybody is told
    labels: { team: brand }
  suppliers:
    type: events
    identifier_group: ${demoGroups[1]}
    every: 5s
    rescan: { every: 10s, back: 24h }
    detail: [high, critical]
    labels: { team: purchasing }
  staff:
    type: credentials
    identifier: ${demoIdentifier}
    severity: high # the API gives credentials none
    every: 5s
    labels: { team: identity }

${sinksYaml(sandbox)}
route:
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
}

function sinksYaml(sandbox: Sandbox): string {
  return `sinks:
  slack:
    type: slack
    url: ${yamlText(sandbox.slackUrl)}
    limit: 10/s # Slack itself grants 1/s
    allow_private: true # the sandbox is on this machine
  email:
    type: email
    smtp: ${yamlText(sandbox.smtpUrl)}
    from: tocsin@example.com
    to: [oncall@example.com]
    tls: off # for the sandbox alone
    digest: { schedule: '0 8,16 * * *', timezone: UTC, immediate: critical, max_items: 10 }
  webhook:
    type: webhook
    url: ${yamlText(sandbox.webhookUrl)}
    secret: ${yamlText(sandbox.webhookSecret)}
    allow_private: true
    batch: { max: 20, wait: 1s }
`
}
