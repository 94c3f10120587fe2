import { expect, test } from 'vitest'
import { ConfigError } from '../../../../src/config/config.ts'
import { parseConfig } from '../../../../src/config/load.ts'
import type { LoadedConfig } from '../../../../src/config/load.ts'
import { sinkTypeOf } from '../../../../src/sinks/sink-types.ts'

const host = 'default0123.45.environment.api.powerplatform.com'
const path = '/powerautomate/automations/direct/workflows/0123/triggers/manual/paths/invoke'
const url = `https://${host}:443${path}?api-version=1&sig=the-teams-signature`

function load(sink: string, env: Record<string, string> = {}): LoadedConfig {
  const text = `
accounts: {main: {base_url: 'https://api.example.com', api_key: 'a-key-of-24-bytes-abcdef'}}
feeds: {brand: {type: events, identifier_group: 7}}
sinks: {soc: {type: teams, ${sink}}}
route: {sinks: [soc]}
`
  return parseConfig(text, { file: 'tocsin.yaml', env })
}

function mistakeIn(sink: string): string {
  try {
    load(sink)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  throw new Error('it was not refused')
}

test('a workflow’s URL from a variable is enough: two messages a second, for people, at once', () => {
  const { config, warnings } = load('url: "${TEAMS_WEBHOOK_URL}"', { TEAMS_WEBHOOK_URL: url })
  const [sink] = config.sinks
  expect(sink).toMatchObject({ type: 'teams', limitPerSecond: 2, allowPrivate: false })
  expect(sink?.digest).toBeUndefined()
  expect(sinkTypeOf(sink!).audience).toBe('people')
  expect(sinkTypeOf(sink!).address(sink!).reveal()).toBe(url)
  expect(warnings).toEqual([])
  expect(JSON.stringify(config)).not.toContain('the-teams-signature')
})

test.each([
  'https://outlook.office.com/webhook/the-group@the-tenant/IncomingWebhook/the-secret/x',
  'https://outlook.office365.com/webhook/the-secret',
  'https://acme.webhook.office.com/webhookb2/the-secret',
  'https://webhook.office.com/webhookb2/the-secret',
])('the connector %s is refused with what to make instead, and not quoted', (connector) => {
  const mistake = mistakeIn(`url: '${connector}'`)
  expect(mistake).toContain('an Office 365 connector, which Microsoft has retired')
  expect(mistake).toContain('make a workflow in Teams')
  expect(mistake).not.toContain('the-secret')
})

test.each([
  'https://outlook.office.com/mail',
  'https://relay.example.com/webhook.office.com',
  'https://notwebhook.office.com.example.net/x',
])('%s is no connector, and a relay needs no signature', (address) => {
  expect(load(`url: '${address}'`).warnings).toEqual([])
})

test.each([`https://${host}${path}?api-version=1`, 'https://prod-1.westeurope.logic.azure.com/x'])(
  'a URL of a workflow without a signature is warned of: %s',
  (unsigned) => {
    const { warnings } = load(`url: '${unsigned}'`)
    expect(warnings).toMatchObject([
      { path: 'sinks.soc.url', problem: expect.stringContaining('has no signature (sig=)') },
    ])
  },
)
