import { createPoller, type Poller } from '../feeds/poller.ts'
import { hasRoom } from '../redis/safety.ts'
import { planItems } from '../routing/destinations.ts'
import { createRouter } from '../routing/router.ts'
import type { DeliveryParts } from './build-delivery.ts'
import type { Service } from './build-service.ts'
import { findBook, type Shared } from './shared.ts'

export function buildPoller(shared: Shared, service: Service, delivery: DeliveryParts): Poller {
  const { config, redis, clock, logger, metrics } = shared
  const { sinks, modes, queue, detailJobs } = delivery
  const router = createRouter(config.route)
  const destinationsOf = (sink: string): string[] =>
    (sinks.get(sink)?.destinations ?? []).map(({ id }) => id)
  return createPoller({
    client: (account) => service.client(account),
    book(account) {
      const book = findBook(shared, account)
      if (!book) throw new Error(`no book is open for account ${account}`)
      return book
    },
    plan(event, { account, name, labels }) {
      const decisions = router.route({ event, account, feed: name, labels })
      return {
        decisions: decisions.map(({ route, path, why }) => ({ route, path, why })),
        items: planItems(decisions, destinationsOf),
      }
    },
    batchWaitMs: (sink) => modes[sink] || undefined,
    async queue(account, made) {
      for (const { k } of made) metrics.itemsCreatedTotal.inc({ sink: k })
      await Promise.all([queue.addMade(account, made), detailJobs.add(account, made)])
    },
    generation: () => shared.generation.number,
    hasRoom: () => hasRoom(redis),
    clock,
    logger,
    metrics,
  })
}
