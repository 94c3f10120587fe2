import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { monitoringSchema, parseMonitoring } from '../../src/cli/monitoring/monitoring-file.ts'
import { loadConfig } from '../../src/config/load.ts'
import { configSchema } from '../../src/config/schema.ts'

const folder = join(import.meta.dirname, '../../config')

/** What an operator sets before the examples run. */
const env = {
  TOCSIN_BASE_URL: 'https://api.example.com',
  TOCSIN_API_KEY: 'an-api-key',
  SLACK_WEBHOOK_URL: 'https://hooks.slack.example/services/a/b/c',
  TEAMS_WEBHOOK_URL: 'https://a.environment.api.powerplatform.com/workflows/b?sig=c',
  TEAMS_DIGEST_URL: 'https://a.environment.api.powerplatform.com/workflows/d?sig=e',
  SMTP_URL: 'smtp://user:password@mail.example.com:587',
  MAIL_CLIENT_SECRET: 'Kq8~client-secret-of-the-app.7Zx',
  PAGERDUTY_ROUTING_KEY: 'c04d9e77b1Q4xZv8hJt2T7F3E9A51C2p',
  SIEM_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  SPLUNK_TOKEN: '12345678-1234-1234-1234-1234567890ab',
  JIRA_LOGIN: 'am9lQGFjbWUuY29tOnRva2Vu',
  THEHIVE_KEY: 'a-key-of-thehive',
}

/** The file of `monitoring` is another; see below. */
const examples = readdirSync(folder).filter(
  (file) => file.endsWith('.yaml') && file !== 'monitoring.yaml',
)

/** The mail catcher of the rehearsal speaks no TLS. */
const knownWarnings: Record<string, string[]> = { 'compose-sandbox.yaml': ['sinks.oncall.tls'] }

test.each(examples)('%s loads, without a warning that is not known', (example) => {
  const { warnings } = loadConfig({ path: join(folder, example), env })
  expect(warnings.map(({ path }) => path)).toEqual(knownWarnings[example] ?? [])
})

test.each(examples)('%s asks for no variable that the other examples do not', (example) => {
  const text = readFileSync(join(folder, example), 'utf8').replaceAll(/#.*$/gm, '')
  const required = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name)
  expect(Object.keys(env)).toEqual(expect.arrayContaining(required))
})

test('config/tocsin.yaml speaks of every section', () => {
  const { config } = loadConfig({ path: join(folder, 'tocsin.yaml'), env })
  expect(config.route.routes.map(({ name }) => name)).toEqual(['urgent', 'medium'])
  const text = readFileSync(join(folder, 'tocsin.yaml'), 'utf8')
  const sections = Object.keys(configSchema()['properties'] as object)
  expect(sections.filter((section) => !text.includes(`\n${section}:`))).toEqual([])
})

test('the examples have a sink of every type', () => {
  const sinks = examples.flatMap((example) => {
    const { config } = loadConfig({ path: join(folder, example), env })
    return config.sinks.map(({ type }) => type)
  })
  const { properties } = configSchema() as { properties: { sinks: SinksSchema } }
  const known = properties.sinks.additionalProperties.oneOf
  expect(new Set(sinks)).toEqual(new Set(known.map((one) => one.properties.type.const)))
})

interface SinksSchema {
  additionalProperties: { oneOf: { properties: { type: { const: string } } }[] }
}

const schemas = [
  ['tocsin', configSchema()],
  ['monitoring', monitoringSchema()],
] as const

test.each(schemas)('%s.schema.json is what tocsin schema prints', (name, schema) => {
  const committed = readFileSync(join(folder, `${name}.schema.json`), 'utf8')
  expect(committed).toBe(`${JSON.stringify(schema, null, 2)}\n`)
})

test.each(schemas)('the schema of %s describes each property and allows no other', (_name, all) => {
  const bare: string[] = []
  const visit = (schema: unknown, path: string): void => {
    if (typeof schema !== 'object' || schema === null) return
    const { properties, additionalProperties } = schema as Record<string, unknown>
    if (properties && additionalProperties !== false) bare.push(`${path}: open`)
    for (const [key, value] of Object.entries(properties ?? {})) {
      if (!JSON.stringify(value).includes('"description"')) bare.push(`${path}.${key}`)
    }
    for (const [key, value] of Object.entries(schema)) visit(value, `${path}.${key}`)
  }
  visit(all, '')
  expect(bare).toEqual([])
})

const monitoringPage = readFileSync(join(folder, '../docs/monitoring-as-code.md'), 'utf8')

test.each([
  ['config/monitoring.yaml', readFileSync(join(folder, 'monitoring.yaml'), 'utf8')],
  ['the example of its page', /^```yml\n(.*?)^```/ms.exec(monitoringPage)?.[1] ?? ''],
])('%s loads', (name, text) => {
  const { content } = parseMonitoring(text, name, {})
  expect(Object.keys(content.assets ?? {})).not.toEqual([])
})

test('the page names every key of monitoring.yaml', () => {
  const keys = new Set<string>()
  const visit = (schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null) return
    for (const key of Object.keys((schema as { properties?: object }).properties ?? {}))
      keys.add(key)
    for (const value of Object.values(schema)) visit(value)
  }
  visit(monitoringSchema())
  expect([...keys].filter((key) => !monitoringPage.includes(`\`${key}\``))).toEqual([])
})

test('what init and the sandbox write into a clone stays out of its commits', () => {
  const clone = mkdtempSync(join(tmpdir(), 'tocsin-clone-'))
  onTestFinished(() => rmSync(clone, { recursive: true }))
  copyFileSync(join(folder, '../.gitignore'), join(clone, '.gitignore'))
  const git = (...args: string[]): string =>
    execFileSync('git', ['-C', clone, ...args], { encoding: 'utf8' })
  git('init', '--quiet')
  const written = ['tocsin.yaml', 'sandbox.yaml', 'secrets/tocsin-api-key', 'data/redis.sock']
  expect(
    git('check-ignore', ...written)
      .trim()
      .split('\n'),
  ).toEqual(written)
})
