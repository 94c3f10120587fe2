/** `events list`, `deliveries list` and `deliveries show`, against what the daemon's scripts wrote. */
import { expect, test } from 'vitest'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { aDigestRig } from '../../support/digest-rig.ts'
import { beginAttempt, sealBatch, settleAttempt, type Outcome } from '../../support/attempts.ts'
import { pastThisMillisecond, redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aSocScene, type SocScene } from './soc-scene.ts'
import { aFile, tocsin } from './tocsin.ts'

const tests = redisForTests()

const anyTime: unknown = expect.stringMatching(/^2\d{3}-\d\d-\d\dT/)

interface Scene extends SocScene {
  /** Of an account that left the configuration. */
  umbrella: AccountLedger
  list(command: string): Promise<{ items: Record<string, unknown>[]; next: string | null }>
}

async function aScene(): Promise<Scene> {
  const scene = await aSocScene(tests)
  const umbrella = await tests.ledger({ keys: scene.keys, account: 'umbrella' })
  return {
    ...scene,
    umbrella,
    async list(command) {
      const { code, out, err } = await tocsin(
        ...command.split(' '),
        ...scene.config,
        '--output=json',
      )
      expect({ code, err: err.replace(/^there is more.*\n$/, '') }).toEqual({ code: 0, err: '' })
      return JSON.parse(out) as { items: Record<string, unknown>[]; next: string | null }
    },
  }
}

/** Takes one event in, at a later time than all before it. */
async function show(
  scene: Scene,
  uid: string,
  { severity = 'high', sinks = ['lake'], of = scene.ledger, feed = 'brand' } = {},
): Promise<void> {
  await pastThisMillisecond(tests.redis)
  const ledger = of as AccountLedger
  await takeIn(ledger, [routed({ uid, severity }, sinks as string[])], { feed: feed as string })
}

async function attempt(ledger: AccountLedger, ref: string, result: Outcome): Promise<void> {
  await pastThisMillisecond(tests.redis)
  await beginAttempt(ledger, ref, 't', 30_000)
  await settleAttempt(ledger, { ref, token: 't', replica: 'r1' }, result)
}

async function refOf(ledger: AccountLedger, uid: string, sink = 'lake'): Promise<string> {
  const refs = await ledger.redis.zrange(ledger.key('due', sink), '0', '-1')
  return refs.find((ref) => ref.includes(ledger.fingerprints.recordId(uid))) ?? ''
}

const uidsOf = ({ items }: { items: Record<string, unknown>[] }): unknown[] =>
  items.map(({ uid }) => uid)

/** Of one message of several to siem, tried once. */
async function aBatch(ledger: AccountLedger, uids: string[], result: Outcome): Promise<string> {
  await takeIn(
    ledger,
    uids.map((uid) => routed({ uid }, ['siem'])),
    { batchWaitMs: 1 },
  )
  const refs = await ledger.redis.zrange(ledger.key('collect', 'siem'), '0', '-1')
  const ref = await sealBatch(ledger, { sink: 'siem', destination: 'siem', waitMs: 1 }, refs)
  await attempt(ledger, ref!, result)
  return `b${ref!.split(':')[1]}`
}

test('events list has what all accounts took in, newest first, however late each was settled', async () => {
  const scene = await aScene()
  await show(scene, 'a/b/1')
  await show(scene, 'a/b/2', { of: scene.umbrella, sinks: ['gone'] })
  await show(scene, 'a/b/3', { severity: 'low', feed: 'executives' })
  await show(scene, 'a/b/4', { of: scene.second, sinks: [] })
  await attempt(scene.ledger, await refOf(scene.ledger, 'a/b/1'), { outcome: 'delivered' })
  const found = await scene.list('events list')
  expect(uidsOf(found)).toEqual(['a/b/4', 'a/b/3', 'a/b/2', 'a/b/1'])
  expect(found.next).toBeNull()
  expect(found.items[3]).toMatchObject({
    account: 'main',
    title: expect.stringContaining('Stealer log'),
    sightings: [{ feed: 'brand' }],
    items: [{ sink: 'lake', state: 'delivered' }],
  })
})

