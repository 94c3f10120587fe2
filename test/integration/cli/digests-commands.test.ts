/** `digests preview` says what the next digest would say and changes nothing; `digests send` makes it come. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createCircuit } from '../../../src/delivery/circuit.ts'
import { digestGroupId } from '../../../src/grouping/placement.ts'
import { recipientHash } from '../../../src/sinks/destinations.ts'
import { aGatheringRig, type GatheringRig } from '../../support/grouping.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'
import { aRehearsedSink, type RehearsedSink } from '../../support/rehearsed-sink.ts'
import { aSocScene, type SocScene } from './soc-scene.ts'
import { aFile, tocsin, tocsinProcess } from './tocsin.ts'

const tests = redisForTests()

const ann = `oncall:${recipientHash('ann@example.com')}`
const bob = `oncall:${recipientHash('bob@example.com')}`

async function aDigestScene(): Promise<SocScene> {
  const scene = await aSocScene(tests)
  await scene.show(['oncall'], [{ uid: 'paste/site/1', severity: 'low', type: 'paste' }])
  await scene.show(['oncall'], [{ uid: 'leak/site/2', severity: 'high' }], scene.second)
  return scene
}

/** Everything in Redis that an item or a digest hangs on. */
async function state({ ledger, keys }: SocScene): Promise<Record<string, string | null>> {
  const names = await ledger.redis.keys(`${keys.shared().slice(0, -1)}*`)
  const dumps = names.toSorted().map(async (name) => {
    const dump = await ledger.redis.dumpBuffer(name)
    return [name, dump?.toString('base64') ?? null] as const
  })
  return Object.fromEntries(await Promise.all(dumps))
}

function aDaemon({ ledger, second, keys }: SocScene): {
  rig: GatheringRig
  oncall: RehearsedSink
} {
  const destinations = [
    { id: ann, label: 'ann@example.com' },
    { id: bob, label: 'bob@example.com' },
  ]
  const oncall = aRehearsedSink('oncall', { type: 'email', destinations })
  const ledgers = [ledger, second]
  return {
    rig: aGatheringRig({ redis: ledger.redis, keys, ledgers: ledgers, sinks: [oncall] }),
    oncall,
  }
}

test('a preview says what the next digest would say now, and changes nothing', async () => {
  const scene = await aDigestScene()
  await tocsin('sinks', 'list', ...scene.config) // the first command of all notes the layout
  const before = await state(scene)
  const { code, out, err } = await tocsin('digests', 'preview', 'oncall', ...scene.config)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toMatch(/^\(<id> stands for .*\)\n\(for ann@example\.com; .*\)\nSubject: Digest /)
  expect(out).toContain('tocsin items show <id>\n')
  expect(out).toContain('2 events (1 high, 1 low)')
  expect(out).toContain('Stealer log: user alice')
  expect(out).not.toContain('hush-hush')
  expect(Object.keys(before).length).toBeGreaterThan(10)
  expect(await state(scene)).toEqual(before)
})

test('a preview runs as a program of its own, to its end', async () => {
  const scene = await aDigestScene()
  const { code, out, err } = await tocsinProcess('digests', 'preview', 'oncall', ...scene.config)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toContain('Subject: Digest ')
})

test('a preview in JSON is for the recipient that was named', async () => {
  const scene = await aDigestScene()
  const args = ['preview', 'oncall', '--recipient=Bob@example.com', '--output=json']
  const { out } = await tocsin('digests', ...args, ...scene.config)
  expect(JSON.parse(out)).toMatchObject({
    sink: 'oncall',
    destination: 'bob@example.com',
    events: 2,
    subject: expect.stringContaining('Digest'),
    text: expect.stringContaining('Paste: example'),
  })
})

