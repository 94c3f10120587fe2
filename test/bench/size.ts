/** What the built program takes where little happens: requests to Redis, memory, time to start, series, bytes. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from '../../src/redis/client.ts'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { untilThere } from './called-process.ts'
import {
  configOfOne,
  deliveredBy,
  openAccount,
  sandboxOfOne,
  untilCounted,
  writeMarks,
} from './one-account.ts'
import type { Figures } from './report.ts'
import {
  dataBytes,
  redisUse,
  webhookSink,
  type Daemon,
  type Rig,
  type SandboxProcess,
} from './rig.ts'

export interface SizePlan {
  /** How long nothing happens, before and while it is measured. */
  settleSeconds: number
  idleSeconds: number
  loadSeconds: number
  loadPerSecond: number
  records: number
}

/**
 * Two daemons, of few feeds and of many: what the second one asks Redis for more is what its further polls
 * cost, with all that goes with them.
 */
export async function measureEmptyPoll(rig: Rig, plan: SizePlan): Promise<Figures> {
  const few = await pollNothing(rig, plan, 2)
  const many = await pollNothing(rig, plan, 22)
  const polls = many.polls - few.polls
  return {
    'poll-scripts': (many.scripts - few.scripts) / polls,
    'poll-commands': (many.commands - few.commands) / polls,
  }
}

async function pollNothing(
  rig: Rig,
  { settleSeconds, idleSeconds }: SizePlan,
  feeds: number,
): Promise<Record<'scripts' | 'commands' | 'polls', number>> {
  const { sandbox, groupIds, daemon } = await startOne(rig, { feeds, sinks: 1 })
  await untilPolled(sandbox, groupIds.length)
  await sleep(1000 * settleSeconds)
  const sinceMs = Date.now()
  const before = await redisUse(rig.redis)
  await sleep(1000 * idleSeconds)
  const after = await redisUse(rig.redis)
  const { count: polls } = await sandbox.call('searches', sinceMs)
  await daemon.stop()
  return {
    scripts: after.scripts - before.scripts,
    commands: after.commands - before.commands,
    polls,
  }
}

interface One {
  sandbox: SandboxProcess
  groupIds: number[]
  daemon: Daemon
  ledger: AccountLedger
}

interface Wanted {
  feeds: number
  sinks: number
  /** Keys of the feeds instead of those that leave rescans out. */
  more?: object
  /** Fingerprints that are there before. */
  marks?: number
}

/** A daemon of so many feeds and webhook sinks, on an empty ledger and an empty sandbox. */
async function startOne(
  rig: Rig,
  { feeds, sinks: sinkCount, more, marks = 0 }: Wanted,
): Promise<One> {
  await rig.redis.flushall()
  const ledger = await openAccount(rig)
  await writeMarks(ledger, marks)
  const { groupIds, ...options } = sandboxOfOne(feeds)
  const sandbox = await rig.startSandbox(options)
  const names = Array.from({ length: sinkCount }, (_none, i) => `siem-${i}`)
  const batch = { batch: { max: 50, wait: '250ms' } }
  const sinks = Object.fromEntries(names.map((name) => [name, webhookSink(sandbox, name, batch)]))
  const daemon = await rig.startDaemon(configOfOne(sandbox, groupIds, sinks, { feed: more }))
  return { sandbox, groupIds, daemon, ledger }
}

/** Each of so many feeds has been read. */
export async function untilPolled(sandbox: SandboxProcess, feeds: number): Promise<void> {
  const look = async (): Promise<true | undefined> =>
    (await sandbox.call('searches', 0)).groups >= feeds || undefined
  await untilThere(look, () => 'not every feed was read', 200)
}