test.each([
  ['--feed executives', ['a/b/3']],
  ['--severity high', ['a/b/4', 'a/b/1']],
  ['--severity high,', ['a/b/1']],
  ['--severity low,unknown', ['a/b/4', 'a/b/3']],
  ['--account umbrella', ['a/b/2']],
  ['--type stealer_log --limit 1', ['a/b/4']],
  ['--type paste', []],
  ['--since 1h', ['a/b/4', 'a/b/3', 'a/b/2', 'a/b/1']],
  ['--until 1h', []],
])('events list %s has only those', async (options, uids) => {
  const scene = await aScene()
  await show(scene, 'a/b/1')
  await show(scene, 'a/b/2', { of: scene.umbrella, severity: 'medium' })
  await show(scene, 'a/b/3', { severity: 'low', feed: 'executives' })
  await show(scene, 'a/b/4', { severity: 'grave' })
  expect(uidsOf(await scene.list(`events list ${options}`))).toEqual(uids)
})

test('with more than its limit events list says so, and --until goes on where it ended', async () => {
  const scene = await aScene()
  const uids = Array.from({ length: 9 }, (_, n) => `a/b/${n}`)
  for (const uid of uids) await show(scene, uid)
  const { out, err } = await tocsin('events', 'list', '--limit=2', ...scene.config)
  expect(out).toMatch(/a\/b\/8\n[^]*a\/b\/7\n/)
  expect(err).toMatch(/^there is more: .*--limit.*--until \d{4}-\S+Z\n$/)
  const first = await scene.list('events list --limit 2')
  const then = await scene.list(`events list --limit 3 --until ${first.next}`)
  expect([uidsOf(first), uidsOf(then)]).toEqual([
    ['a/b/8', 'a/b/7'],
    ['a/b/7', 'a/b/6', 'a/b/5'],
  ])
})

test('events list reads on past what was settled last until nothing newer can be left', async () => {
  const scene = await aScene()
  await show(scene, 'a/b/1')
  await show(scene, 'a/b/2')
  const many = Array.from({ length: 450 }, (_, n) => routed({ uid: `a/old/${n}` }, []))
  await takeIn(scene.ledger, many)
  await show(scene, 'a/b/3', { sinks: [] })
  for (const uid of ['a/b/1', 'a/b/2']) {
    await attempt(scene.ledger, await refOf(scene.ledger, uid), { outcome: 'delivered' })
  }
  await show(scene, 'a/b/4', { of: scene.umbrella })
  expect(uidsOf(await scene.list('events list --limit 2'))).toEqual(['a/b/4', 'a/b/3'])
  const all = uidsOf(await scene.list('events list --limit 1000'))
  expect([all.length, all.at(-1), all.at(-2)]).toEqual([454, 'a/b/1', 'a/b/2'])
})

test('of an event whose payload is gone events list has type and uid, and how it stands', async () => {
  const scene = await aScene()
  await show(scene, 'a/b/1', { sinks: ['lake', 'siem'] })
  await attempt(scene.ledger, await refOf(scene.ledger, 'a/b/1'), { outcome: 'delivered' })
  const args = ['events', 'list', ...scene.config]
  expect((await tocsin(...args)).out).toMatch(/high +brand +Stealer log: /)
  await tests.redis.del(scene.ledger.key('pay', scene.ledger.fingerprints.recordId('a/b/1')))
  expect((await tocsin(...args)).out).toMatch(
    /high +brand +stealer_log\n {4}a\/b\/1\n {4}account main: delivered to lake; waits for siem\n$/,
  )
})

