/** `feeds list`, `pause` and `resume` against a ledger that the daemon's own scripts filled. */
import { expect, test } from 'vitest'
import { peekFeed } from '../../../src/store/feed-state.ts'
import { pastThisMillisecond, redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aSocScene } from './soc-scene.ts'
import { tocsin } from './tocsin.ts'

const tests = redisForTests()

/** What is told of the feed `brand`. */
async function listed(config: string[]): Promise<Record<string, unknown>> {
  const { out } = await tocsin('feeds', 'list', '--output=json', ...config)
  return (JSON.parse(out) as Record<string, unknown>[])[0]!
}

/** A page of the feed's rescan, which began when the tail stood at `lateBeforeMs`. */
function rescanPage(startedAtMs: number): Parameters<typeof takeIn>[2] {
  return {
    sequence: 0,
    rescan: {
      place: 'whole',
      lateBeforeMs: Date.UTC(2026, 0, 2),
      isSnapshot: false,
      fieldsAtEnd: [],
    },
    scan: { fingerprint: 's', body: {}, cursor: 'c', reason: 'again', startedAtMs },
  }
}

test('feeds list tells how the rescan is, and what came late or was raised', async () => {
  const { ledger, config } = await aSocScene(tests)
  const startedAtMs = Date.UTC(2026, 0, 3)
  await takeIn(ledger, [routed({ uid: 'leak/x/1', createdAtMs: Date.UTC(2026, 0, 2) })])
  const late = routed({ uid: 'leak/x/2', createdAtMs: Date.UTC(2026, 0, 1) })
  const raised = routed({ uid: 'leak/x/1', severity: 'critical' })
  await takeIn(ledger, [late, raised], { ...rescanPage(startedAtMs), isCaughtUp: false })
  expect(await listed(config)).toMatchObject({
    rescan: { last_completed: null, running_since: '2026-01-03T00:00:00.000Z' },
    counts: { fetched: 3, new: 2, late: 1, raised: 1 },
  })

  await takeIn(ledger, [], { ...rescanPage(startedAtMs), sequence: 1 })
  expect(await listed(config)).toMatchObject({
    rescan: { last_completed: expect.any(String), running_since: null },
  })
})

test('a feed stays paused since the first time, with the newest reason, and goes on where it was', async () => {
  const { ledger, config } = await aSocScene(tests)
  await takeIn(ledger, [routed({ uid: 'leak/x/1' })])
  const before = await peekFeed(ledger, 'brand', 0)
  const pause = async (reason: string): Promise<unknown> => {
    const { code } = await tocsin('feeds', 'pause', 'brand', `--reason=${reason}`, ...config)
    expect(code).toBe(0)
    return (await peekFeed(ledger, 'brand', 0))?.paused
  }
  const first = (await pause('a noisy source')) as { sinceMs: number }
  expect(first).toEqual({ reason: 'a noisy source', sinceMs: expect.any(Number) })
  await pastThisMillisecond(tests.redis)
  expect(await pause(' second ')).toEqual({ reason: 'second', sinceMs: first.sinceMs })
  expect(await listed(config)).toMatchObject({
    paused: { reason: 'second', since: new Date(first.sinceMs).toISOString() },
  })
  await tocsin('feeds', 'resume', 'brand', ...config)
  expect(await peekFeed(ledger, 'brand', 0)).toEqual(before)
})
