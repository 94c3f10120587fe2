import type { MailServers } from './mail-servers.ts'
import { firstBadGroup, goodGroup, itemsGroup, type Pretenders } from './pretenders.ts'

interface Places {
  redisUrl: string
  port: number
  pretenders: Pretenders
  mail: MailServers
}

/** The type of the event that goes to every sink; others go to the good one alone. */
export const toAllSinks = 'to-all-sinks'

/** A feed for every bad answer, an account for every bad token, a sink for every bad word of one. */
export function rehearsalConfig({ redisUrl, port, pretenders, mail }: Places): string {
  const { url, answers, grants, hook, slack } = pretenders
  const sinks = [
    ...hook.map((_, index) => webSink(`hook-${index}`, 'webhook', `${url}/hook/${index}`)),
    ...slack.map((_, index) => webSink(`slack-${index}`, 'slack', `${url}/slack/${index}`)),
    ...mail.ports.map((mailPort, index) => mailSink(`mail-${index}`, mailPort)),
  ]
  return `redis: {url: '${redisUrl}'}
http: {port: ${port}}
accounts:
  main: ${accountOf(url, 'good')}
${grants.map((_, index) => `  bad-${index}: ${accountOf(url, `bad-${index}`)}`).join('\n')}
feeds:
  good: ${feedOf('main', goodGroup, '5s')}
  items: ${feedOf('main', itemsGroup, '1h')}
${answers.map((_, index) => `  answer-${index}: ${feedOf('main', firstBadGroup + index, '1h')}`).join('\n')}
${grants.map((_, index) => `  token-${index}: ${feedOf(`bad-${index}`, goodGroup, '1h')}`).join('\n')}
sinks:
  ${webSink('good', 'webhook', `${url}/good`)}
${sinks.map((sink) => `  ${sink}`).join('\n')}
route:
  sinks: [good]
  group_wait: 0s
  routes:
    - name: all
      matchers: ['type="${toAllSinks}"']
      sinks: [good, ${sinks.map((sink) => sink.slice(0, sink.indexOf(':'))).join(', ')}]
`
}

function accountOf(url: string, key: string): string {
  return `{base_url: '${url}', link_hosts: [app.example.com], api_key: ${key}, limits: {search: 500, basic: 500}}`
}

function feedOf(account: string, group: number, every: string): string {
  return `{type: events, account: ${account}, identifier_group: ${group}, detail: [], every: ${every}, initial_poll: send}`
}

function webSink(name: string, type: string, url: string): string {
  return `${name}: {type: ${type}, url: '${url}', allow_private: true}`
}

function mailSink(name: string, port: number): string {
  return `${name}: {type: email, smtp: 'smtp://127.0.0.1:${port}', from: a@example.com, to: [b@example.com], tls: 'off'}`
}
