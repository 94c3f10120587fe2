/** One holder at a time over all replicas; no promise, only less work: what it guards is safe to do twice. */
import type { Redis } from './connection.ts'
import { runScript } from './scripts.ts'

/** Whether `holder` has it for so long from now: nobody else did. ms. */
export async function holdLease(
  redis: Redis,
  name: string,
  { holder, ms }: { holder: string; ms: number },
): Promise<boolean> {
  return (await runScript(redis, 'hold-lease', [name], [holder, ms])) === 1
}

/** Only one's own. */
export async function releaseLease(redis: Redis, name: string, holder: string): Promise<void> {
  await runScript(redis, 'hold-lease', [name], [holder, 0])
}
