/** A poller of one account; each event goes to sink soc unless `plan` says otherwise. */
import { createPoller } from '../../src/feeds/poller.ts'
import type { PolledAccount, Poller, PollerOptions } from '../../src/feeds/poll-run.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createMetrics } from '../../src/lib/metrics/metrics.ts'
import { silent } from './ledger.ts'

export function pollerOf(
  account: Omit<PolledAccount, 'queue'> & Partial<PolledAccount>,
  { clock = systemClock, ...options }: Partial<Omit<PollerOptions, 'account'>> = {},
): Poller {
  return createPoller({
    account: () => ({ queue: () => Promise.resolve(), ...account }),
    plan: () => ({
      decisions: [{ route: 'root', path: ['root'], why: [] }],
      items: [{ sink: 'soc', destination: 'soc', routes: ['root'] }],
    }),
    batchWaitMs: () => undefined,
    generation: () => 1,
    hasRoom: () => Promise.resolve(true),
    clock,
    logger: silent,
    metrics: createMetrics({ clock }),
    ...options,
  })
}
