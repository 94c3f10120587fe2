import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { draftConfig } from '../../../src/cli/set-up/init.ts'
import { parseConfig } from '../../../src/config/load.ts'
import { aFile, tocsin } from './tocsin.ts'

const values: Record<string, string> = {
  TOCSIN_BASE_URL: 'https://api.example.com',
  TOCSIN_API_KEY: 'none',
  SLACK_WEBHOOK_URL: 'https://hooks.slack.com/services/T0/B0/none',
  SMTP_URL: 'smtp://ann:hush@mail.example.com',
  MAIL_FROM: 'tocsin@example.com',
  MAIL_TO: 'ann@example.com',
  TEAMS_WEBHOOK_URL: 'https://prod.example.com/workflows/1',
  PAGERDUTY_KEY: '0123456789abcdef0123456789abcdef',
  WEBHOOK_URL: 'https://siem.example.com/hook',
  WEBHOOK_SECRET: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3',
}

test('a draft of every type of sink is a configuration once its variables are set', () => {
  const types = ['slack', 'email', 'teams', 'pagerduty', 'webhook'] as const
  const { config } = parseConfig(draftConfig(types), { file: 'tocsin.yaml', env: values })
  expect(config.sinks.map(({ type }) => type)).toEqual(types)
})

test('init writes a file for its user alone, with a sink of each type, by default of Slack', async () => {
  const folder = dirname(aFile('other', ''))
  const file = join(folder, 'tocsin.yaml')
  expect((await tocsin('init', file)).code).toBe(0)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readFileSync(file, 'utf8')).toBe(draftConfig(['slack']))
  const second = join(folder, 'second.yaml')
  await tocsin('init', second, '--sink', 'email,slack', '--sink', 'pagerduty')
  expect(readFileSync(second, 'utf8')).toBe(draftConfig(['email', 'slack', 'pagerduty']))
})

test('init replaces no file, and leaves nothing where it cannot write', async () => {
  const file = aFile('tocsin.yaml', 'mine\n')
  expect((await tocsin('init', file)).code).toBe(2)
  expect((await tocsin('init', '/nowhere/tocsin.yaml')).err).toContain('(ENOENT)')
  expect(readFileSync(file, 'utf8')).toBe('mine\n')
  expect(readdirSync(dirname(file))).toEqual(['tocsin.yaml'])
})

test('the page that a draft names for routes by severity has one', () => {
  const [, page = ''] = /(docs\S+\.md) begins with routes/.exec(draftConfig(['slack'])) ?? []
  const text = readFileSync(join(import.meta.dirname, '../../..', page), 'utf8')
  expect(text.split('\n## ', 2)[0]).toContain("matchers: ['severity>=high']")
})
