/** Templates that loop, explode and throw, in a whole daemon: what they cost is their words. */
import { Writable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLogger } from '../../src/lib/logger.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { readAccounting } from '../../src/store/accounts.ts'
import { aFile, tocsin } from '../integration/cli/tocsin.ts'
import { expectConservation } from '../support/ledger.ts'
import { freePort } from '../support/free-port.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

let redis: TestRedis
let sandbox: Sandbox

beforeAll(async () => {
  redis = await startRedis()
  sandbox = await startSandbox({
    organizations: [{ id: 7, keys: [{ key: 'fw_one', tenants: [42] }] }],
    slackLimit: { perSecond: 1_000, burst: 1_000 },
    enforceLimits: false,
  })
})

afterAll(async () => {
  await sandbox?.close()
  await redis?.stop()
})

/** What ends each, by the type of the event. */
const harms = {
  paste:
    '{% for i in (1..300) %}{% for j in (1..300) %}{% if i == 0 %}x{% endif %}{% endfor %}{% endfor %}',
  domain: `{{ title ${'| append: title | append: "xx" | json '.repeat(30)}}}`,
  forum_post: '{{ "now" | date: "%s" }}',
}
const failing = Object.keys(harms)

const fails = Object.entries(harms)
  .map(([type, harm]) => `{% if type == "${type}" %}${harm}{% endif %}`)
  .join('')

function configText(prefix: string, port: number, webhookBody: string): string {
  const words = JSON.stringify({ title: `${fails}Own {{ type }}`, body: `${fails}own line` })
  return `
redis: {url: '${redis.url}', prefix: ${prefix}}
http: {port: ${port}, metrics: detailed}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_one}}
feeds: {brand: {type: events, identifier_group: 1042, every: 5s, initial_poll: send}}
sinks:
  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true, limit: 50/s, templates: ${words}}
  oncall: {type: email, smtp: '${sandbox.smtpUrl}', from: tocsin@example.com, to: [a@example.com], tls: off, templates: ${words}}
  siem: {type: webhook, url: '${sandbox.webhookUrl}', secret: '${sandbox.webhookSecret}', allow_private: true, templates: ${JSON.stringify({ webhook_body: webhookBody })}}
route: {sinks: [soc, oncall, siem], group_wait: 0s}
`
}

/** The uid of the event that a message is about. */
function uidsIn(messages: readonly { body: string }[], uids: readonly string[]): string[] {
  return messages.map(({ body }) => uids.find((uid) => body.includes(uid)) ?? 'none').toSorted()
}

function addEvent(type: string, uid = `${type}/harm/${type}`): string {
  sandbox.addEvent({ uid, type, severity: 'high', ignoredAtMs: null })
  return uid
}

test('each event is delivered once with the built-in look, and each failure is counted and told once', async () => {
  const port = await freePort()
  const yaml = configText('loops', port, `{"own": {{ uid }}, "list": ["${fails}"]}`)
  const lines: Record<string, unknown>[] = []
  const destination = new Writable({
    write: (chunk, _encoding, done) => (
      lines.push(JSON.parse(String(chunk)) as Record<string, unknown>),
      done()
    ),
  })
  const replica = aReplica(yaml, createLogger({ level: 'trace', destination }))
  const { slack, email, webhook } = sandbox.received
  const counts = (): number[] => [slack.length, email.length, webhook.length]
  const arrived = async (count: number): Promise<void> =>
    until(
      `${count} everywhere`,
      async () => counts().every((one) => one >= count) && (await nothingPending(replica)),
    )
  try {
    const good = addEvent('stealer_log')
    await replica.start()
    await arrived(1)
    const uids = [good, ...failing.map((type) => addEvent(type))]
    await arrived(uids.length)
    expect(counts()).toEqual([4, 4, 4])
    for (const messages of [slack, email, webhook]) {
      expect(uidsIn(messages, uids)).toEqual(uids.toSorted())
    }
    expect(JSON.stringify(slack[0]?.json)).toMatch(/Own stealer_log.*own line/)
    expect(email[0]?.mail).toMatchObject({ subject: expect.stringContaining('Own stealer_log') })
    expect(webhook[0]?.json).toEqual({ own: good, list: [''] })
    expect(JSON.stringify([slack.slice(1), email.slice(1).map(({ mail }) => mail)])).not.toMatch(
      /own line|Own /,
    )
    for (const { json } of webhook.slice(1)) expect(json).toMatchObject({ type: 'tocsin.event.v1' })
    await expectConservation(replica.ledgers[0]!)
    const { sinks } = await readAccounting(replica.ledgers[0]!)
    for (const sink of Object.values(sinks)) expect(sink).toMatchObject({ delivered: 4, dead: 0 })
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    expect(page.match(/^tocsin_template_failures_total\{.* [1-9].*$/gm)?.toSorted()).toEqual([
      'tocsin_template_failures_total{sink="oncall",template="body"} 3',
      'tocsin_template_failures_total{sink="oncall",template="title"} 3',
      'tocsin_template_failures_total{sink="siem",template="webhook_body"} 3',
      'tocsin_template_failures_total{sink="soc",template="body"} 3',
      'tocsin_template_failures_total{sink="soc",template="title"} 3',
    ])
    const told = lines.filter(
      ({ msg }) => msg === 'a template failed: the message has the built-in look',
    )
    expect(
      told.map(({ sink, template }) => `${String(sink)} ${String(template)}`).toSorted(),
    ).toEqual(['oncall body', 'oncall title', 'siem webhook_body', 'soc body', 'soc title'])
    for (const { problem, remedy } of told) {
      expect(problem).toMatch(/\(line 1, column \d+ of the template\)$/)
      expect(remedy).toContain('tocsin render')
    }
  } finally {
    await replica.stop()
  }
})

test('a receiver that refuses the built-in body leaves a dead letter that names the template, and takes its replay once that is mended', async () => {
  const port = await freePort()
  const strict = sandbox.faults.add({ on: '/hooks/*', effect: 'status', status: 400 })
  const broken = configText(
    'strict',
    port,
    `{"own": ${'{% if type == "paste" %}{{ "now" | date }}{% endif %}'}{{ uid }}}`,
  )
  const uid = addEvent('paste', 'paste/strict/1')
  const ownOnes = (): unknown[] =>
    sandbox.received.webhook.filter(({ json }) => (json as { own?: string }).own === uid)
  const first = aReplica(broken)
  const config = ['--config', aFile('tocsin.yaml', broken)]
  try {
    await first.start()
    await until('it is refused', async () => {
      const { siem } = (await readAccounting(first.ledgers[0]!)).sinks
      return (siem?.dead ?? 0) > 0 && (await nothingPending(first))
    })
  } finally {
    strict()
    await first.stop()
  }
  const { out } = await tocsin('items', 'show', uid, ...config)
  expect(out).toMatch(
    /siem.*answered 400 to the built-in body, since the template webhook_body failed: the present time is not known \(line 1, column \d+ of the template\); mend it and replay/s,
  )
  const mended = configText('strict', port, '{"own": {{ uid }}}')
  const second = aReplica(mended)
  try {
    await second.start()
    await tocsin(
      'items',
      'resend',
      '--sink',
      'siem',
      '--yes',
      '--config',
      aFile('tocsin.yaml', mended),
    )
    await until(
      'it is replayed',
      async () => ownOnes().length > 0 && (await nothingPending(second)),
    )
    expect(ownOnes()).toHaveLength(1)
  } finally {
    await second.stop()
  }
})
