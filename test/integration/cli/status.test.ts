/** `status`: the sentence, the line of the last day, and what its exit code says. */
import { expect, test } from 'vitest'
import { createAddressHasher } from '../../../src/delivery/sink-address.ts'
import { createCircuit } from '../../../src/delivery/circuit.ts'
import { activateGeneration } from '../../../src/store/account-ledger.ts'
import { noteFeedTrouble, pauseFeed } from '../../../src/store/feed-state.ts'
import { redisForTests, takeIn } from '../../support/ledger.ts'
import { aSocScene, type SocScene } from './soc-scene.ts'
import { aFile, tocsin } from './tocsin.ts'

const tests = redisForTests()

/** Two accounts with a feed each that were read to their end just now, and a daemon that runs. */
async function aScene(): Promise<SocScene> {
  const scene = await aSocScene(tests, (text) =>
    text.replace(
      'sinks:\n',
      '  staff: { type: events, account: second, identifier_group: 1043 }\nsinks:\n',
    ),
  )
  const { ledger, second, keys } = scene
  const page = { isCaughtUp: true, requestedAtMs: Date.now() }
  await takeIn(ledger, [], page)
  await takeIn(second, [], { ...page, feed: 'staff' })
  await activateGeneration(tests.redis, keys, 'h')
  return scene
}

async function statusOf(
  scene: SocScene,
  ...args: string[]
): Promise<{ code: number | null; lines: string[] }> {
  const { code, out } = await tocsin('status', ...args, ...scene.config)
  return { code, lines: out.trimEnd().split('\n') }
}

test.each<[string, (scene: SocScene) => Promise<unknown>, number, RegExp]>([
  [
    'a sink whose circuit is open',
    ({ keys, parsed }) =>
      createCircuit(tests.redis, keys, createAddressHasher(parsed)).report('siem', 'broken', {
        reason: 'unauthorized',
        answer: '403',
        nextTryInMs: 60_000,
      }),
    1,
    /^degraded: problems with 1 sink$/,
  ],
  [
    'one of two feeds that stands still',
    ({ ledger }) => pauseFeed(ledger, 'brand', { reason: 'noise', sinceMs: Date.now() }),
    1,
    /^degraded: problems with 1 feed$/,
  ],
  [
    'all feeds that stand still',
    async ({ ledger, second }) => {
      await pauseFeed(ledger, 'brand', { reason: 'noise', sinceMs: Date.now() })
      await pauseFeed(second, 'staff', { reason: 'maintenance', sinceMs: Date.now() })
    },
    2,
    /^broken: problems with 2 feeds$/,
  ],
  [
    'counters that do not add up',
    ({ ledger }) => ledger.redis.hincrby(ledger.key('counters'), 'f|brand|fetched', 3),
    2,
    /^broken: problems with accounting$/,
  ],
  [
    'a daemon that is gone',
    ({ keys }) => tests.redis.hdel(keys.shared('generation'), 'confirmed'),
    2,
    /^broken: no daemon runs$/,
  ],
])('tells %s by its exit code, the worst first', async (_what, harm, exitCode, sentence) => {
  const scene = await aScene()
  await harm(scene)
  const { code, lines } = await statusOf(scene)
  expect(lines[0]).toMatch(sentence)
  expect(code).toBe(exitCode)
})

test('without a daemon, and without Redis, nothing works', async () => {
  const scene = await aSocScene(tests)
  expect(await statusOf(scene)).toMatchObject({
    code: 2,
    lines: expect.arrayContaining([expect.stringMatching(/^broken: no daemon runs/)]),
  })
  const nowhere = aFile('tocsin.yaml', 'redis: { url: "redis://127.0.0.1:1" }\n')
  const { code, out, err } = await tocsin('status', '--config', nowhere)
  expect({ code, told: out + err }).toMatchObject({ code: 2 })
})

test('of one account tells what it has, and not what others have', async () => {
  const scene = await aScene()
  const { second, ledger } = scene
  await noteFeedTrouble(second, 'staff', 'feed', { reason: 'timeout', answer: '', waitMs: 60_000 })
  await pauseFeed(ledger, 'brand', { reason: 'noise', sinceMs: Date.now() })
  await scene.show(['lake'], [{ uid: 'a/b/1' }])
  const own = await statusOf(scene, '--account=second')
  expect(own.code).toBe(0)
  expect(own.lines[0]).toMatch(/^well: second, 1 feed: /)
  expect(own.lines[1]).toMatch(/^last 24 h: 0 events seen/)
  const other = await statusOf(scene, '--account=main', '--output=json')
  expect(other.code).toBe(2)
  expect(JSON.parse(other.lines.join('\n'))).toMatchObject({
    status: 'broken',
    last_24h: { seen: 1, lost: 0 },
    findings: expect.arrayContaining([
      expect.objectContaining({ check: 'feed', subject: 'brand' }),
    ]),
  })
})