export async function measureMemory(rig: Rig, plan: SizePlan): Promise<Figures> {
  const { sandbox, groupIds, daemon, ledger } = await startOne(rig, {
    feeds: 1,
    sinks: 1,
    more: {},
  })
  const [groupId] = groupIds as [number]
  await untilPolled(sandbox, 1)
  await sleep(1000 * (plan.settleSeconds + plan.idleSeconds))
  const { rssBytes: idle } = await daemon.use()
  const count = plan.loadSeconds * plan.loadPerSecond
  const arrivals = Array.from({ length: count }, (_none, i) => ({
    atMs: (1000 * i) / plan.loadPerSecond,
    groupId,
  }))
  const beganMs = performance.now()
  const arrived = sandbox.call('arrive', arrivals)
  const samples: number[] = []
  const delivered = untilCounted(ledger, (now) => deliveredBy(now) === count)
  await Promise.all([arrived, sampleUntil(delivered, daemon, samples)])
  const seconds = (performance.now() - beganMs) / 1000
  await daemon.stop()
  return {
    'rss-idle': idle / 2 ** 20,
    'rss-load': Math.max(...samples) / 2 ** 20,
    'load-rate': count / seconds,
  }
}

async function sampleUntil(
  end: Promise<unknown>,
  daemon: Daemon,
  samples: number[],
): Promise<void> {
  let isOver = false
  const ended = end.finally(() => (isOver = true))
  do {
    samples.push((await daemon.use()).rssBytes)
    await Promise.race([ended, sleep(250)])
  } while (!isOver)
  await ended
}

export function seriesIn(body: string): number {
  return body.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length
}

/**
 * Bytes of all keys with their values. Of a few hundred kilobytes `dataBytes` says little: the
 * buffer of the connection that wrote them is as large, and goes when it goes.
 */
async function keyBytes(redis: Redis): Promise<number> {
  const keys = await redis.keys('*')
  const sizes = await Promise.all(keys.map((key) => redis.memory('USAGE', key, 'SAMPLES', 0)))
  return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)
}

/** An account of its own for each figure; what it is without a fingerprint does not count. */
export async function measureUids(rig: Rig): Promise<Figures> {
  // bytes do not depend on it, and a million fingerprints are a large file
  await rig.redis.config('SET', 'appendonly', 'no')
  await rig.redis.flushall()
  const figures: Figures = {}
  for (const count of [1_000, 10_000, 1_000_000]) {
    // few of them in several accounts, for an exact figure
    const accounts = Math.max(1, Math.round(20_000 / count))
    const names = Array.from({ length: accounts }, (_none, i) => `week-of-${count}-${i}`)
    const ledgers = await Promise.all(names.map((name) => openAccount(rig, name)))
    const before = await keyBytes(rig.redis)
    for (const ledger of ledgers) await writeMarks(ledger, count)
    figures[`uid-${count}`] = ((await keyBytes(rig.redis)) - before) / count / accounts
  }
  await rig.redis.config('SET', 'appendonly', 'yes')
  return figures
}

/** Everything that stays of an event that was delivered: record, content, fingerprints, indexes. */
export async function measureRecords(rig: Rig, plan: SizePlan): Promise<Figures> {
  const one = await settle(rig, plan, 1)
  const three = await settle(rig, plan, 3)
  return { 'record-1': one.whole, 'record-3': three.whole, 'record-3-expired': three.expired }
}

async function settle(
  rig: Rig,
  { records }: SizePlan,
  sinks: number,
): Promise<Record<'whole' | 'expired', number>> {
  // the first fingerprints of a week pay for their buckets
  const { sandbox, groupIds, daemon, ledger } = await startOne(rig, {
    feeds: 1,
    sinks,
    marks: 100_000,
  })
  const given = { groupIds }
  const bytesAfter = async (events: number): Promise<number> => {
    await untilCounted(ledger, (now) => deliveredBy(now) === events * sinks)
    await sleep(1_000)
    return dataBytes(rig.redis)
  }
  await sandbox.call('addEvents', records, given)
  const before = await bytesAfter(records)
  await sandbox.call('addEvents', records, given)
  const whole = await bytesAfter(2 * records)
  await daemon.stop()
  const stopped = await dataBytes(rig.redis)
  // what expiry does, at once
  const contents = await rig.redis.keys(ledger.key('pay', '*'))
  for (let i = 0; i < contents.length; i += 500) await rig.redis.del(contents.slice(i, i + 500))
  const content = (stopped - (await dataBytes(rig.redis))) / contents.length
  return { whole: (whole - before) / records, expired: (whole - before) / records - content }
}
