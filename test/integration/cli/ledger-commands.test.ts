/** The commands that read or change the ledger, against one that the daemon's own scripts filled. */
import { expect, onTestFinished, test } from 'vitest'
import { createKeys } from '../../../src/redis/keys.ts'
import { type AccountLedger, itemId } from '../../../src/store/account-ledger.ts'
import { peekFeed } from '../../../src/store/feed-state.ts'
import { mailContent } from '../../../src/sinks/email/email-sink.ts'
import { renderIncident } from '../../../src/sinks/pagerduty/pagerduty-sink.ts'
import { previewSlack } from '../../../src/sinks/slack/slack-message.ts'
import { cardText, renderTeams } from '../../../src/sinks/teams/teams-card.ts'
import { beginAttempt, peekBatch, sealBatch, settleAttempt } from '../../support/attempts.ts'
import { aMember } from '../../support/deliveries.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { summarised } from '../../support/summaries.ts'
import { freePort } from '../../support/free-port.ts'
import { startRedis } from '../../support/redis.ts'
import { aFile, tocsin } from './tocsin.ts'

const tests = redisForTests()
let prefixes = 0

interface Scene {
  ledger: AccountLedger
  /** What every command is told. */
  config: [string, string]
}

async function aScene(redisUrl = tests.server.url): Promise<Scene> {
  const prefix = `cli${(prefixes += 1)}`
  const ledger = await tests.ledger({ keys: createKeys(prefix) })
  return {
    ledger: ledger,
    config: ['--config', aFile('tocsin.yaml', configText(redisUrl, prefix))],
  }
}

function configText(redisUrl: string, prefix: string): string {
  return `redis: { url: "${redisUrl}", prefix: ${prefix} }
accounts:
  main: { base_url: "http://127.0.0.1:9", link_hosts: [app.example.com], api_key: fw_key }
  second: { base_url: "http://127.0.0.1:9", api_key: fw_key }
feeds:
  brand: { type: events, account: main, identifier_group: 1042 }
  executives: { type: events, account: main, identifier_group: 1043 }
sinks:
  soc: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush", time_zone: Asia/Tokyo }
  siem: { type: webhook, url: "https://siem.example.com/hook", batch: { max: 10, wait: 1s } }
route: { sinks: [soc, siem], note: Ask the owner }
`
}

const uid = 'leak/source.example/1'

async function refOf(ledger: AccountLedger, sink: string, of = uid): Promise<string> {
  const refs = await ledger.redis.zrange(ledger.key('due', sink), '0', '-1')
  return refs.find((ref) => ref.includes(ledger.fingerprints.recordId(of))) ?? ''
}

async function attempt(
  ledger: AccountLedger,
  ref: string,
  result: Parameters<typeof settleAttempt>[2],
): Promise<void> {
  await beginAttempt(ledger, ref, 't', 30_000)
  await settleAttempt(ledger, { ref, token: 't', replica: 'r1' }, result)
}

test('items show takes a uid as it stands in a message, and gives the same to machines', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [routed({ uid })])
  const { code, out } = await tocsin(
    'items',
    'show',
    'leak/source[.]example/1',
    ...config,
    '--account=main',
    '--output=json',
  )
  expect(code).toBe(0)
  expect(JSON.parse(out)).toMatchObject([
    {
      account: 'main',
      uid,
      severity: 'high',
      title: expect.stringContaining('Stealer log'),
      link: expect.stringContaining('https://app.example.com/'),
      sightings: [{ feed: 'brand', severity: 'high', routes: [{ route: 'root', why: [] }] }],
      items: [{ sink: 'soc', destination: 'soc', state: 'queued', attempts: 0, answers_lost: 0 }],
      quarantined: null,
    },
  ])
})

test('items show takes the id of a delivery, or of a mail, and tells of the event that went under it', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [routed({ uid }, ['soc', 'siem']), routed({ uid: 'leak/other/2' })])
  await attempt(ledger, await refOf(ledger, 'soc'), { outcome: 'delivered', answer: 'HTTP 200 ok' })
  const id = itemId('main', uid, 'high', 'soc')
  for (const given of [id, `delivery ${id}`, `<${id}.0123456789abcdef@example.com>`]) {
    const { code, out } = await tocsin('items', 'show', given, ...config)
    expect(code).toBe(0)
    expect(out).toContain(
      `delivery ${id}: 1 event to soc\n${uid} (stealer_log, high), account main`,
    )
    expect(out).toMatch(/attempt 1, .*: accepted: HTTP 200 ok/)
    expect(out).not.toContain('leak/other/2')
  }
  const { out } = await tocsin('items', 'show', id, ...config, '--output=json')
  expect(JSON.parse(out)).toMatchObject([{ delivery: id, uid, items: [{ id }, {}] }])
})

