/** Templates as the daemon runs them: what fails is told and counted, and every message goes out. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { buildSinks } from '../../../src/daemon/parts/sinks.ts'
import { parseConfig } from '../../../src/config/load.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import { createMetrics } from '../../../src/lib/metrics/metrics.ts'
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts'
import type { Sink } from '../../../src/sinks/sink.ts'
import { aDelivery, aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await startSandbox({ slackLimit: { perSecond: 1000, burst: 1000 } })
})
afterAll(() => sandbox.close())

const fails = '{% if source == "boom" %}{{ "now" | date: "%s" }}{% endif %}'
const token = 'quokka-token-4711'

function configText(): string {
  return `accounts: { main: { base_url: "https://api.example.com", api_key: fw_key } }
feeds: { brand: { type: events, identifier_group: 1 } }
sinks:
  soc:
    type: slack
    url: "${sandbox.slackUrl}"
    allow_private: true
    templates: { title: 'Own {{ uid }}${fails}', body: '${fails}own line' }
  siem:
    type: webhook
    url: "${sandbox.webhookUrl}"
    secret: ${sandbox.webhookSecret}
    allow_private: true
    headers: [{ name: Authorization, value: "Splunk ${token}" }]
    templates: { webhook_body: '{"own": {{ uid }}, "list": [1${fails}]}' }
route: { sinks: [soc, siem] }
`
}

interface Built {
  sinks: ReadonlyMap<string, Sink>
  lines: () => Record<string, unknown>[]
  failures: () => Promise<string[]>
}

async function build(text = configText()): Promise<Built> {
  const written: string[] = []
  const destination = { write: (line: string) => void written.push(line) }
  const logger = createLogger({ level: 'trace', destination })
  const metrics = createMetrics({ clock: systemClock })
  const { config } = parseConfig(text, { file: 'tocsin.yaml', env: {} })
  const sinks = await buildSinks(config.sinks, { logger, clock: systemClock, metrics })
  onTestFinished(async () => {
    for (const sink of sinks.values()) await sink.close()
  })
  return {
    sinks,
    lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>),
    async failures() {
      const { body } = await metrics.render()
      return body.split('\n').filter((line) => line.startsWith('tocsin_template_failures_total{'))
    },
  }
}

async function send({ sinks }: Built, name: string, source = 'logs'): Promise<void> {
  const sink = sinks.get(name)!
  const members = [aMember({ event: aThreatEvent({ source }) })]
  await sink.send(aDelivery(sink, { members }), { signal: AbortSignal.timeout(45_000) })
}

test('a template that fails is told once, counted each time, and costs no message', async () => {
  const built = await build()
  const before = sandbox.received.slack.length
  for (let count = 0; count < 4; count += 1) await send(built, 'soc', 'boom')
  const arrived = sandbox.received.slack.slice(before)
  expect(arrived).toHaveLength(4)
  expect(JSON.stringify(arrived)).not.toMatch(/Own |own line/)
  const warnings = built.lines().filter(({ level }) => level === 'warn')
  expect(warnings.map(({ template }) => template)).toEqual(['title', 'body'])
  expect(warnings[0]).toMatchObject({
    sink: 'soc',
    problem: expect.stringMatching(/the present time is not known \(line 1, column \d+ of/),
    remedy: expect.stringContaining('tocsin render <uid> --sink'),
    msg: 'a template failed: the message has the built-in look',
  })
  expect(await built.failures()).toEqual([
    'tocsin_template_failures_total{sink="soc",template="title"} 4',
    'tocsin_template_failures_total{sink="soc",template="body"} 4',
  ])
})

test('a webhook posts its own body under its own Authorization, and shows the token nowhere', async () => {
  const built = await build()
  const before = sandbox.received.webhook.length
  await send(built, 'siem')
  const [received] = sandbox.received.webhook.slice(before)
  const { uid } = aThreatEvent()
  expect(received?.json).toEqual({ own: uid, list: [1] })
  expect(received?.headers['authorization']).toBe(`Splunk ${token}`)
  const sink = built.sinks.get('siem')!
  const preview = sink.preview!(aDelivery(sink))
  expect(preview).toMatchObject({ body: received?.json, added: expect.stringMatching(/authoriz/) })
  expect(JSON.stringify([preview, built.lines()])).not.toContain(token)
})
