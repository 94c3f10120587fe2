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
const trigger = 'https://hooks.slack.com/triggers/T0/1/hush-hush'
const discord = 'https://discord.com/api/webhooks/1/hush-hush'
const flow = 'https://x.logic.azure.com/workflows/a?sig=hush-hush'
const connector = 'https://acme.webhook.office.com/webhookb2/hush-hush'
const pager = 'https://events.pagerduty.com/v2/enqueue'

test.each([
  ['slack', slack],
  ['slack', `${discord}/slack`],
  ['slack', 'https://chat.corp.example/hooks/hush-hush'],
  ['teams', flow],
  ['webhook', flow],
  ['webhook', 'https://siem.example.com/hush-hush'],
])('a sink of type %s takes %s', (type, url) => {
  expect(toldOf(type, url)).toEqual([])
})

test.each([
  [
    'slack',
    discord,
    'sinks.it.url: an address of Discord that takes messages of its own form alone; write type: slack, and /slack at the end of the address of the webhook',
  ],
  ['slack', 'https://canary.discord.com/api/v10/webhooks/1/hush-hush', 'and /slack at the end'],
  [
    'slack',
    'https://acme.slack.com/archives/C0/p1',
    'sinks.it.url: a page or the API of Slack, where no message can be posted; make an incoming webhook',
  ],
  ['slack', 'https://acme.enterprise.slack.com/archives/C0', 'make an incoming webhook'],
  ['slack', 'https://app.slack.com/client/T0/C0', 'make an incoming webhook'],
  ['slack', 'https://slack.com/api/chat.postMessage', 'make an incoming webhook'],
  ['slack', flow, 'write type: teams'],
  ['slack', pager, 'write type: pagerduty'],
  ['teams', slack, 'write type: slack'],
  ['teams', connector, 'which Microsoft has retired; make a workflow'],
  ['teams', 'https://teams.microsoft.com/l/channel/19', 'a page of Microsoft Teams'],
  ['webhook', slack, 'sinks.it.url: an incoming webhook of Slack; write type: slack'],
  ['webhook', trigger, 'the trigger of a Slack workflow'],
  ['webhook', `${discord}/slack`, 'write type: slack'],
  ['webhook', discord, 'takes messages of its own form alone'],
  ['webhook', connector, 'which Microsoft has retired'],
  ['webhook', pager, 'write type: pagerduty, with a routing_key'],
  ['slack', trigger, 'warns sinks.it.url: the trigger of a workflow'],
  [
    'slack',
    'https://hooks.slack.com/workflows/T0/A0/1/hush-hush',
    'warns sinks.it.url: the trigger',
  ],
])('a sink of type %s is told of %s', (type, url, said) => {
  const told = toldOf(type, url)
  expect(told).toEqual([expect.stringContaining(said)])
  expect(told.join()).not.toContain('hush-hush')
})

test('a webhook with a body of its own may lead anywhere but to the API of Slack', () => {
  const templates = ', templates: { webhook_body: \'{"content": {{ title | json }}}\' }'
  for (const url of [discord, trigger]) expect(toldOf('webhook', url, templates)).toEqual([])
  const api = 'https://slack.com/api/chat.postMessage'
  expect(toldOf('webhook', api, templates)).toEqual([
    expect.stringContaining('make an incoming webhook'),
  ])
})
