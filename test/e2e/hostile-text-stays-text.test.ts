import { Writable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readAccounting } from '../../src/store/accounts.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { aFile, tocsin } from '../integration/cli/tocsin.ts'
import { expectConservation } from '../support/ledger.ts'
import { freePort } from '../support/free-port.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

const markup =
  '<script>alert(1)</script><img src=x onerror=alert(1)> <!channel> <@U123> <!subteam^S1> ' +
  '<https://evil.example|click> *bold* &lt;!here&gt; javascript:alert(1) https://evil.example/x'
const unseen = '\u202Eecived\u202C \u2066x\u2069 \u200B\u0000\u001B[2J\u0007'
const headers = 'x\r\nBcc: victim@example.com\r\n\r\nbody'
const hostile = `${markup} ${unseen} ${headers}`
const invisible = /(?![\r\n\t])[\p{Cc}\p{Cf}]/u

function nested(depth: number): unknown {
  return JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`) as unknown
}

/** Own properties of these names, as JSON.parse makes them and a literal does not. */
const pollution = JSON.parse(
  '{"__proto__":{"polluted":"yes"},"constructor":{"prototype":{"polluted":"yes"}},"toString":"x"}',
) as Record<string, unknown>

/** Uids that would end, widen or change a key or a path if they stood in one as they are. */
const oddUids = [
  'paste/x/*',
  'paste/x/a:b:c',
  'paste/x/{tocsin:main}:counters',
  'paste/x/[a-z]?\\*',
  'paste/x/__proto__',
  'paste/../../firework/v4/me?uid=other#x',
  'paste/x/%2e%2e%2f%00',
  'paste/x/<!channel>',
  'paste/x/\'"`$(id)',
]

/** A uid cannot be kept that another text could pass for. */
const refusedUids = [
  'paste/x/a\u0000b',
  'paste/x/a\nb',
  'paste/x/\uD800',
  `paste/x/${'x'.repeat(600)}`,
]

/** What a leak site may choose as the link of an event, where the service passes it on. */
const foreignLinks: Record<string, string> = {
  'paste/x/link': 'javascript:alert(1)',
  'paste/x/site': 'https://evil.example/login',
  'paste/x/alike': 'https://app.example.com.evil.example/#/uid?uid=paste/x/alike',
}

let redis: TestRedis
let sandbox: Sandbox

beforeAll(async () => {
  redis = await startRedis()
  sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 50, basic: 100 }, keys: [{ key: 'fw_one', tenants: [42] }] },
    ],
    slackLimit: { perSecond: 1_000, burst: 1_000 },
  })
})

afterAll(async () => {
  await sandbox?.close()
  await redis?.stop()
})

/** How many of them are events. */
function plantHostility(): number {
  const given = { severity: 'high', ignoredAtMs: null }
  for (const uid of oddUids) sandbox.addEvent({ ...given, uid })
  for (const uid of refusedUids) {
    sandbox.addRawItem(1042, { metadata: { severity: 'high', type: 'paste', uid } })
  }
  for (const type of [
    'paste',
    'stealer_log',
    'leaked_credential',
    'domain',
    'forum_post',
    hostile,
  ]) {
    const data = { title: hostile, content: hostile, url: 'javascript:alert(1)', name: hostile }
    const identifiers = [{ id: 77, name: hostile }]
    sandbox.addEvent({
      ...given,
      type,
      identifiers,
      notes: hostile,
      tags: [hostile],
      highlights: { title: [hostile], [hostile]: [hostile] },
      data: { ...data, ...pollution, deep: nested(1_000) },
    })
  }
  sandbox.addEvent({ ...given, severity: 'high"} 1\ntocsin_hostile{a="b' })
  sandbox.addEvent({
    ...given,
    tags: Array.from({ length: 10_000 }, (_, index) => `tag ${index} ${'y'.repeat(100)}`),
    notes: 'n'.repeat(500_000),
    highlights: { content: ['h'.repeat(1024 * 1024)], ...(pollution as Record<string, never>) },
    data: { content: 'd'.repeat(1024 * 1024), list: Array.from({ length: 50_000 }, () => 'e') },
  })
  const metadata = { severity: 'high', estimated_created_at: new Date().toISOString() }
  for (const [uid, link] of Object.entries(foreignLinks)) {
    sandbox.addRawItem(1042, { metadata: { ...metadata, flare_url: link, uid } })
  }
  sandbox.addRawItem(1042, { metadata: { ...metadata, ...pollution, uid: 'paste/x/proto' } })
  for (const raw of [null, 7, 'text', [], nested(1_000), pollution]) sandbox.addRawItem(1042, raw)
  return oddUids.length + 6 + 2 + Object.keys(foreignLinks).length + 1
}

