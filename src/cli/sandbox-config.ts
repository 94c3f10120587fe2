import type { SandboxGroup } from '../sandbox/options.ts'
import { appHost } from '../sandbox/api/search-item.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'

type Places = Pick<
  Sandbox,
  'url' | 'slackUrl' | 'webhookUrl' | 'webhookSecret' | 'smtpUrl' | 'apiKeys'
>

/**
 * A configuration that polls the sandbox and delivers to its pretend sinks, as YAML: a feed for each
 * group, and with `hasCredentials` one for each identifier.
 */
export function sandboxConfig(
  { url, slackUrl, webhookUrl, webhookSecret, smtpUrl, apiKeys }: Places,
  groups: readonly SandboxGroup[],
  hasCredentials = false,
): string {
  const identifiers = hasCredentials ? groups.flatMap((group) => group.identifiers) : []
  const credentialFeeds = identifiers.flatMap(({ id }) => [
    `  credentials-${id}:`,
    '    type: credentials',
    `    identifier: ${id}`,
    '    severity: high',
    '    every: 10s',
  ])
  const feeds = groups.flatMap(({ id, name }) => [
    `  ${name.toLowerCase()}:`,
    '    type: events',
    `    identifier_group: ${id}`,
    '    every: 10s',
    '    detail: [high, critical]',
  ])
  return `accounts:
  main:
    base_url: ${url}
    link_hosts: [${appHost}]
    api_key: ${apiKeys[0] ?? ''}

feeds:
${[...feeds, ...credentialFeeds].join('\n')}

sinks:
  soc:
    type: slack
    url: ${slackUrl}
    allow_private: true
  oncall:
    type: email
    smtp: ${smtpUrl}
    from: tocsin@example.com
    to: [oncall@example.com]
    tls: off
  siem:
    type: webhook
    url: ${webhookUrl}
    secret: ${webhookSecret}
    allow_private: true
    batch: { max: 50, wait: 1s }

route:
  sinks: [siem]
  routes:
    - name: urgent
      matchers: ['severity>=high']
      sinks: [soc, siem, oncall]
    - name: medium
      matchers: ['severity="medium"']
      sinks: [soc, siem]
`
}
