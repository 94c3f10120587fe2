/** Commits of ten new events each, one after the other as the fence demands, on a ledger in use. */
import type { ThreatEvent } from '../../src/events/threat-event.ts'
import { sinkName } from './daemons.ts'
import { writeMarks } from './marks.ts'
import { createPageSource, pageSize, sampleEvents } from './pages.ts'
import type { Plan } from './plan.ts'
import type { Rig } from './rig.ts'
import type { Row } from './row.ts'

const warmUpPages = 20

export async function measureIntake(rig: Rig, plan: Plan): Promise<Row[]> {
  const samples = await sampleEvents(rig.fetchLoop, 100)
  const one = await intakeWith(rig, plan, samples, 1)
  // a horizon of 90 days is 13 weeks
  const thirteen = await intakeWith(rig, plan, samples, 13)
  return [one, thirteen]
}

async function intakeWith(
  rig: Rig,
  { marksPerWeek, intakeSeconds }: Plan,
  samples: ThreatEvent[],
  weeks: number,
): Promise<Row> {
  const book = await rig.freshBook()
  for (let ago = weeks - 1; ago >= 0; ago -= 1) await writeMarks(book, marksPerWeek, ago)
  const source = createPageSource(book, samples, [sinkName])
  for (let page = 0; page < warmUpPages; page += 1) await source.takeIn()

  const stop = await rig.stopwatch.start()
  const endMs = performance.now() + 1000 * intakeSeconds
  let commits = 0
  for (; performance.now() < endMs; commits += 1) await source.takeIn()
  const span = await stop()
  const events = commits * pageSize
  return {
    key: `intake-${weeks}`,
    label: `marks of ${weeks} week${weeks === 1 ? '' : 's'}`,
    figures: {
      events,
      eventsPerSecond: events / span.seconds,
      commitsPerSecond: commits / span.seconds,
    },
    span,
  }
}
