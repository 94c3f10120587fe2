/** A preview is what is sent: the same delivery, once shown and once received. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/load.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { SinkName } from '../../../src/sandbox/receivers/received.ts'
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts'
import { createSink } from '../../../src/sinks/create-sink.ts'
import type { Delivery, Preview } from '../../../src/sinks/sink.ts'
import { aDelivery } from '../../support/deliveries.ts'
import { silent } from '../../support/ledger.ts'
import { manyMembers, summarised } from '../../support/summaries.ts'

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await startSandbox()
})
afterAll(() => sandbox.close())

function configText(): string {
  const { slackUrl, teamsUrl, pagerDutyUrl, pagerDutyKey, smtpUrl } = sandbox
  return `accounts: { main: { base_url: "https://api.example.com", api_key: fw_key } }
feeds: { brand: { type: events, identifier_group: 1 } }
sinks:
  slack: { type: slack, url: "${slackUrl}", allow_private: true }
  teams: { type: teams, url: "${teamsUrl}", allow_private: true }
  pagerduty: { type: pagerduty, url: "${pagerDutyUrl}", routing_key: ${pagerDutyKey}, allow_private: true }
  email: { type: email, smtp: "${smtpUrl}", from: a@b.example, to: [c@d.example], tls: off }
  webhook: { type: webhook, url: "${sandbox.webhookUrl}", secret: ${sandbox.webhookSecret}, allow_private: true }
route: { sinks: [slack, teams, pagerduty, email, webhook] }
`
}

type Message = Sandbox['received'][SinkName][number]

/** What the sink shows of a delivery, and what its receiver then gets. */
async function shownAndSent(
  name: SinkName,
  content: Partial<Delivery> = {},
): Promise<{ preview: Preview; received: Message }> {
  const { config } = parseConfig(configText(), { file: 'tocsin.yaml', env: {} })
  const sinkConfig = config.sinks.find((one) => one.name === name)!
  const sink = await createSink(sinkConfig, {
    logger: silent,
    clock: systemClock,
  })
  const delivery = aDelivery(sink, content)
  const preview = sink.preview!(delivery)
  expect(sandbox.received[name].filter(({ id }) => id === delivery.id)).toEqual([])
  await sink.send(delivery, { signal: AbortSignal.timeout(45_000) })
  await sink.close()
  return { preview, received: sandbox.received[name].at(-1)! }
}

const group = (): Partial<Delivery> => ({ id: 'b1', ...summarised(manyMembers(4)) })

test.each(['slack', 'teams'] as const)('%s shows what it posts', async (name) => {
  for (const content of [{}, group()]) {
    const { preview, received } = await shownAndSent(name, content)
    expect(preview.body).toEqual(received.json)
    expect(received.headers).toMatchObject(preview.headers ?? {})
  }
})

test('pagerduty shows what it posts, without its key', async () => {
  const { preview, received } = await shownAndSent('pagerduty', group())
  const { routing_key: key, ...posted } = received.json as Record<string, unknown>
  expect(preview.body).toEqual(posted)
  expect(received.headers).toMatchObject(preview.headers!)
  expect(preview.added).toContain('routing_key')
  expect(JSON.stringify(preview)).not.toContain(key)
})

test('a webhook shows what it posts, without its signature', async () => {
  const { preview, received } = await shownAndSent('webhook', { id: 'e1', attempt: 2 })
  expect(preview.body).toEqual(received.json)
  expect(received.headers).toMatchObject(preview.headers!)
  const added = Object.keys(received.headers).filter(
    (name) => name.startsWith('webhook-') && !(name in preview.headers!),
  )
  expect(added.toSorted()).toEqual(['webhook-signature', 'webhook-timestamp'])
  for (const name of added) expect(preview.added).toContain(name)
})

test('a mail is shown with the subject, text and HTML that it has', async () => {
  for (const content of [{ id: 'e2' }, group()]) {
    const { preview, received } = await shownAndSent('email', content)
    const { subject, text, html } = received.mail!
    expect(subject).toBe(preview.subject)
    expect(text.replaceAll('\r\n', '\n').trimEnd()).toBe(preview.text.trimEnd())
    expect(html.replaceAll('\r\n', '\n').trimEnd()).toBe(preview.html?.trimEnd())
  }
})
