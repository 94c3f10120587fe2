import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Waits for a condition, looking every 50 ms; says what was waited for when the time is up. The
 * time guards against a wait without end alone: no machine is so slow.
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  timeoutMs = 240_000,
): Promise<void> {
  const endMs = Date.now() + timeoutMs
  while (!(await holds())) {
    if (Date.now() > endMs) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`)
    await sleep(50)
  }
}
