/**
 * The end of a demo, in order: what arrived is fetched, then nothing more is polled, groups go out when
 * their time comes and the digest, if it has anything to tell, once nothing else is on its way to its
 * reader. What is not out in time
 * stays pending and goes out in the next run.
 */
import { systemClock } from '../../runtime/clock.ts'
import { counted } from '../words.ts'
import { digestSink } from './demo-config.ts'
import { sumOf } from './demo-evidence.ts'
import type { DemoStage } from './demo-stage.ts'
import type { DemoReading, DemoView } from './demo-view.ts'

/** How often the view is renewed, ms. */
export const refreshMs = 200

/** Nothing new arrives any more at the service. */
export async function endRun(
  stage: Pick<DemoStage, 'read' | 'hasRead' | 'pausePolling' | 'endDigest'>,
  view: Pick<DemoView, 'update'>,
  patienceMs: number,
): Promise<void> {
  const beganMs = systemClock.now()
  const elapsedMs = createStopwatch()

  /** The reading of which `isReached` is true; undefined: none was within so many ms of the end's begin. */
  async function within(
    atMostMs: number,
    isReached: (now: Reading) => boolean,
  ): Promise<Reading | undefined> {
    for (;;) {
      const reading = await stage.read()
      const left = sumOf(reading.sinks, ({ collected, pending }) => collected + pending)
      view.update({ stage: `ends; ${counted(left, 'item')} left to deliver`, ...reading })
      if (isReached(reading)) return reading
      if (elapsedMs() > atMostMs) return undefined
      await systemClock.sleep(refreshMs)
    }
  }

  await within(patienceMs / 2, (reading) => stage.hasRead(reading, beganMs))
  await stage.pausePolling()
  const ready = await within(patienceMs, ({ sinks }) =>
    sinks.every(({ name, pending }) => name !== digestSink || pending === 0),
  )
  const hasDigest = ready?.sinks.some(({ name, collected }) => name === digestSink && collected > 0)
  if (hasDigest === true) await stage.endDigest()
  await within(patienceMs, ({ sinks }) =>
    sinks.every(({ collected, pending }) => collected + pending === 0),
  )
}

function createStopwatch(): () => number {
  const startMs = systemClock.monotonic()
  return () => systemClock.monotonic() - startMs
}

type Reading = Omit<DemoReading, 'stage'>