test('items show takes the id of a message of several, as its foot has it, and lists all, worst first', async () => {
  const { ledger, config } = await aScene()
  const events = ['low', 'critical', 'high'].map((severity) =>
    routed({ uid: `leak/source/${severity}`, severity }, ['siem']),
  )
  await takeIn(ledger, [...events, routed({ uid: 'leak/other/2' })], { batchWaitMs: 1_000 })
  const refs = (await peekBatch(ledger, 'siem', 10)).map(({ ref }) => ref)
  const ref = await sealBatch(ledger, { sink: 'siem', destination: 'siem', waitMs: 1_000 }, refs)
  const id = `b${ref?.split(':')[1]}`
  const list = async (): Promise<string> => (await tocsin('items', 'show', id, ...config)).out
  const ids = footersOf(id).map((footer) => /delivery\W+([eb][0-9a-f]+)/i.exec(footer)?.[1])
  expect(ids).toEqual(ids.map(() => id))
  expect(await list()).toContain(`delivery ${id}: 3 events to siem`)
  expect((await list()).match(/leak\/source\/\w+/g)).toEqual([
    'leak/source/critical',
    'leak/source/high',
    'leak/source/low',
  ])
  await attempt(ledger, ref!, { outcome: 'delivered', answer: 'HTTP 200 ok' })
  expect((await list()).match(/account main: delivered/g)).toHaveLength(3)
  expect(await list()).not.toContain('leak/other/2')
})

/** What each look has below its last event of a group that it shows whole. */
function footersOf(id: string): string[] {
  const members = [aMember(), aMember()]
  const destination = { id: 'soc', label: 'soc' }
  const delivery = { id, destination, attempt: 1, mayBeRepeat: false, ...summarised(members) }
  const { text, html } = mailContent(delivery, 'soc')
  const slack = previewSlack(delivery)
  return [
    text.split('\n--\n')[1] ?? '',
    html.slice(html.lastIndexOf('<p ')),
    JSON.stringify(slack.inBlocks.blocks?.slice(-2)),
    slack.plainText.text?.split('\n').slice(-2).join('\n') ?? '',
    cardText(renderTeams(delivery)).split('\n').slice(-2).join('\n'),
    JSON.stringify(renderIncident(delivery)),
  ]
}

test('feeds rewind moves the start bound and says what that means', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [routed({ uid })])
  const to = ['--to', '2026-01-01T00:00Z', '--yes']
  const { code, out } = await tocsin('feeds', 'rewind', 'brand', ...to, ...config)
  expect(code).toBe(0)
  expect(out).toContain('brand will be read again from 2026-01-01 00:00:00 UTC on')
  expect(out).toContain('what was delivered is not sent again')
  expect(out).toContain('last seen over 90 d ago is no longer remembered')
  const state = await peekFeed(ledger, 'brand', 0)
  expect(state).toMatchObject({ startBoundMs: Date.UTC(2026, 0, 1), isRewound: true })
})

test('feeds rewind past what was read warns that events are skipped', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [routed({ uid, createdAtMs: Date.UTC(2026, 0, 2) })])
  const { out } = await tocsin('feeds', 'rewind', 'brand', '--to=1s', '--yes', ...config)
  expect(out).toContain('Events created between 2026-01-02 00:00:00 UTC and then')
})

test('without Redis every command says so, and where it looked, without the password', async () => {
  const port = await freePort()
  const { config } = await aScene(`redis://user:pass-word@127.0.0.1:${port}`)
  const { code, err } = await tocsin('feeds', 'list', ...config)
  expect(err).toContain(`Redis at 127.0.0.1:${port} is not reachable (ECONNREFUSED)`)
  expect(err).not.toContain('pass-word')
  expect(code).toBe(1)
})

test.each([
  ['no password', '', 'NOAUTH'],
  ['a wrong one', 'user:guess-work@', 'WRONGPASS'],
])('a Redis that asks for its password and gets %s is named', async (_name, login, said) => {
  const redis = await startRedis({ settings: ['requirepass pass-word'] })
  onTestFinished(() => redis.stop())
  const { config } = await aScene(redis.url.replace('//', `//${login}`))
  const { code, err } = await tocsin('feeds', 'list', ...config)
  expect(err).toContain(`redis.url: Redis at 127.0.0.1:${redis.port} `)
  expect(err).toContain(said)
  expect(err).not.toMatch(/pass-word|guess-work/)
  expect(code).toBe(1)
})

test('a ledger of a newer version is refused', async () => {
  const { config } = await aScene()
  await tests.redis.set(createKeys(`cli${prefixes}`).shared('schema'), 99)
  const { code, err } = await tocsin('feeds', 'list', ...config)
  expect(err).toContain('Redis holds a ledger of layout 99')
  expect(code).toBe(1)
})

test('a Redis without memory is the world, said plainly', async () => {
  const { ledger, config } = await aScene()
  await takeIn(ledger, [routed({ uid })])
  onTestFinished(async () => void (await tests.redis.config('SET', 'maxmemory', '0')))
  await tests.redis.config('SET', 'maxmemory', '1')
  const { code, err } = await tocsin('feeds', 'rewind', 'brand', '--to=1h', '--yes', ...config)
  expect({ code, err }).toEqual({
    code: 1,
    err: 'Redis has no memory left; raise maxmemory, or make room\n',
  })
})
