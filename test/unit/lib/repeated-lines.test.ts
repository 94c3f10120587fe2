import { describe, expect, test } from 'vitest'
import { createLogger, type Logger } from '../../../src/lib/logger.ts'

interface Line {
  level: string
  msg: string
  feed?: string
  feeds?: string[]
  others?: number
  times?: number
  err?: { message: string }
}

/** A logger whose minutes a test lets pass, and the lines that it wrote. */
function aLogger(): { logger: Logger; lines: Line[]; pass: (ms: number) => void } {
  let nowMs = 1_000
  const lines: Line[] = []
  const logger = createLogger({
    destination: { write: (line) => void lines.push(JSON.parse(line) as Line) },
    clock: { monotonic: () => nowMs },
  })
  return {
    logger,
    lines,
    pass(ms) {
      nowMs += ms
      logger.repeated.writeDue()
    },
  }
}

function fail(logger: Logger, feed: string, cause = 'unavailable 503'): void {
  const fields = { feed, err: new Error(`no answer for ${feed}`) }
  logger.repeated.warn(fields, 'poll failed', { cause, list: 'feeds', name: feed })
}

describe('lines that repeat', () => {
  test('an outage of 5,000 feeds for 2.5 minutes is four lines, and not one failure is missing in their sum', () => {
    const { logger, lines, pass } = aLogger()
    let failures = 0
    for (let second = 0; second < 150; second += 1) {
      for (let feed = second % 30; feed < 5_000; feed += 30) {
        fail(logger, `feed-${feed}`)
        failures += 1
      }
      pass(1_000)
    }
    logger.repeated.writeAll()
    expect(lines).toHaveLength(4)
    const sum = lines.reduce((total, { times = 1 }) => total + times, 0)
    expect(sum).toBe(failures)
  })

  test('the first of a cause is written at once and whole', () => {
    const { logger, lines } = aLogger()
    fail(logger, 'brand')
    expect(lines).toMatchObject([
      { level: 'warn', msg: 'poll failed', feed: 'brand', err: { message: 'no answer for brand' } },
    ])
  })

  test('after a quiet minute the next failure is told at once again', () => {
    const { logger, lines, pass } = aLogger()
    fail(logger, 'a')
    pass(60_000)
    fail(logger, 'b')
    expect(lines.map(({ feed }) => feed)).toEqual(['a', 'b'])
  })

  test('what was counted when the process ends is written', () => {
    const { logger, lines } = aLogger()
    fail(logger, 'a')
    fail(logger, 'b')
    logger.repeated.writeAll()
    logger.repeated.writeAll()
    expect(lines.map(({ times }) => times)).toEqual([undefined, 1])
  })
})
