/** Events a second through the daemon, and through the least that any client must do. */
import { setTimeout as sleep } from 'node:timers/promises'
import { readAccounting, type Accounting } from '../../src/ledger/accounting.ts'
import type { Book } from '../../src/ledger/book.ts'
import { daemonWithoutSending, sinkName, wholeDaemon, type Daemon } from './daemons.ts'
import type { Plan } from './plan.ts'
import type { Rig } from './rig.ts'
import type { Row } from './row.ts'
import type { Span } from './stopwatch.ts'

/** A machine that needs longer than this is too slow, or something stands still. */
const roundDeadlineMs = 45_000

export async function measureDelivery(rig: Rig, plan: Plan): Promise<Row[]> {
  await rig.sandbox.addEvents(plan.warmUpEvents)
  const { seconds } = await deliverAll(rig, wholeDaemon(rig.config()), plan.warmUpEvents)
  const possible = Math.round((plan.warmUpEvents / seconds) * plan.roundSeconds)
  const events = Math.min(Math.max(possible, 2 * plan.warmUpEvents), plan.mostEvents)
  await rig.sandbox.addEvents(events - plan.warmUpEvents)

  const ceiling = await fetchOnly(rig, plan.fetchSeconds)
  const perSecond = ceiling.events / ceiling.span.seconds
  function row(key: string, label: string, span: Span, count = events): Row {
    const eventsPerSecond = count / span.seconds
    const ofCeiling = eventsPerSecond / perSecond
    return { key, label, figures: { events: count, eventsPerSecond, ofCeiling }, span }
  }
  const single = await deliverAll(rig, wholeDaemon(rig.config()), events)
  const batched = await deliverAll(
    rig,
    wholeDaemon(rig.config({ batch: '{max: 50, wait: 250ms}' })),
    events,
  )
  const unsent = await deliverAll(rig, daemonWithoutSending(rig.config()), events)
  return [
    row('fetch', 'bare fetch loop: the ceiling', ceiling.span, ceiling.events),
    row('webhook-single', 'sandbox to webhook, one event each', single),
    row('webhook-batched', 'sandbox to webhook, up to 50 a request', batched),
    row('no-send', 'sandbox to a sink that costs nothing', unsent),
  ]
}

/** The same pages over and over, for so long. */
async function fetchOnly(
  { fetchLoop, stopwatch }: Rig,
  seconds: number,
): Promise<{ events: number; span: Span }> {
  const stop = await stopwatch.start()
  const endMs = performance.now() + 1000 * seconds
  let events = 0
  while (performance.now() < endMs) {
    for await (const items of fetchLoop.walk()) {
      events += items.length
      if (performance.now() >= endMs) break
    }
  }
  return { events, span: await stop() }
}

/** From the first page taken in to the last event delivered. */
async function deliverAll(rig: Rig, daemon: Daemon, events: number): Promise<Span> {
  const book = await rig.freshBook()
  try {
    await daemon.start()
    await until(book, ({ feeds }) => feeds['all'] !== undefined)
    const stop = await rig.stopwatch.start()
    await until(book, ({ sinks }) => sinks[sinkName]?.delivered === events)
    return await stop()
  } finally {
    await daemon.stop()
  }
}

async function until(book: Book, holds: (now: Accounting) => boolean): Promise<void> {
  const endMs = performance.now() + roundDeadlineMs
  for (;;) {
    const now = await readAccounting(book)
    if (holds(now)) return
    if (performance.now() > endMs) {
      throw new Error(`not done within ${roundDeadlineMs} ms: ${JSON.stringify(now)}`)
    }
    await sleep(10)
  }
}
