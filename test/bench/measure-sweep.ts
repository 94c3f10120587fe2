/** What it costs to read a window again of which everything is known: by a sweep, and by an audit. */
import type { PolledFeed } from '../../src/feeds/polled-feed.ts'
import type { Plan } from './plan.ts'
import { createReader, type Reader, type Reading } from './reader.ts'
import type { Rig } from './rig.ts'
import type { Row } from './row.ts'

/** The service allows one search a second (service description, Limits). */
const requestsPerHour = 3_600

const backMs = 7 * 86_400_000

/** The window grows on one ledger: what came since the last round, the tail reads first. */
export async function measureSweep(rig: Rig, { windows }: Plan): Promise<Row[]> {
  const reader = createReader(rig.config())
  const [tail] = reader.feeds
  if (!tail) throw new Error('there is no feed to sweep')
  // due as soon as the tail has come to its end
  const feed: PolledFeed = { ...tail, sweep: { everyMs: 1, backMs } }
  reader.use(await rig.freshBook())
  try {
    const rows: Row[] = []
    let there = 0
    for (const events of windows) {
      await rig.sandbox.addEvents(events - there)
      there = events
      await reader.toEnd(feed, 'feed')
      // the first one reads what stood below the start, too
      if (rows.length === 0) await reader.toEnd(feed, 'sweep')
      const sweep = { kind: 'sweep', events, read: () => reader.toEnd(feed, 'sweep') }
      const audit = { kind: 'audit', events, read: () => auditAll(reader, feed) }
      for (const again of [sweep, audit]) rows.push(await readAgain(rig, again))
    }
    return rows
  } finally {
    await reader.close()
  }
}

interface Again {
  kind: string
  events: number
  read: () => Promise<Reading>
}

async function readAgain({ stopwatch }: Rig, { kind, events, read }: Again): Promise<Row> {
  const stop = await stopwatch.start()
  const { pages, items } = await read()
  const span = await stop()
  if (items !== events) throw new Error(`the ${kind} of ${events} events read ${items}`)
  const eventsPerSecond = events / span.seconds
  return {
    key: `${kind}-${events}`,
    label: `${kind} of ${events.toLocaleString('en')} known events`,
    figures: { events, eventsPerSecond, pages, shareOfBudget: pages / requestsPerHour },
    span,
  }
}

/** Throws where the ledger misses something: then it was no window of known events. */
async function auditAll(reader: Reader, feed: PolledFeed): Promise<Reading> {
  const { pages, shown, accounted } = await reader.audit(feed, backMs)
  if (accounted !== shown) throw new Error(`${accounted} of ${shown} events are in the ledger`)
  return { pages, items: shown }
}
