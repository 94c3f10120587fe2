import { spawnSync } from 'node:child_process'
import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock, withTimeout } from '../../../src/lib/clock.ts'

const clockModule = new URL('../../../src/lib/clock.ts', import.meta.url).href

/** Whether a promise has settled once everything that was due has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  void promise.then(() => (settled = true))
  await vi.advanceTimersByTimeAsync(0)
  return settled
}

/** Spies go first: one that is restored later puts the fake timer back that it was set upon. */
function useRealTimers(): void {
  vi.restoreAllMocks()
  vi.useRealTimers()
}

describe('sleep', () => {
  afterEach(useRealTimers)

  test('ends when its time is over, not before', async () => {
    vi.useFakeTimers()
    const sleep = systemClock.sleep(5000)
    await vi.advanceTimersByTimeAsync(4999)
    expect(await isSettled(sleep)).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await isSettled(sleep)).toBe(true)
  })

  test('ends at once and without error when its signal aborts, and leaves nothing behind', async () => {
    vi.useFakeTimers()
    const stopping = new AbortController()
    const removed = vi.spyOn(stopping.signal, 'removeEventListener')
    const sleep = systemClock.sleep(60_000, stopping.signal)
    stopping.abort()
    await expect(sleep).resolves.toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
    expect(removed).toHaveBeenCalledOnce()
  })

  test('does not begin under a signal that is aborted already', async () => {
    vi.useFakeTimers()
    await systemClock.sleep(60_000, AbortSignal.abort())
    expect(vi.getTimerCount()).toBe(0)
  })

  test('leaves no listener on a signal that outlives it', async () => {
    vi.useFakeTimers()
    const { signal } = new AbortController()
    const added = vi.spyOn(signal, 'addEventListener')
    const removed = vi.spyOn(signal, 'removeEventListener')
    const sleep = systemClock.sleep(10, signal)
    await vi.advanceTimersByTimeAsync(10)
    await sleep
    expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(
      added.mock.calls.map(([, listener]) => listener),
    )
  })

  test('of nothing, or of less, still lets others run', async () => {
    vi.useFakeTimers()
    for (const ms of [0, -5]) {
      const sleep = systemClock.sleep(ms)
      expect(vi.getTimerCount()).toBe(1)
      await vi.advanceTimersByTimeAsync(1)
      await sleep
    }
  })

  test('lasts longer than the longest timer of Node', async () => {
    vi.useFakeTimers()
    const longest = 2 ** 31 - 1
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const sleep = systemClock.sleep(longest + 5000)
    await vi.advanceTimersByTimeAsync(longest + 4999)
    expect(await isSettled(sleep)).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await isSettled(sleep)).toBe(true)
    expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([longest, 5000])
  })
})

describe('withTimeout', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(useRealTimers)

  function waitForever(signal: AbortSignal): Promise<never> {
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
  }

  test('aborts when a parent does, with its reason', async () => {
    const parent = new AbortController()
    const work = withTimeout(60_000, [undefined, parent.signal], waitForever)
    parent.abort(new Error('stopping'))
    await expect(work).rejects.toEqual(new Error('stopping'))
  })

  test('begins aborted where a parent is aborted', async () => {
    const parents = [new AbortController().signal, AbortSignal.abort(new Error('stopping'))]
    const own = await withTimeout(60_000, parents, (signal) => Promise.resolve(signal))
    expect(own.reason).toEqual(new Error('stopping'))
  })

  test.each([
    [20, 20],
    [0.2, 1],
    [2 ** 33, 2 ** 31 - 1],
  ])('of %d ms aborts after %d ms, not before', async (ms, afterMs) => {
    const failed = withTimeout(ms, [], waitForever).catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(afterMs - 1)
    expect(vi.getTimerCount()).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(await failed).toMatchObject({ name: 'TimeoutError' })
  })

  test.each([0, -3.7])('of %d ms aborts at once', async (ms) => {
    const failed = withTimeout(ms, [], waitForever).catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(0)
    expect(await failed).toMatchObject({ name: 'TimeoutError' })
  })

  test.each([
    ['resolved', () => Promise.resolve()],
    ['failed', () => Promise.reject(new Error('failed'))],
  ])('leaves nothing behind once its work has %s', async (_how, end) => {
    const parent = new AbortController()
    let own: AbortSignal | undefined
    const work = withTimeout(60_000, [parent.signal], (signal) => {
      own = signal
      return end()
    })
    await work.catch(() => undefined)
    expect(vi.getTimerCount()).toBe(0)
    expect(getEventListeners(parent.signal, 'abort')).toEqual([])
    parent.abort()
    expect(own?.aborted).toBe(false)
  })

  test('does not keep the process alive', () => {
    const program = `import { withTimeout } from '${clockModule}'; globalThis.kept = withTimeout(60000, [], () => new Promise(() => {}))`
    const { status, error } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      timeout: 45_000,
    })
    expect({ status, error }).toEqual({ status: 0, error: undefined })
  })
})
