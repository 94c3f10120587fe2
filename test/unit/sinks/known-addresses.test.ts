import { expect, test } from 'vitest'
import { ConfigError } from '../../../src/config/config.ts'
import { parseConfig } from '../../../src/config/load.ts'

function toldOf(type: string, url: string, keys = ''): string[] {
  const secret = 'secret: whsec_RKFFs4yiHJ0lLlm3ud3R9bJxDBsFTkVv'
  const text = `
accounts: { main: { base_url: "https://api.example.com", api_key: key } }
feeds: { brand: { type: events, identifier_group: 7 } }
sinks: { it: { type: ${type}, url: "${url}"${type === 'webhook' ? `, ${secret}` : ''}${keys} } }
route: { sinks: [it] }
`
  const say = ({ path, problem, remedy }: Record<'path' | 'problem' | 'remedy', string>): string =>
    `${path}: ${problem}; ${remedy}`
  try {
    const { warnings } = parseConfig(text, { file: 'tocsin.yaml', env: {} })
    return warnings
      .filter(({ path }) => path.startsWith('sinks'))
      .map((found) => `warns ${say(found)}`)
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes.map(say)
    throw error
  }
}

const slack = 'https://hooks.slack.com/services/T0/B0/hush-hush'
const slackPage = 'https://acme.enterprise.slack.com/archives/C0'
const slackApi = 'https://slack.com/api/chat.postMessage'
const flow = 'https://x.logic.azure.com/workflows/a?sig=hush-hush'
const unsigned = 'https://0123.environment.api.powerplatform.com:443/workflows/a'
const connector = 'https://acme.webhook.office.com/webhookb2/hush-hush'
const oldConnector = 'https://outlook.office365.com/webhook/hush-hush'
const pager = 'https://events.pagerduty.com/v2/enqueue'
const body = ', templates: { webhook_body: \'{"content": {{ title | json }}}\' }'

test.each<[type: string, url: string, told: string, keys?: string]>([
  ['slack', slack, ''],
  ['slack', 'https://chat.corp.example/hooks/hush-hush', ''],
  ['slack', slackPage, 'make an incoming webhook'],
  ['slack', slackApi, 'make an incoming webhook'],
  ['slack', flow, 'write type: teams'],
  ['slack', pager, 'write type: pagerduty'],
  ['teams', flow, ''],
  ['teams', unsigned, 'warns sinks.it.url: has no signature (sig=)'],
  ['teams', slack, 'write type: slack'],
  ['teams', connector, 'which Microsoft has retired; make a workflow'],
  ['teams', oldConnector, 'which Microsoft has retired; make a workflow'],
  ['teams', 'https://outlook.office.com/mail', ''],
  ['teams', 'https://relay.example.com/webhook.office.com', ''],
  ['webhook', flow, ''],
  ['webhook', slack, 'write type: slack'],
  ['webhook', slack, '', body],
  ['webhook', connector, 'which Microsoft has retired'],
  ['webhook', pager, 'write type: pagerduty, with a routing_key'],
  ['webhook', slackApi, 'make an incoming webhook', body],
])('a sink of type %s with the address %s is told %s', (type, url, said, keys) => {
  const told = toldOf(type, url, keys)
  expect(told).toHaveLength(said === '' ? 0 : 1)
  expect(told.join()).toContain(said)
  expect(told.join()).not.toContain('hush-hush')
})
