/** What the log says of polls: a line for each that brought something, however many pages it took. */
import { expect, test } from 'vitest'
import { createPollLog, type PollLog } from '../../../src/feeds/poll-run.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import type { PageCounts } from '../../../src/store/intake.ts'
import { aThreatEvent } from '../../support/events.ts'

const brand = { kind: 'feed', feed: { account: 'main', name: 'brand' } } as const
const rescan = { ...brand, kind: 'rescan' } as const
const staff = { kind: 'feed', feed: { account: 'main', name: 'staff' } } as const
type Polled = typeof brand | typeof rescan | typeof staff

interface Scene {
  log: PollLog
  /** A run of one page that ends with more to come, or not. */
  run: (of: Polled, counts: Partial<PageCounts>, hasMore?: boolean, severities?: string[]) => void
  pass: (ms: number) => void
  lines: Record<string, unknown>[]
}

function scene(): Scene {
  const lines: Record<string, unknown>[] = []
  const write = (line: string): void => {
    const { time: _time, ...fields } = JSON.parse(line) as Record<string, unknown>
    lines.push(fields)
  }
  let nowMs = 5_000
  const log = createPollLog(createLogger({ level: 'debug', destination: { write } }), {
    monotonic: () => nowMs,
  })
  const none = {
    fetched: 0,
    new: 0,
    duplicate: 0,
    quarantined: 0,
    baseline: 0,
    late: 0,
    ahead: 0,
    raised: 0,
  }
  return {
    log,
    run(of, counts, hasMore = false, severities = []) {
      log.begin(of)
      nowMs += 100
      log.addStage(of, 'fetch', 80.4)
      const newEvents = severities.map((severity) => ({
        event: aThreatEvent({ severity }),
        decisions: [],
        items: [],
        wantsDetail: false,
      }))
      log.add(of, { counts: { ...none, ...counts }, newEvents })
      log.end(of, hasMore)
    },
    pass: (ms) => (nowMs += ms),
    lines,
  }
}

test('a poll of several pages is one line with their sum and the worst severity', () => {
  const { run, lines } = scene()
  run(brand, { fetched: 50, new: 50 }, true, ['low', 'high'])
  run(brand, { fetched: 50, new: 48, duplicate: 2 }, true, ['medium'])
  run(brand, { fetched: 7, new: 6, quarantined: 1 })
  expect(lines).toEqual([
    {
      level: 'info',
      feed: 'brand',
      account: 'main',
      pages: 3,
      fetched: 107,
      new: 104,
      duplicate: 2,
      quarantined: 1,
      worst: 'high',
      ms: 300,
      stages: { wait: 59, fetch: 241 },
      msg: 'polled',
    },
  ])
})

test.each([
  ['fetched', 'debug'],
  ['duplicate', 'debug'],
  ['baseline', 'debug'],
  ['new', 'info'],
  ['quarantined', 'info'],
  ['raised', 'info'],
])('a poll where only %s is counted is told at %s', (name, level) => {
  const { run, lines } = scene()
  run(brand, { [name]: 1 })
  expect(lines).toMatchObject([{ level, [name]: 1 }])
})

test('a rescan is told as one', () => {
  const { run, lines } = scene()
  run({ ...brand, kind: 'rescan' }, { new: 1 })
  expect(lines).toMatchObject([{ msg: 'rescanned' }])
})

test('a run that read no page has no line', () => {
  const { log, lines } = scene()
  log.begin(brand)
  log.end(brand, false)
  expect(lines).toEqual([])
})
