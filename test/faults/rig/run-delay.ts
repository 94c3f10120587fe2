/**
 * How soon events are told, in real time and with production's times: what comes late, and what is new while
 * twenty feeds are read again after their filter changed.
 */
import { createApp, type App } from '../../../src/daemon/daemon.ts'
import { parseConfig } from '../../../src/config/load.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { silent } from '../../support/ledger.ts'
import { startRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { spreadInWords } from './in-words.ts'
import { spreadOf } from './run-chaos.ts'

export interface DelayFigures {
  /** From the moment an event became visible, 10 s late, until it was told, ms; one for each. */
  lateMs: Record<'by match time' | 'by the ladder', number[]>
  /** From the moment a new critical event was there until it was told, ms; one for each feed. */
  newMs: number[]
  /** What of the old events was told meanwhile, other than in summaries. */
  oldAlone: number
  oldInSummaries: number
}

const dayMs = 86_400_000
const latenessMs = 10_000
/** What is promised of an event that is late by seconds, and of a new one while all is read again. */
const promisedMs = { late: 360_000, new: 120_000 }
/** Beyond the promise, so that a miss has a figure. */
const patienceMs = 900_000

interface Stage {
  sandbox: Sandbox
  /** When each uid was told first, wall clock ms, and whether in a message with others. */
  told: Map<string, { atMs: number; isSummary: boolean }>
  start: (feeds: string) => Promise<App>
}

export async function runDelay(): Promise<DelayFigures> {
  const [matched, laddered, reread] = await Promise.all([
    onStage({ materializedFilter: 'honoured' }, tellLate),
    onStage({ materializedFilter: 'refused' }, tellLate),
    onStage({ groups: twentyGroups }, tellNew),
  ])
  return { lateMs: { 'by match time': matched, 'by the ladder': laddered }, ...reread }
}

export function renderDelay({ lateMs, newMs, oldAlone, oldInSummaries }: DelayFigures): string {
  return `${[
    'delay: at one search a second, with the times that ship',
    ...Object.entries(lateMs).map(
      ([way, ms]) => `  an event late by 10 s, ${way}: told after ${spreadInWords(spreadOf(ms))}`,
    ),
    `  a new event while 20 feeds are read again: told after ${spreadInWords(spreadOf(newMs))}`,
    `  old events meanwhile: told in ${oldInSummaries} summaries, and ${oldAlone} by themselves`,
  ].join('\n')}\n`
}

export function delayComplaints({ lateMs, newMs, oldAlone }: DelayFigures): string[] {
  const late = Object.values(lateMs).flat()
  return [
    ...(late.some((ms) => ms > promisedMs.late) ? ['a late event was told after six minutes'] : []),
    ...(newMs.some((ms) => ms > promisedMs.new) ? ['a new event was told after 120 s'] : []),
    ...(oldAlone > 0 ? [`${oldAlone} old events were told by themselves`] : []),
  ]
}

/** One event after another that a later one had overtaken when it became visible. */
async function tellLate({ sandbox, told, start }: Stage): Promise<number[]> {
  const app = await start('brand: {type: events, identifier_group: 1042, detail: []}')
  try {
    const delays: number[] = []
    for (let round = 0; round < 4; round += 1) {
      const punctual = sandbox.addEvent(plain)
      await until('the punctual event is told', () => told.has(punctual.uid), patienceMs)
      const createdAtMs = Math.min(punctual.createdAtMs, Date.now()) - latenessMs
      const late = sandbox.addEvent({ ...plain, createdAtMs })
      const visibleMs = Date.now()
      await until('the late event is told', () => told.has(late.uid), patienceMs)
      delays.push(told.get(late.uid)!.atMs - visibleMs)
    }
    return delays
  } finally {
    await app.stop()
  }
}

const plain = { severity: 'high', ignoredAtMs: null, groupIds: [1042] }

const twentyGroups = Array.from({ length: 20 }, (_, i) => ({
  id: 2000 + i,
  name: `group ${i}`,
  tenantId: 42,
  identifiers: [{ id: 3000 + i, name: `brand-${i}.example` }],
}))

const perGroup = 5_000

/** What is newer than this may be the tail's, which begins a little before the newest event. */
const nearMs = 1_800_000

async function tellNew({ sandbox, told, start }: Stage): Promise<Omit<DelayFigures, 'lateMs'>> {
  const nowMs = Date.now()
  const old = new Set<string>()
  for (const { id } of twentyGroups) {
    for (let i = 0; i < perGroup; i += 1) {
      const createdAtMs = nowMs - 7 * dayMs + (i + 0.5) * ((7 * dayMs) / perGroup)
      const given = { createdAtMs, arrivedAtMs: createdAtMs, matchedAtMs: createdAtMs }
      const { uid } = sandbox.addEvent({ ...plain, ...given, groupIds: [id] })
      if (createdAtMs < nowMs - nearMs) old.add(uid)
    }
  }
  const feedsWith = (filters: string): string =>
    twentyGroups
      .map(({ id }) => `g${id}: {type: events, identifier_group: ${id}, detail: [], ${filters}}`)
      .join('\n  ')
  const before = await start(feedsWith('start: 7d, filters: {severity: [critical]}'))
  const first = twentyGroups.map(({ id }) => criticalOf(sandbox, id))
  await until('the feeds are read', () => first.every(({ uid }) => told.has(uid)), patienceMs)
  await before.stop()
  const after = await start(feedsWith('start: 7d, filters: {severity: [critical, high]}'))
  try {
    const beganMs = Date.now()
    const fresh = twentyGroups.map(({ id }) => criticalOf(sandbox, id))
    await until(
      'the new events are told',
      () => fresh.every(({ uid }) => told.has(uid)),
      patienceMs,
    )
    await until('old events are told', () => [...old].some((uid) => told.has(uid)), patienceMs)
    const ways = [...told].filter(([uid]) => old.has(uid)).map(([, { isSummary }]) => isSummary)
    return {
      newMs: fresh.map(({ uid }) => told.get(uid)!.atMs - beganMs),
      oldAlone: ways.filter((isSummary) => !isSummary).length,
      oldInSummaries: ways.filter(Boolean).length,
    }
  } finally {
    await after.stop()
  }
}

function criticalOf(sandbox: Sandbox, groupId: number): { uid: string } {
  return sandbox.addEvent({ ...plain, severity: 'critical', groupIds: [groupId] })
}

/** A Redis and a service of its own, whose limit is one search a second, as the real one's. */
async function onStage<T>(options: SandboxOptions, play: (stage: Stage) => Promise<T>): Promise<T> {
  const redis = await startRedis()
  const organizations = [{ id: 7, keys: [{ key: 'fw_one', tenants: [42] }] }]
  const sandbox = await startSandbox({ organizations, keep: 10, ...options })
  const told: Stage['told'] = new Map()
  sandbox.onReceived(({ uids, atMs }) => {
    const isSummary = uids.length > 1
    for (const uid of uids) if (!told.has(uid)) told.set(uid, { atMs, isSummary })
  })
  const start = async (feeds: string): Promise<App> => {
    const yaml = `
redis: {url: '${redis.url}'}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_one}}
feeds:
  ${feeds}
sinks: {soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true}}
route: {sinks: [soc]}
`
    const loaded = parseConfig(yaml, { file: 'delay.yaml', env: {} })
    const app = createApp({ ...loaded, version: 'test', logger: silent })
    await app.start()
    return app
  }
  try {
    return await play({ sandbox, told, start })
  } finally {
    await sandbox.close()
    await redis.stop()
  }
}
