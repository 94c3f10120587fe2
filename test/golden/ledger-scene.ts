/** A ledger with an event in every state, for the transcripts of commands. */
import { createAddressHasher } from '../../src/delivery/sink-address.ts'
import { createCircuit } from '../../src/delivery/circuit.ts'
import type { ThreatEvent } from '../../src/event.ts'
import { mutedGroup } from '../../src/grouping/placement.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { noteFeedTrouble, pauseFeed } from '../../src/store/feed-state.ts'
import { discardItem, rerouteItem, suppressItems } from '../../src/store/pending-items.ts'
import { readItems } from '../../src/store/records.ts'
import { aSocScene, type SocScene } from '../integration/cli/soc-scene.ts'
import { tocsin } from '../integration/cli/tocsin.ts'
import { attemptOf, beginAttempt, sealBatch, type Outcome } from '../support/attempts.ts'
import { pastThisMillisecond, routed, takeIn, type RedisForTests } from '../support/ledger.ts'
import type { Run } from './transcript.ts'

export interface LedgerScene extends SocScene {
  run: Run
  /** Of the account that left the configuration. */
  umbrella: AccountLedger
}

/** Without the line of Redis, which differs. */
const configuration = `
accounts:
  main: { base_url: "http://127.0.0.1:9", link_hosts: [app.example.com], api_key: fw_key_of_main }
  second: { base_url: "http://127.0.0.1:9", link_hosts: [app.example.com], api_key: fw_key_of_second }
feeds:
  brand: { type: events, account: main, identifier_group: 1042, labels: { team: brand } }
  leaks: { type: credentials, account: main, identifier: 9, severity: high }
  staff: { type: events, account: second, identifier_group: 1043 }
  slow: { type: events, account: second, identifier_group: 1044 }
sinks:
  lake: { type: webhook, url: "https://lake.example.com/hook" }
  siem: { type: webhook, url: "https://siem.example.com/hook", batch: { max: 10, wait: 1s } }
  soc: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush" }
  desk: { type: teams, url: "https://x.logic.azure.com/workflows/a?sig=hush-hush", fallback: soc }
  dead: { type: webhook, url: "https://dead.example.com/hook" }
  oncall:
    type: email
    smtp: "smtp://u:hush-hush@127.0.0.1"
    from: tocsin@example.com
    to: [ann@example.com, bob@example.com]
    digest: { schedule: '0 8 * * *', timezone: Europe/Zurich, immediate: critical }
route:
  sinks: [lake]
  routes:
    - { name: urgent, matchers: ['severity>=high'], sinks: [soc, siem], group_by: [feed], continue: true }
    - { name: trial, mode: shadow, matchers: ['type="paste"'], sinks: [desk] }
    - { name: rest, sinks: [oncall] }
silences:
  - matchers: ['type="chat"']
    until: 2026-01-01T00:00:00Z
    owner: al
    reason: of yesterday
    max_severity: low
`

export async function aLedgerScene(tests: RedisForTests): Promise<LedgerScene> {
  const scene = await aSocScene(tests, (text) => `${text.split('\n')[0]}${configuration}`)
  const { second, keys, config, parsed } = scene
  const umbrella = await tests.ledger({ keys, account: 'umbrella' })
  await fill(scene)
  await takeInOne(umbrella, 'paste/site/left', { type: 'paste' }, { sink: 'lake' })
  await takeInOne(umbrella, 'paste/site/orphan', { type: 'paste' }, { sink: 'gone' })
  for (const feed of ['slow', 'staff']) await takeIn(second, [], { feed })
  const refused = { reason: 'unavailable', answer: 'HTTP 503', waitMs: 60_000 }
  for (let i = 0; i < 3; i += 1) await noteFeedTrouble(second, 'slow', 'feed', refused)
  await pauseFeed(second, 'staff', { reason: 'the group is being rebuilt', sinceMs: Date.now() })
  const circuit = createCircuit(tests.redis, keys, createAddressHasher(parsed))
  await circuit.report('lake', 'ok')
  const answer = {
    reason: 'unauthorized',
    answer: 'slack answered 403',
    nextTryInMs: 60_000,
  } as const
  await circuit.report('desk', 'broken', answer)
  await circuit.report('dead', 'gone', { answer: 'HTTP 410' })
  return { ...scene, umbrella, run: (...args) => tocsin(...args, ...config) }
}

