import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { secretFromText } from '../../src/lib/config/secret.ts'
import type { Sink } from '../../src/sinks/sink.ts'
import { createSlackSink } from '../../src/sinks/slack/slack-sink.ts'

/** Closed after the test. */
export function aSlackSink(url: string, allowPrivate = true): Sink {
  const sink = createSlackSink(
    {
      name: 'soc',
      type: 'slack',
      url: secretFromText(url),
      limitPerSecond: 1,
      allowPrivate,
      digest: undefined,
      reveal: false,
    },
    { logger: createLogger({ level: 'silent' }), clock: systemClock },
  )
  onTestFinished(() => sink.close())
  return sink
}
