import type { SandboxGroup } from '../sandbox/options.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'

type Places = Pick<
  Sandbox,
  'url' | 'slackUrl' | 'webhookUrl' | 'webhookSecret' | 'smtpUrl' | 'apiKeys'
>

/** A configuration that polls the sandbox and delivers to its pretend sinks, as YAML. */
export function sandboxConfig(
  { url, slackUrl, webhookUrl, webhookSecret, smtpUrl, apiKeys }: Places,
  groups: readonly SandboxGroup[],
): string {
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
    api_key: ${apiKeys[0] ?? ''}

feeds:
${feeds.join('\n')}

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