test('the HTML part of a preview goes into a file', async () => {
  const scene = await aDigestScene()
  const file = join(aFile('page.html', ''), '../other.html')
  const { code } = await tocsin('digests', 'preview', 'oncall', '--html', file, ...scene.config)
  expect(code).toBe(0)
  expect(readFileSync(file, 'utf8')).toMatch(/^<!doctype html>[^]*Paste: example/i)
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

test('a Slack sink’s digest is previewed in plain words', async () => {
  const scene = await aSocScene(tests)
  await scene.show(['news'], [{ uid: 'paste/site/1', severity: 'low' }])
  const { out } = await tocsin('digests', 'preview', 'news', ...scene.config)
  expect(out).toMatch(/Digest .*: 1 event \(1 low\)/)
  expect(out).not.toMatch(/^Subject:|"blocks"/m)
})

test('a preview has the times of its readers, as the digest will', async () => {
  const scene = await aSocScene(tests, (text) =>
    text.replace('news:\n    type: slack', 'news:\n    type: slack\n    time_zone: Asia/Tokyo'),
  )
  await scene.show(['news'], [{ uid: 'paste/site/1', severity: 'low' }])
  const { out } = await tocsin('digests', 'preview', 'news', ...scene.config)
  expect(out).toContain('Asia/Tokyo')
})

test('an empty preview says where nothing would be sent', async () => {
  const { config } = await aSocScene(tests)
  const quiet = await tocsin('digests', 'preview', 'news', ...config)
  expect(quiet.out).toContain(
    '(an empty digest is not wanted (send_empty): nothing would be sent)\n',
  )
  const loud = await tocsin('digests', 'preview', 'oncall', ...config)
  expect(loud.out).toContain('nothing new')
  expect(loud.out).not.toContain('send_empty')
})

test('a preview takes silences made by command into account, as the digest would', async () => {
  const scene = await aDigestScene()
  const why = ['--for=1h', '--reason=x', '--owner=jo', '--severity=low']
  await tocsin('silences', 'add', 'type="paste"', ...why, ...scene.config)
  const { out } = await tocsin('digests', 'preview', 'oncall', ...scene.config)
  expect(out).toContain('1 event (1 high)')
  expect(out).not.toContain('Paste:')
  expect(out).toContain('1 suppressed by a silence')
})

test('send ends the window of every recipient: what it held goes out once, as previewed', async () => {
  const scene = await aDigestScene()
  const preview = await tocsin('digests', 'preview', 'oncall', '--output=json', ...scene.config)
  const { code, out } = await tocsin('digests', 'send', 'oncall', ...scene.config)
  const queued =
    'its digest is queued, a running daemon sends it within seconds; the next window has begun'
  expect({ code, out }).toEqual({
    code: 0,
    out: `oncall, ann@example.com: ${queued}\noncall, bob@example.com: ${queued}\n`,
  })
  const { rig, oncall } = aDaemon(scene)
  for (const ref of await scene.ledger.redis.zrange(scene.ledger.key('due', 'oncall'), '0', '-1')) {
    await rig.deliver(ref)
  }
  expect(oncall.received.map(({ destination }) => destination.id)).toEqual(
    expect.arrayContaining([ann, bob]),
  )
  expect(oncall.received.map(({ summary }) => summary!.total)).toEqual([2, 2])
  expect(oncall.received[0]!.summary!.digest).toMatchObject({ isLate: false })
  expect(JSON.parse(preview.out)).toMatchObject({ events: 2 })
  expect((await expectConservation(scene.ledger)).sinks['oncall']).toMatchObject({ delivered: 2 })
  expect((await expectConservation(scene.second)).sinks['oncall']).toMatchObject({ delivered: 2 })
})

test('after a send the next digest comes at its time, with what came since', async () => {
  const scene = await aDigestScene()
  const { ledger, config } = scene
  const timer = `c:${digestGroupId(ann)}:oncall`
  const dueMs = Number(await ledger.redis.zscore(ledger.key('timers'), timer))
  const startMs = Date.now()
  await tocsin('digests', 'send', 'oncall', ...config)
  const nextMs = Number(await ledger.redis.zscore(ledger.key('timers'), timer))
  expect((nextMs - dueMs) % 86_400_000).toBe(0)
  const from = Number(await ledger.redis.hget(ledger.key('group', digestGroupId(ann)), 'from'))
  expect(from).toBeGreaterThanOrEqual(startMs)
  await scene.show(['oncall'], [{ uid: 'paste/site/9', severity: 'info' }])
  const { out } = await tocsin('digests', 'preview', 'oncall', ...config)
  expect(out).toContain('1 event (1 info)')
})

test('a send right after a send sends nothing', async () => {
  const scene = await aDigestScene()
  await tocsin('digests', 'send', 'oncall', ...scene.config)
  const again = await tocsin('digests', 'send', 'oncall', ...scene.config)
  expect(again.out).toContain('ann@example.com: nothing has come since the last digest')
  const { rig, oncall } = aDaemon(scene)
  for (const ref of await scene.ledger.redis.zrange(scene.ledger.key('due', 'oncall'), '0', '-1')) {
    await rig.deliver(ref)
  }
  const totals = oncall.received.map(({ summary }) => summary!.total)
  expect(totals.toSorted((a, b) => a - b)).toEqual([2, 2])
})

test('where an empty digest is not wanted, a send with nothing to tell sends nothing', async () => {
  const { ledger, config } = await aSocScene(tests)
  const { code, out } = await tocsin('digests', 'send', 'news', ...config)
  expect({ code, out }).toEqual({
    code: 0,
    out: 'news: nothing has come since the last digest; an empty one goes on its schedule alone\n',
  })
  expect(await ledger.redis.zcard(ledger.key('due', 'news'))).toBe(0)
})

test('a send to a paused sink says that it waits', async () => {
  const { ledger, keys, config } = await aDigestScene()
  await createCircuit(ledger.redis, keys).pause('oncall', { reason: 'mail moves', sinceMs: 1 })
  const { out } = await tocsin('digests', 'send', 'oncall', ...config)
  expect(out).toContain('  oncall is paused (mail moves): it goes out when that is over\n')
})

test('a send to a sink of which each recipient is in trouble says that it waits', async () => {
  const { ledger, keys, config } = await aDigestScene()
  const circuit = createCircuit(ledger.redis, keys)
  for (const id of [ann, bob]) await circuit.report(id, 'broken', { reason: 'recipient_deferred' })
  const { out } = await tocsin('digests', 'send', 'oncall', ...config)
  expect(out).toContain('  oncall has its circuit open: it goes out when that is over\n')
})

test.each([
  [['send', 'soc'], 'the sink "soc" has no digest; those that have one: oncall, news\n'],
  [['preview', 'siem'], 'the sink "siem" has no digest; those that have one: oncall, news\n'],
  [['send', 'oncal'], 'no sink "oncal"; did you mean "oncall"?\n'],
  [
    ['preview', 'oncall', '--recipient=ana@example.com'],
    'no recipient "ana@example.com"; did you mean "ann@example.com"?\n',
  ],
  [
    ['preview', 'news', '--recipient=ann@example.com'],
    '--recipient: "news" is no e-mail sink; leave it out\n',
  ],
  [
    ['preview', 'oncall', '--html=/nowhere/x.html'],
    '--html: /nowhere/x.html cannot be written (ENOENT)\n',
  ],
])('digests %j is refused', async (args, said) => {
  const { config } = await aSocScene(tests)
  const { code, err } = await tocsin('digests', ...args, ...config)
  expect({ code, err }).toEqual({ code: 2, err: said })
})

test('--html is refused for a sink that sends no mail, and no file is written', async () => {
  const { config } = await aSocScene(tests)
  const file = join(aFile('page.html', ''), '../other.html')
  const { code, err } = await tocsin('digests', 'preview', 'news', '--html', file, ...config)
  expect({ code, err }).toEqual({
    code: 2,
    err: '--html: "news" is no e-mail sink; leave it out\n',
  })
  expect(existsSync(file)).toBe(false)
})

test('with no digest at all the remedy is another one', async () => {
  const { config } = await aSocScene(tests, (text) => text.replaceAll(/^ *digest: .*\n/gm, ''))
  const { err } = await tocsin('digests', 'send', 'soc', ...config)
  expect(err).toBe(
    'the sink "soc" has no digest; no sink has one; give it a digest in the configuration\n',
  )
})
