import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Clock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import { createLoop, type Loop, type LoopOptions } from '../../../src/lib/loop.ts'

/** A clock that a test moves: a sleep ends when `pass` has gone beyond it. */
function aClock(): Clock & { pass(ms: number): Promise<void> } {
  let nowMs = 1_000_000
  const sleepers = new Set<{ untilMs: number; wake: () => void }>()
  return {
    now: () => nowMs,
    monotonic: () => nowMs,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        const sleeper = { untilMs: nowMs + ms, wake: resolve }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => resolve(), { once: true })
        if (signal?.aborted) resolve()
      }),
    async pass(ms) {
      nowMs += ms
      for (const sleeper of sleepers) if (sleeper.untilMs <= nowMs) sleeper.wake()
      await settle()
    },
  }
}

/** Lets everything that needs no time run. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

const running: Loop[] = []

afterEach(async () => {
  await Promise.all(running.splice(0).map((loop) => loop.stop()))
})

function aLoop(overrides: Partial<LoopOptions> & Pick<LoopOptions, 'tick'>): Loop {
  const logger = createLogger({ level: 'silent' })
  const loop = createLoop({ name: 'test', everyMs: 1000, logger, ...overrides })
  running.push(loop)
  return loop
}

describe('the rhythm', () => {
  test('ticks at the start and again each time the interval has passed', async () => {
    const clock = aClock()
    const tick = vi.fn<LoopOptions['tick']>(async () => {})
    aLoop({ clock, tick }).start()
    await settle()
    expect(tick).toHaveBeenCalledTimes(1)
    await clock.pass(999)
    expect(tick).toHaveBeenCalledTimes(1)
    await clock.pass(1)
    expect(tick).toHaveBeenCalledTimes(2)
  })

  test('never ticks twice at once, however long a tick takes and however often it is started', async () => {
    const clock = aClock()
    const ends: (() => void)[] = []
    const tick = vi.fn<LoopOptions['tick']>(
      () => new Promise<void>((resolve) => ends.push(resolve)),
    )
    const loop = aLoop({ clock, tick })
    loop.start()
    loop.start()
    await clock.pass(10_000)
    expect(tick).toHaveBeenCalledTimes(1)
    ends[0]!()
    await settle()
    await clock.pass(1000)
    expect(tick).toHaveBeenCalledTimes(2)
    ends[1]!()
  })

  test('goes on after a tick that throws or rejects, and logs each once', async () => {
    const clock = aClock()
    const lines: string[] = []
    const logger = createLogger({ destination: { write: (line) => void lines.push(line) } })
    const tick = vi
      .fn<LoopOptions['tick']>(async () => {})
      .mockImplementationOnce(() => {
        throw new Error('thrown')
      })
      .mockRejectedValueOnce(new Error('rejected'))
    aLoop({ clock, logger, name: 'reconciler', tick }).start()
    await settle()
    await clock.pass(1000)
    await clock.pass(1000)
    expect(tick).toHaveBeenCalledTimes(3)
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'warn', loop: 'reconciler', err: { message: 'thrown' } },
      { level: 'warn', loop: 'reconciler', err: { message: 'rejected' } },
    ])
  })
})

describe('stopping', () => {
  test('wakes a sleeping loop, which ticks no more', async () => {
    const clock = aClock()
    const tick = vi.fn<LoopOptions['tick']>(async () => {})
    const loop = aLoop({ clock, tick })
    loop.start()
    await settle()
    await loop.stop()
    await clock.pass(60_000)
    expect(tick).toHaveBeenCalledTimes(1)
  })

  test('tells the tick through its signal and waits for its end; being cut short is no failure', async () => {
    const lines: string[] = []
    const logger = createLogger({ destination: { write: (line) => void lines.push(line) } })
    let hasEnded = false
    const loop = aLoop({
      logger,
      tick: async (signal) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
        await settle()
        hasEnded = true
        throw new Error('cut short')
      },
    })
    loop.start()
    await loop.stop()
    expect(hasEnded).toBe(true)
    expect(lines).toEqual([])
  })

  test('a loop that never started stops at once, and does not start afterwards', async () => {
    const tick = vi.fn<LoopOptions['tick']>(async () => {})
    const loop = aLoop({ tick })
    await loop.stop()
    loop.start()
    await settle()
    expect(tick).not.toHaveBeenCalled()
  })
})

describe('progress', () => {
  test('is the end of the last tick, failed or not', async () => {
    const clock = aClock()
    const tick = vi
      .fn<LoopOptions['tick']>(async () => {})
      .mockRejectedValueOnce(new Error('first'))
    const loop = aLoop({ clock, tick })
    loop.start()
    await settle()
    expect(loop.lastProgressMs()).toBe(clock.now())
    await clock.pass(999)
    expect(loop.lastProgressMs()).toBe(clock.now() - 999)
    await clock.pass(1)
    expect(loop.lastProgressMs()).toBe(clock.now())
  })

  test('counts from the start, not from when the loop was built', async () => {
    const clock = aClock()
    const loop = aLoop({ clock, tick: () => settle() })
    await clock.pass(120_000)
    loop.start()
    expect(loop.lastProgressMs()).toBe(clock.now())
  })

  test('stands still while a tick hangs, and moves when the tick says that it is alive', async () => {
    const clock = aClock()
    let sayAlive = (): void => {}
    let end = (): void => {}
    const loop = aLoop({
      clock,
      tick: (_signal, alive) => {
        sayAlive = alive
        return new Promise((resolve) => (end = resolve))
      },
    })
    loop.start()
    await clock.pass(61_000)
    expect(clock.now() - loop.lastProgressMs()).toBe(61_000)
    sayAlive()
    expect(clock.now() - loop.lastProgressMs()).toBe(0)
    end()
  })
})