/** Of `main` what people would look for, by uid. */
async function fill(scene: SocScene): Promise<void> {
  const { ledger, second } = scene
  await takeInOne(
    ledger,
    'leak/site/delivered',
    {},
    { sink: 'lake', ended: { outcome: 'delivered', answer: '204' } },
  )
  const retry = { outcome: 'retry', inMs: 3_600_000, counts: true, reason: 'timeout' } as const
  await takeInOne(ledger, 'leak/site/retrying', {}, { sink: 'lake', ended: retry })
  const dead = { outcome: 'dead', reason: 'invalid', answer: 'HTTP 422' } as const
  await takeInOne(ledger, 'leak/site/dead', { severity: 'critical' }, { sink: 'lake', ended: dead })
  await takeInOne(ledger, 'leak/site/dead-too', { severity: 'low' }, { sink: 'lake', ended: dead })
  await takeInOne(ledger, 'leak/site/queued', {}, { sink: 'lake' })
  await inOrder(ledger)
  const about = { destination: 'soc', route: 'urgent', labels: { feed: 'brand' }, feed: null }
  const group = { id: 'group1', kind: 'group', waitMs: 3_600_000, isUrgent: false, about } as const
  const grouped = routed({ uid: 'leak/site/grouped', type: 'leak' }, ['soc'])
  await takeIn(ledger, [{ ...grouped, items: grouped.items.map((item) => ({ ...item, group })) }])
  await inOrder(ledger)
  await scene.show(['oncall'], [{ uid: 'paste/site/digest', type: 'paste', severity: 'low' }])
  await inOrder(second)
  await scene.show(
    ['oncall'],
    [{ uid: 'leak/site/digest', type: 'leak', severity: 'high' }],
    second,
  )
  await suppressed(ledger)
  await batches(ledger)
  await endedOtherwise(ledger)
  await trimmed(ledger)
  const problem = 'metadata.severity: not a string'
  for (const name of ['bad', 'worse']) {
    const raw = `{"metadata":{"uid":"paste/site/${name}","severity":7}}`
    await inOrder(ledger)
    await takeIn(ledger, [], { malformed: [{ uid: `paste/site/${name}`, problem, raw }] })
  }
}

/** One that a shadow route took, one that a silence suppresses, and one that is held at night. */
async function suppressed(ledger: AccountLedger): Promise<void> {
  await inOrder(ledger)
  const shadow = routed({ uid: 'paste/site/shadow', type: 'paste' }, ['desk'])
  await takeIn(ledger, [
    { ...shadow, items: shadow.items.map((item) => ({ ...item, isShadow: true })) },
  ])
  const untilMs = Date.now() + 3_600_000
  const group = mutedGroup('soc', 'night', untilMs)
  const acts = {
    'chat/site/silenced': { act: 'suppress', reason: 'silence', rule: 's1' },
    'chat/site/muted': { act: 'hold', rule: 'night', untilMs, group },
  } as const
  for (const [uid, act] of Object.entries(acts)) {
    const ref = await takeInOne(ledger, uid, { type: 'chat', severity: 'low' }, { sink: 'soc' })
    await suppressItems(ledger, [{ ref, ...act }])
  }
}

/** One message of two events that was accepted, one that waits. */
async function batches(ledger: AccountLedger): Promise<void> {
  for (const [names, outcome] of [
    [['sent1', 'sent2'], { outcome: 'delivered', answer: '202' }],
    [['frozen1', 'frozen2'], undefined],
  ] as const) {
    for (const name of names) {
      await inOrder(ledger)
      await takeIn(ledger, [routed({ uid: `bot/market/${name}`, type: 'bot' }, ['siem'])], {
        batchWaitMs: 1,
      })
    }
    const refs = await ledger.redis.zrange(ledger.key('collect', 'siem'), '0', '-1')
    const ref = await sealBatch(ledger, { sink: 'siem', destination: 'siem' }, refs)
    if (outcome) await attemptOf(ledger, ref ?? '', outcome)
  }
}

/** One is being sent; the fallback got one, an operator gave one up, and a second feed raised one. */
async function endedOtherwise(ledger: AccountLedger): Promise<void> {
  const sending = await takeInOne(ledger, 'leak/site/sending', {}, { sink: 'lake' })
  await beginAttempt(ledger, sending, 't', 30_000)
  const diverted = await takeInOne(ledger, 'leak/site/diverted', {}, { sink: 'desk' })
  const [found] = await readItems(ledger, [diverted])
  const targets = [{ sink: 'soc', destination: 'soc', batchWaitMs: undefined }]
  await rerouteItem(ledger, found!, { to: 'soc', targets, staleMs: 0 })
  const discarded = await takeInOne(ledger, 'leak/site/discarded', {}, { sink: 'soc' })
  await discardItem(ledger, discarded, 'by ann')
  await takeInOne(ledger, 'leak/site/raised', { severity: 'low' }, { sink: 'soc' })
  await takeInOne(ledger, 'leak/site/raised', { severity: 'critical' }, { sink: 'soc' })
}

/** One whose history is over, and is no longer kept. */
async function trimmed(ledger: AccountLedger): Promise<void> {
  await takeIn(ledger, [routed({ uid: 'leak/site/trimmed' }, [])])
  const id = ledger.fingerprints.recordId('leak/site/trimmed')
  const longAgoMs = Date.now() - 365 * 24 * 3_600_000
  await ledger.redis.zadd(ledger.key('records'), longAgoMs, id)
  await ledger.run('trim-records', ledger.retention.history, 0)
}

interface Way {
  sink: string
  /** What came of one attempt at it. */
  ended?: Outcome
}

/** Its reference. */
async function takeInOne(
  ledger: AccountLedger,
  uid: string,
  event: Partial<ThreatEvent>,
  { sink, ended }: Way,
): Promise<string> {
  await inOrder(ledger)
  await takeIn(ledger, [routed({ uid, ...event }, [sink])], { labels: { team: 'brand' } })
  const ref = `i:${ledger.fingerprints.recordId(uid)}:0:${sink}`
  if (ended) await attemptOf(ledger, ref, ended)
  return ref
}

/** Lists are by time: none has two of the same millisecond. */
const inOrder = ({ redis }: AccountLedger): Promise<void> => pastThisMillisecond(redis)
