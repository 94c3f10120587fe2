/** The configuration of the demo's daemon, as an operator would write it, and the service that it reads. */
import { appHost } from '../../sandbox/api/event-items.ts'
import type { SandboxOptions } from '../../sandbox/options.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'

/** Requests per second that the demo's sandbox allows: more than the real API, to be lively. */
const limits = { search: 5, basic: 10 }

/** The group that each account's feed reads, and the identifier whose credentials leak. */
export const demoGroups = { acme: 1042, globex: 1043 } as const
export const demoIdentifier = 77

/** Two customers, each an organization of its own at the pretend service. */
export const demoService: SandboxOptions = {
  organizations: [
    { id: 7, limits, keys: [{ key: 'fw_acme', tenants: [42] }] },
    { id: 8, limits, keys: [{ key: 'fw_globex', tenants: [43] }] },
  ],
  groups: [
    {
      id: demoGroups.acme,
      name: 'Acme',
      tenantId: 42,
      identifiers: [
        { id: demoIdentifier, name: 'acme.example' },
        { id: 78, name: 'Acme Bank' },
        { id: 79, name: 'vpn.acme.example' },
      ],
    },
    {
      id: demoGroups.globex,
      name: 'Globex',
      tenantId: 43,
      identifiers: [
        { id: 91, name: 'globex.example' },
        { id: 92, name: 'Globex & Söhne' },
      ],
    },
  ],
  slackLimit: { perSecond: 12, burst: 12 },
  shortPages: 0.1,
  emptyPages: 0.05,
}

const yamlText = JSON.stringify // a JSON text is a YAML text

interface DemoSetting {
  sandbox: Sandbox
  redisFolder: string
  passwordHash: string
  nowMs: number
}

export const demoUser = 'demo'

export function demoConfig({ sandbox, redisFolder, passwordHash, nowMs }: DemoSetting): string {
  return `# Written by the demo. Your own has the same form: config/minimal.yaml, config/tocsin.yaml.
redis:
  embedded: ${yamlText(redisFolder)}

http:
  port: 0 # a free one; 9464 is usual
  users:
    - name: ${demoUser}
      role: act # may look, and change what is told
      password_hash: ${yamlText(passwordHash)}

accounts:
${accountsYaml(sandbox)}
feeds:
  acme-brand:
    account: acme
    type: events
    identifier_group: ${demoGroups.acme}
    every: 5s
    rescan: { every: 10s, back: 24h } # finds what arrived late; 1h and 7d are usual
    detail: [high, critical] # the full event is fetched before anybody is told
    labels: { team: brand }
  acme-staff:
    account: acme
    type: credentials
    identifier: ${demoIdentifier}
    severity: high # the API gives credentials none
    every: 5s
    labels: { team: identity }
  globex-brand:
    account: globex
    type: events
    identifier_group: ${demoGroups.globex}
    every: 5s
    rescan: { every: 10s, back: 24h }
    detail: [high, critical]
    labels: { team: brand }

${sinksYaml(sandbox)}
${rulesYaml(nowMs)}`
}

function accountsYaml(sandbox: Sandbox): string {
  const accounts = Object.keys(demoGroups).map(
    (name, index) => `  ${name}:
    base_url: ${yamlText(sandbox.url)}
    link_hosts: [${appHost}] # where the pretend service's links lead
    api_key: ${yamlText(sandbox.apiKeys[index])}
    limits: { search: ${limits.search}, basic: ${limits.basic} } # the service itself grants 1 and 4
`,
  )
  return accounts.join('')
}

function sinksYaml(sandbox: Sandbox): string {
  return `sinks:
  slack:
    type: slack
    url: ${yamlText(sandbox.slackUrl)}
    limit: 10/s # Slack itself grants 1/s
    allow_private: true # the sandbox is on this machine
  pagerduty:
    type: pagerduty
    url: ${yamlText(sandbox.pagerDutyUrl)}
    routing_key: ${yamlText(sandbox.pagerDutyKey)}
    allow_private: true
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

const hourMs = 3_600_000
const weekdays = 'sunday monday tuesday wednesday thursday friday saturday'.split(' ')

function rulesYaml(nowMs: number): string {
  const at = (hours: number): string => new Date(nowMs + hours * hourMs).toISOString()
  const days = [0, 24].map((hours) => weekdays[new Date(at(hours)).getUTCDay()])
  return `route:
  sinks: [webhook] # what no branch takes
  group_by: [feed] # people get a feed's events in one message
  group_wait: 5s
  group_interval: 15s
  routes:
    - name: critical
      matchers: ['severity>=critical']
      sinks: [slack, pagerduty, webhook, email]
      group_wait: 0s # each at once, in a message of its own
    - name: chats
      matchers: ['type="chat_message"']
      sinks: [slack, webhook]
      mute_time_intervals: [quiet-days] # machines get them all the same
      on_mute: drop
    - name: people
      matchers: ['severity>=medium']
      sinks: [slack, webhook, email]

time_intervals:
  quiet-days:
    - weekdays: [${days.join(', ')}] # today and tomorrow, so that the demo shows a mute

silences:
  - matchers: ['type="forum_post"']
    starts: ${at(-1)}
    until: ${at(4)}
    owner: mira
    reason: known campaign, ticket 4711
    max_severity: medium
`
}