test('hostile events arrive at every sink once, as text, and bend nothing on their way', async () => {
  const events = plantHostility()
  const port = await freePort()
  const yaml = `
redis: {url: '${redis.url}'}
http: {port: ${port}, metrics: detailed}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_one, limits: {search: 50, basic: 100}}}
feeds:
  main: {type: events, identifier_group: 1042, every: 5s, initial_poll: send, detail: [high], labels: {constructor: x}}
sinks:
  siem: {type: webhook, url: '${sandbox.webhookUrl}', secret: '${sandbox.webhookSecret}', allow_private: true}
  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true, limit: 50/s}
  oncall: {type: email, smtp: '${sandbox.smtpUrl}', from: tocsin@example.com, to: [a@example.com], tls: off}
route: {sinks: [siem, soc, oncall], group_wait: 0s}
`
  const lines: string[] = []
  const destination = new Writable({
    write: (chunk, _encoding, done) => (lines.push(String(chunk)), done()),
  })
  const replica = aReplica(yaml, createLogger({ level: 'trace', destination }))
  try {
    await replica.start()
    await until('all taken in and delivered', async () => {
      const { main } = (await readAccounting(replica.ledgers[0]!)).feeds
      const isRead = main?.new === events && main.quarantined === refusedUids.length + 6
      return isRead && (await nothingPending(replica))
    })
    const { slack, webhook, email } = sandbox.received
    expect([slack.length, webhook.length, email.length]).toEqual([events, events, events])
    await expectConservation(replica.ledgers[0]!)
    const { feeds, sinks } = await readAccounting(replica.ledgers[0]!)
    expect(feeds['main']).toMatchObject({ quarantined: refusedUids.length + 6 })
    for (const sink of Object.values(sinks)) expect(sink).toMatchObject({ dead: 0 })
    expectSlackText()
    expectMailText()
    expectWebhooks()
    expectMetrics(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text())
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect(lines.filter((line) => invisible.test(line.replace(/\n$/, '')))).toEqual([])
    await expectEachUidAlone(aFile('tocsin.yaml', yaml))
  } finally {
    await replica.stop()
  }
})

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : []
}

/** What Slack reads as markup: all but plain text and the texts of rich text. */
function markupsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  const isLiteral = 'type' in value && (value.type === 'plain_text' || value.type === 'text')
  return isLiteral ? [] : Object.values(value).flatMap(markupsOf)
}

/** Where buttons and links of rich text lead. */
function linksOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const own = 'url' in value ? [String(value.url)] : []
  return [...own, ...Object.values(value).flatMap(linksOf)]
}

function expectSlackText(): void {
  expect(sandbox.received.slack.flatMap(({ json }) => linksOf(json)).length).toBeGreaterThan(10)
  for (const { json } of sandbox.received.slack) {
    expect(json).toMatchObject({ mrkdwn: false, unfurl_links: false, unfurl_media: false })
    const buttons = linksOf(json)
    for (const url of buttons) expect(url).toMatch(/^https:\/\/app\.example\.com\/#/)
    for (const text of markupsOf(json)) expect(text).not.toMatch(/<(?!https:\/\/app\.example\.com)/)
    for (const text of textsOf(json)) {
      expect(text).not.toMatch(/https?:\/\/evil/i)
      expect(text).not.toMatch(invisible)
      expect(text).not.toMatch(/^javascript:/)
    }
  }
}

function expectMailText(): void {
  for (const { mail, headers: head } of sandbox.received.email) {
    expect(Object.keys(head).map((name) => name.toLowerCase())).not.toContain('bcc')
    expect(mail!.recipients).toEqual(['a@example.com'])
    expect(mail!.attachments).toEqual([])
    expect(mail!.html).not.toMatch(/<(?:script|img|iframe|form|base|meta http)\b/i)
    const tags = mail!.html.match(/<[a-z][^>]*>/gi) ?? []
    for (const tag of tags) {
      expect(tag).not.toMatch(/\s(?:on\w+|src)\s*=/i)
      expect(/\shref="?([^"\s>]*)/i.exec(tag)?.[1] ?? '').toMatch(
        /^(?:$|https:\/\/app\.example\.com\/)/,
      )
    }
    for (const text of [mail!.subject, mail!.text, mail!.html]) expect(text).not.toMatch(invisible)
    expect(mail!.subject).not.toMatch(/[\r\n]/)
  }
}

interface Told {
  uid: string
  url: string | null
  unverified_link?: string
}

function expectWebhooks(): void {
  const unverified: Record<string, string | undefined> = {}
  for (const { body, json } of sandbox.received.webhook) {
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(20_000)
    const { data } = json as { data: Told }
    const isForeign = Object.hasOwn(foreignLinks, data.uid) || data.uid === 'paste/x/proto'
    expect(data.url ?? '').toMatch(isForeign ? /^$/ : /^https:\/\/app\.example\.com\/#/)
    unverified[data.uid] = data.unverified_link
  }
  expect(unverified['paste/x/site']).toBe('hxxps://evil[.]example/login')
}

function expectMetrics(page: string): void {
  const lines = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  for (const line of lines) {
    expect(line).toMatch(/^[a-z_]\w*(?:\{(?:\w+="[\w.:+ /-]*",?)*\})? (?:[-+\d.e]+|[+-]Inf|NaN)$/i)
  }
  expect(page).not.toContain('tocsin_hostile')
  expect(page).toMatch(/tocsin_events_new_total\{[^}]*severity="unknown"[^}]*\} 1/)
}

async function expectEachUidAlone(config: string): Promise<void> {
  for (const uid of oddUids) {
    const { code, out } = await tocsin('items', 'show', uid, '--output', 'json', '--config', config)
    expect(code).toBe(0)
    expect((JSON.parse(out) as { uid: string }[]).map((story) => story.uid)).toEqual([uid])
  }
  for (const glob of ['paste/x/?', 'paste/*', '*']) {
    expect(await tocsin('items', 'show', glob, '--config', config)).toMatchObject({ code: 1 })
  }
  const { out } = await tocsin('items', 'show', 'paste/x/<!channel>', '--config', config)
  expect(out).not.toMatch(invisible)
  const { out: foreign } = await tocsin('items', 'show', 'paste/x/site', '--config', config)
  expect(foreign).toContain('Unverified link: hxxps://evil[.]example/login')
  expect(foreign).not.toContain('https://evil')
}
