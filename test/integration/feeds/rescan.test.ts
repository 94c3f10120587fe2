import { callBy } from '../../support/call.ts'
import { afterEach, expect, test } from 'vitest'
import { openFeed, rewindFeed } from '../../../src/store/feed-state.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { aFeed } from '../../support/feeds.ts'
import { startFeedRig, type FeedRig } from '../../support/feed-rig.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const startMs = 96 * hourMs
const feed = aFeed({ startMs, rescan: { everyMs: 1, backMs: 168 * hourMs } })

let rig: FeedRig

async function begin(sandbox: SandboxOptions = {}): Promise<FeedRig> {
  rig = await startFeedRig({ tests, sandbox })
  return rig
}

afterEach(() => rig.stop())

async function known(): Promise<string[]> {
  return [...(await rig.records()).keys()].toSorted()
}

test.each([
  ['ahead when a feed was rewound', 24 * hourMs],
  ['set back before a feed was rewound', -24 * hourMs],
])(
  'what is new is told, and what is missed found, though Redis’ clock was %s',
  async (_when, byMs) => {
    await begin({ endMode: 'empty' })
    const short = { startMs: 24 * hourMs, rescan: { everyMs: hourMs, backMs: 48 * hourMs } }
    rig.sandbox.addEvents(3)
    await rig.toEnd(aFeed(short))
    const name = rig.ledger.key('feed', 'brand')
    const { scan: walk } = await openFeed(rig.ledger, 'brand', startMs)
    if (byMs < 0) {
      const ahead = { ...walk, startedAtMs: Date.now() - byMs }
      await tests.redis.hset(name, 'walk', JSON.stringify(ahead))
    }
    await rewindFeed(rig.ledger, 'brand', Date.now() - 72 * hourMs)
    if (byMs > 0) await tests.redis.hset(name, 'rewound', Date.now() + byMs)
    const missed = rig.sandbox.addEvent({ createdAtMs: Date.now() - 60 * hourMs })
    rig.sandbox.addEvents(25)
    await rig.toEnd(aFeed(short))
    await rig.turn(aFeed(short), 'rescan')
    expect(await known()).toContain(missed.uid)
    expect(await known()).toHaveLength(29)
  },
)

test.each(['feed', 'rescan'] as const)(
  'cursors that lead round in a circle end the %s, as an error that is told, and cost no event',
  async (kind) => {
    await begin({ endMode: 'empty' })
    if (kind === 'rescan') await rig.toEnd(feed)
    const nextOf: Record<string, string> = { '': 'a', a: 'b', b: 'a' }
    const asked: string[] = []
    rig.replica.client.call = callBy((_name, { from }: { from?: string }) => {
      asked.push(from ?? '')
      const estimated_created_at = new Date(Date.now() - hourMs).toISOString()
      const metadata = { uid: `paste/x/${from ?? 'first'}`, type: 'paste', estimated_created_at }
      const page = { items: [{ metadata }], next: nextOf[from ?? ''] ?? null }
      return Promise.resolve({ page, requestedAtMs: Date.now() })
    })
    expect(await rig.turn(feed, kind)).toMatchObject({ status: 'failed', reason: 'invalid' })
    expect(asked.length).toBeLessThan(40)
    expect(await known()).toEqual(['paste/x/a', 'paste/x/b', 'paste/x/first'])
  },
)
