/** Bytes that things take in Redis: what is there with them, less what is there without. */
import { randomBytes, randomUUID } from 'node:crypto'
import type { ThreatEvent } from '../../src/events/threat-event.ts'
import { beginAttempt, settleAttempt } from '../support/attempts.ts'
import type { Book } from '../../src/ledger/book.ts'
import { sinkName } from './daemons.ts'
import { writeMarks } from './marks.ts'
import { createPageSource, pageSize, sampleEvents } from './pages.ts'
import { rememberedUids, type Plan } from './plan.ts'
import type { Rig } from './rig.ts'
import type { Row } from './row.ts'
import { dataBytes } from './stopwatch.ts'

const three = [sinkName, 'soc', 'oncall:4f1d2a90c3b7']

export async function measureMemory(rig: Rig, plan: Plan): Promise<Row[]> {
  // bytes do not depend on it, and a million marks are a large file
  await rig.redis.config('SET', 'appendonly', 'no')
  const samples = await sampleEvents(rig.fetchLoop, 100)
  return [
    ...(await ofMarks(rig)),
    ...(await ofSettledRecords(rig, plan, samples)),
    await ofOneDestination(rig, plan, samples),
    await ofPendingItems(rig, plan, samples),
  ]
}

/** A uid that goes nowhere is one mark; each destination adds one. All in the week that began with it. */
async function ofMarks(rig: Rig): Promise<Row[]> {
  const book = await rig.freshBook()
  const rows: Row[] = []
  const before = await dataBytes(rig.redis)
  for (const [key, label] of [
    ['uid', `a remembered uid: one mark, ${rememberedUids.toLocaleString('en')} of them`],
    ['uid-claimed', '  and the mark of one destination for each'],
  ] as const) {
    const stop = await rig.stopwatch.start()
    await writeMarks(book, rememberedUids)
    const bytes = ((await dataBytes(rig.redis)) - before) / rememberedUids
    rows.push({ key, label, figures: { bytes }, span: await stop() })
  }
  return rows
}

async function ofSettledRecords(
  rig: Rig,
  { records }: Plan,
  samples: ThreatEvent[],
): Promise<Row[]> {
  const stop = await rig.stopwatch.start()
  const book = await ledgerInUse(rig)
  const ids = await settle(book, { samples, count: records, destinations: three })
  const whole = await dataBytes(rig.redis)
  await remove(book, 'pay', ids)
  const withoutPayload = await dataBytes(rig.redis)
  await remove(book, 'rec', ids)
  const nothing = await dataBytes(rig.redis)
  const span = await stop()
  function row(key: string, label: string, bytes: number): Row {
    return { key, label, figures: keptFigures(bytes / ids.length), span }
  }
  return [
    row('settled', 'a settled record of 3 destinations', whole - nothing),
    row('settled-expired', '  after its payload has expired', withoutPayload - nothing),
  ]
}

async function ofOneDestination(rig: Rig, { records }: Plan, samples: ThreatEvent[]): Promise<Row> {
  const stop = await rig.stopwatch.start()
  const book = await ledgerInUse(rig)
  const ids = await settle(book, { samples, count: records, destinations: [sinkName] })
  const whole = await dataBytes(rig.redis)
  for (const kind of ['pay', 'rec'] as const) await remove(book, kind, ids)
  const figures = keptFigures((whole - (await dataBytes(rig.redis))) / ids.length)
  return {
    key: 'settled-1',
    label: 'a settled record of 1 destination',
    figures,
    span: await stop(),
  }
}

/** How far back the default of `retention.max_bytes` reaches with events of so many bytes. */
function keptFigures(bytes: number): Row['figures'] {
  const events = 2 ** 30 / bytes
  return { bytes, daysAtOne: events / 86_400, hoursAtForty: events / 40 / 3_600 }
}

interface Settling {
  samples: ThreatEvent[]
  count: number
  destinations: string[]
}

/** Takes events in and delivers each to its destinations; gives their record ids. */
async function settle(book: Book, { samples, count, destinations }: Settling): Promise<string[]> {
  const source = createPageSource(book, samples, destinations)
  const replica = `${process.pid}-${randomBytes(3).toString('hex')}`
  const ids: string[] = []
  while (ids.length < count) {
    const { uids, made } = await source.takeIn()
    ids.push(...uids.map((uid) => book.digests.recordId(uid)))
    for (const { ref } of made) {
      const token = randomUUID()
      await beginAttempt(book, ref, token, 30_000)
      const result = { outcome: 'delivered', answer: 'HTTP 204' } as const
      await settleAttempt(book, { ref, token, replica }, result)
    }
  }
  return ids
}

/** What expiry does, at once. */
async function remove(book: Book, kind: 'pay' | 'rec', ids: string[]): Promise<void> {
  for (let i = 0; i < ids.length; i += 500) {
    await book.redis.del(ids.slice(i, i + 500).map((id) => book.key(kind, id)))
  }
}

/** What a destination more adds to an event that waits: its part of the record, its time, its mark. */
async function ofPendingItems(rig: Rig, { records }: Plan, samples: ThreatEvent[]): Promise<Row> {
  const stop = await rig.stopwatch.start()
  const single = await waitingEvents(rig, samples, [sinkName], records)
  const double = await waitingEvents(rig, samples, [sinkName, 'soc'], records)
  const figures = { bytes: double - single }
  return { key: 'pending', label: 'a pending item', figures, span: await stop() }
}

/** Bytes of an event for so many destinations, none of which has it yet. */
async function waitingEvents(
  rig: Rig,
  samples: ThreatEvent[],
  destinations: string[],
  count: number,
): Promise<number> {
  const book = await ledgerInUse(rig)
  const source = createPageSource(book, samples, destinations)
  const before = await dataBytes(rig.redis)
  for (let i = 0; i < count; i += pageSize) await source.takeIn()
  return ((await dataBytes(rig.redis)) - before) / count
}

/** Every bucket of marks is there: the first mark in one pays for the key. */
async function ledgerInUse(rig: Rig): Promise<Book> {
  const book = await rig.freshBook()
  await writeMarks(book, 100_000)
  return book
}