test('deliveries list has each message once, with what it carried and what came of it', async () => {
  const scene = await aScene()
  const { ledger, umbrella } = scene
  await show(scene, 'a/b/1', { severity: 'critical' })
  await attempt(ledger, await refOf(ledger, 'a/b/1'), { outcome: 'delivered', answer: 'HTTP 200' })
  const batch = await aBatch(ledger, ['a/b/2', 'a/b/3'], { outcome: 'delivered' })
  await show(scene, 'a/b/4', { of: umbrella })
  await attempt(umbrella, await refOf(umbrella, 'a/b/4'), { outcome: 'dead', reason: 'gone' })
  await show(scene, 'a/b/5')
  await show(scene, 'a/b/6', { of: umbrella })
  const result = { outcome: 'retry', inMs: 60_000, counts: true, reason: 'timeout' } as const
  await attempt(umbrella, await refOf(umbrella, 'a/b/6'), result)
  const { items } = await scene.list('deliveries list')
  const one = { sink: 'lake', events: 1, attempts: 1 }
  expect(items).toMatchObject([
    { ...one, uid: 'a/b/5', state: 'pending', attempts: 0, tried_at: null },
    { ...one, uid: 'a/b/6', state: 'pending', reason: 'timeout', tried_at: anyTime },
    { ...one, accounts: ['umbrella'], state: 'dead', reason: 'gone' },
    { id: batch, sink: 'siem', state: 'delivered', events: 2, attempts: 1, severity: 'high' },
    { ...one, accounts: ['main'], state: 'delivered', answer: 'HTTP 200', severity: 'critical' },
  ])
  const idsOf = async (options: string): Promise<unknown[]> =>
    (await scene.list(`deliveries list ${options}`)).items.map(({ id }) => id)
  const [queued, pending, dead, , first] = items.map(({ id }) => id)
  expect(await idsOf('--sink siem')).toEqual([batch])
  expect(await idsOf('--state dead,pending')).toEqual([queued, pending, dead])
  expect(await idsOf('--account main')).toEqual([queued, batch, first])
  expect(await idsOf('--limit 1 --state delivered')).toEqual([batch])
  const settledAt = String(items[3]!['tried_at'])
  expect(await idsOf(`--until ${settledAt}`)).toEqual([batch, first])
  expect(await idsOf(`--since ${settledAt}`)).toEqual([queued, pending, dead, batch])
})

test('deliveries list has all that a sink owes, the longest waiting first, and names an event of each', async () => {
  const scene = await aScene()
  const uids = ['a/b/9', 'a/b/1', 'a/b/5', 'a/b/3']
  for (const uid of uids) await show(scene, uid)
  const result = { outcome: 'retry', inMs: 60_000, counts: true, reason: 'timeout' } as const
  await attempt(scene.ledger, await refOf(scene.ledger, 'a/b/5'), result)
  await pastThisMillisecond(tests.redis)
  await scene.show(['siem'], [{ uid: 'a/b/7' }])
  await pastThisMillisecond(tests.redis)
  const about = { destination: 'soc', route: 'root', labels: {}, feed: null }
  const group = { id: 'g', kind: 'group', waitMs: 60_000, isUrgent: false, about } as const
  const inGroup = routed({ uid: 'a/b/8' }, ['soc'])
  const items = inGroup.items.map((item) => ({ ...item, group }))
  await takeIn(scene.ledger, [{ ...inGroup, items }])
  const uidsIn = async (options: string) =>
    (await scene.list(`deliveries list --state pending ${options}`)).items.map(({ uid }) => uid)
  expect(await uidsIn('--limit 50')).toEqual([...uids, 'a/b/7', 'a/b/8'])
  expect(await uidsIn('--limit 2')).toEqual(uids.slice(0, 2))
  const { out } = await tocsin('deliveries', 'list', '--limit=1', ...scene.config)
  expect(out).toMatch(/^ {4}e[0-9a-f]{32}, account main\n {4}a\/b\/9$/m)
})

test('of a frozen message that is to be tried again deliveries list and explain know each try', async () => {
  const scene = await aScene()
  const said = { reason: 'recipient_deferred', answer: '451 4.7.1 come back later' } as const
  const result = { outcome: 'retry', inMs: 60_000, counts: true, ...said } as const
  const id = await aBatch(scene.ledger, ['a/b/2', 'a/b/3'], result)
  await attempt(scene.ledger, `b:${id.slice(1)}:siem`, result)
  const { items } = await scene.list('deliveries list')
  const tried = { state: 'pending', events: 2, attempts: 2, tried_at: anyTime, ...said }
  expect(items).toMatchObject([{ id, uid: expect.stringMatching(/^a\/b\/[23]$/), ...tried }])
  const shown = await tocsin('deliveries', 'list', '--sink=siem', ...scene.config)
  expect(shown.out).toMatch(
    /^ {4}a\/b\/[23] and 1 other\n {4}attempt 2, .*451 4\.7\.1 come back later$/m,
  )
  for (const name of ['a/b/2', id]) {
    const { out } = await tocsin('explain', name, ...scene.config)
    expect(out).toMatch(/in a frozen message, next try \S+ \S+ UTC$/m)
    for (const number of [1, 2])
      expect(out).toMatch(
        new RegExp(`^ +attempt ${number}, .*, to be tried again .*: 451 4\\.7`, 'm'),
      )
  }
})

