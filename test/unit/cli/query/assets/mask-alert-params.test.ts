import { expect, test } from 'vitest'
import { maskAlertParams } from '../../../../../src/cli/api/masks.ts'

/** Channels with secrets (docs/api-notes.md, Alerts), and one of a type that nobody knows. */
const channels: Record<string, unknown>[] = [
  { webhook_url: 'https://u:hush@hooks.example/hush?x=hush', secret: 'hush' },
  {
    teams_webhook_url: 'https://teams.example/hush',
    basic_auth: { username: 'soc', password: 'hush' },
  },
  {
    webhook_url: 'https://hooks.example',
    custom_headers: { index: 'hush', Authorization: 'hush' },
  },
  { api_token: 'hush', netloc: 'splunk.example:8088', index: 'threats', labels: ['a'] },
  {
    server_netloc: 'jira.example',
    email: 'soc@example.com',
    api_token: 'hush',
    project_key: 'SOC',
  },
  { server_url: 'https://now.example/hush', api_key: 'hush', table_name: 'incident' },
  { workspace_id: 'w', shared_key: 'hush' },
  {
    entra_client_id: 'c',
    entra_tenant_id: 't',
    entra_secret: 'hush',
    url: 'https://a.example/hush',
  },
  { of_a_later_version: 'hush', deep: [{ further: 'hush' }], pin: 1234 },
]

test('no secret of any channel is left, nor one in a field that nobody knows', () => {
  const masked = JSON.stringify(channels.map(maskAlertParams))
  expect(masked).not.toContain('hush')
  expect(masked).not.toContain('1234')
})

test('what lets nobody in stays, and so does the host of an address', () => {
  expect(maskAlertParams(channels[3] ?? {})).toEqual({
    api_token: '••••',
    netloc: 'splunk.example:8088',
    index: 'threats',
    labels: ['a'],
  })
  expect(maskAlertParams({ email: 'a@b.example', json_attachment: true, secret: '' })).toEqual({
    email: 'a@b.example',
    json_attachment: true,
    secret: '',
  })
  expect(maskAlertParams(channels[0] ?? {})).toEqual({
    webhook_url: 'https://hooks.example/••••',
    secret: '••••',
  })
})
