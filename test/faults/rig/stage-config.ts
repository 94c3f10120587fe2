import type { Sandbox } from '../../../src/sandbox/sandbox.ts'

/**
 * `plain`: what a run begins with. `other`: other feeds' filters, which begin new walks with overlap and
 * leave nothing out. `astray`: one webhook's host does not speak TLS, one's and the mail server's name
 * does not resolve.
 */
export type Variant = 'plain' | 'other' | 'astray'

/** Two feeds that share events, and a sink of each kind: singly, in batches, in groups. */
export function configOf(sandbox: Sandbox, redis: string, variant: Variant): string {
  const all =
    variant === 'plain' ? '' : ', filters: {severity: [info, low, medium, high, critical]}'
  const feed = (group: number): string =>
    `{type: events, identifier_group: ${group}, detail: [], every: 5s, start: 1h, initial_poll: send, rescan: {every: 10s, back: 1h}${all}}`
  const isAstray = variant === 'astray'
  const hosts: Record<string, string> = isAstray
    ? { single: sandbox.url.replace('http:', 'https:'), batch: 'http://nowhere.invalid' }
    : {}
  const smtp = isAstray ? 'smtp://nowhere.invalid' : sandbox.smtpUrl
  const hook = (name: string): string =>
    `type: webhook, url: '${hosts[name] ?? sandbox.url}/hooks/${name}', secret: '${sandbox.webhookSecret}', allow_private: true`
  const mail = `type: email, smtp: '${smtp}', from: tocsin@example.com, tls: off`
  return `
redis: ${redis}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: '${sandbox.apiKeys[0]}', limits: {search: 20, basic: 20}}}
feeds: {brand: ${feed(1042)}, suppliers: ${feed(1043)}}
sinks:
  single: {${hook('single')}}
  batch: {${hook('batch')}, batch: {max: 8, wait: 300ms}}
  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true, limit: 100/s}
  oncall: {${mail}, to: [a@example.com, b@example.com]}
  team: {${mail}, to: [team@example.com]}
route:
  sinks: [single, batch, soc, oncall]
  group_wait: 0s
  routes:
    - {name: everybody, matchers: [], sinks: [single, batch, soc, oncall], group_wait: 0s, continue: true}
    - {name: together, matchers: [], sinks: [team], group_by: [feed], group_wait: 1s, group_interval: 10s}
`
}