test('deliveries list counts all events of a digest of two accounts, and show finds them', async () => {
  const rig = await aDigestRig(tests, { accounts: 2 })
  const config = aConfigFor(rig.keys.shared('x').split('}')[0]!.replace('{', ''))
  await rig.show(rig.ledgers[0]!, { uid: 'a/b/1', severity: 'low' })
  await rig.show(rig.ledgers[1]!, { uid: 'a/b/2' }, { uid: 'a/b/3' })
  rig.toMorning(1)
  expect(await rig.flush()).toBe(1)
  const { id } = rig.oncall.received[0]!
  const { out } = await tocsin('deliveries', 'list', '--limit=1', '--output=json', ...config)
  expect(JSON.parse(out)).toMatchObject({
    items: [{ id, accounts: ['a0', 'a1'], events: 3, severity: 'high', state: 'delivered' }],
    next: null,
  })
  const shown = await tocsin('deliveries', 'show', id, ...config)
  expect(shown.out.match(/a\/b\/\d, account a\d/g)?.toSorted()).toEqual([
    'a/b/1, account a0',
    'a/b/2, account a1',
    'a/b/3, account a1',
  ])
})

/** One account of the rig is configured, the other left. */
function aConfigFor(prefix: string): [string, string] {
  const text = `redis: { url: "${tests.server.url}", prefix: ${prefix} }
accounts: { a0: { base_url: "http://127.0.0.1:9", api_key: fw_key } }
feeds: { brand: { type: events, identifier_group: 1042 } }
sinks: { lake: { type: webhook, url: "https://lake.example.com/hook" } }
route: { sinks: [lake] }
`
  return ['--config', aFile('tocsin.yaml', text)]
}

test('deliveries show lists the events of a message as explain does, with what came of each try', async () => {
  const scene = await aScene()
  await show(scene, 'a/b/1')
  const id = await aBatch(scene.ledger, ['a/b/2', 'a/b/3'], { outcome: 'delivered' })
  const { code, out } = await tocsin('deliveries', 'show', id, ...scene.config)
  expect(code).toBe(0)
  expect(out).toMatch(
    /^delivery b\S+: 2 events to siem\n {2}attempt 1, \S+ \S+ UTC: accepted\n {2}HIGH {2}Stealer log: /,
  )
  expect(out.match(/a\/b\/\d/g)?.toSorted()).toEqual(['a/b/2', 'a/b/3'])
  expect(out.match(/taken in \S+ \S+ UTC/g)).toHaveLength(2)
  expect((await tocsin('explain', id, ...scene.config)).out).toBe(out)
})

test.each([
  ['events list --feed brnd', 'there is no feed "brnd"; did you mean "brand"?'],
  ['events list --account mian', 'there is no account "mian"; did you mean "main"?'],
  ['events list --severity hihg', 'There is no "hihg"; did you mean "high"?'],
  ['events list --severity ,', 'Write a severity, such as high.'],
  ['events list --since 2999-01-01', 'lies in the future'],
  ['events list --since 1h --until 2h', '--since lies after --until; exchange them'],
  ['events list --limit 0', 'Write a whole number from 1 to 1000.'],
  ['deliveries list --sink laek', 'there is no sink "laek"; did you mean "lake"?'],
  ['deliveries list --state deda', 'There is no "deda"; did you mean "dead"?'],
  ['deliveries list --limit 1001', 'Write a whole number from 1 to 1000.'],
  ['deliveries list --until soon', 'write how long ago, such as 12h or 7d'],
  ['deliveries show a/b/1', '"a/b/1" is not the id of a delivery; take one from "deliveries list"'],
])('%s is refused with a remedy', async (command, words) => {
  const { config } = await aScene()
  const { code, out, err } = await tocsin(...command.split(' '), ...config)
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toContain(words)
})
