/** What bends keys, paths, labels and memory, through the whole daemon. What sinks make of words is their conformance. */
import { expect, test } from 'vitest'
import { createLogger } from '../../src/lib/logger.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { readAccounting } from '../../src/store/accounts.ts'
import { aFile, tocsin } from '../integration/cli/tocsin.ts'
import { actedUpon, allHostileWords as hostile } from '../security/hostile-words.ts'
import { expectConservation } from '../support/ledger.ts'
import { nothingPending, until } from '../support/rehearsal.ts'
import { mail, slack, startRig } from '../support/rig.ts'

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

const noItems = [null, 7, 'text', [], nested(1_000), pollution]

/** How many of them are events. */
function plantHostility(sandbox: Sandbox): number {
  const given = { severity: 'high', ignoredAtMs: null }
  for (const uid of oddUids) sandbox.addEvent({ ...given, uid })
  for (const uid of refusedUids) sandbox.addRawItem(1042, { metadata: { severity: 'high', uid } })
  for (const type of ['paste', 'stealer_log', hostile]) {
    sandbox.addEvent({
      ...given,
      type,
      identifiers: [{ id: 77, name: hostile }],
      notes: hostile,
      tags: [hostile],
      highlights: { title: [hostile], [hostile]: [hostile] },
      data: { title: hostile, url: 'javascript:alert(1)', ...pollution, deep: nested(1_000) },
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
  for (const raw of noItems) sandbox.addRawItem(1042, raw)
  return oddUids.length + 5
}

test('hostile events arrive at every sink once, and bend nothing on their way', async () => {
  await using rig = await startRig({
    limit: 50,
    sandbox: { slackLimit: { perSecond: 1_000, burst: 1_000 } },
  })
  const { sandbox } = rig
  const events = plantHostility(sandbox)
  const yaml = rig.yaml({
    feeds: { brand: 'initial_poll: send, detail: [high], labels: {constructor: x}' },
    sinks: {
      siem: '',
      soc: `${slack(sandbox)}, limit: 50/s`,
      oncall: mail(sandbox, 'a@example.com'),
    },
    route: ', group_wait: 0s',
  })
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line.replace(/\n$/, '')) }
  const logger = createLogger({ level: 'trace', destination })
  const { app, ledger, metrics } = await rig.start(yaml, logger)
  const unread = refusedUids.length + noItems.length
  await until('all taken in and delivered', async () => {
    const { brand } = (await readAccounting(ledger)).feeds
    const isRead = brand?.new === events && brand.quarantined === unread
    return isRead && (await nothingPending(app))
  })
  const { slack: chat, webhook, email } = sandbox.received
  expect([chat.length, webhook.length, email.length]).toEqual([events, events, events])
  const { sinks } = await expectConservation(ledger)
  for (const sink of Object.values(sinks)) expect(sink).toMatchObject({ dead: 0 })
  for (const { body } of webhook) expect(Buffer.byteLength(body)).toBeLessThanOrEqual(20_000)
  expectMetrics(await metrics())
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  expect(lines.filter((line) => actedUpon.test(line))).toEqual([])
  await expectEachUidAlone(aFile('tocsin.yaml', yaml))
})

function expectMetrics(page: string): void {
  const lines = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  for (const line of lines) {
    expect(line).toMatch(/^[a-z_]\w*(?:\{(?:\w+="[\w.:+ /-]*",?)*\})? (?:[-+\d.e]+|[+-]Inf|NaN)$/i)
  }
  expect(page).not.toContain('tocsin_hostile')
  expect(page).toContain('tocsin_events_new_by_severity_total{severity="unknown"} 1')
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
}
