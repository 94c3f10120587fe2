import { expect, test } from 'vitest'
import { setSharedGauges } from '../../../src/http/shared-gauges.ts'
import { createMetrics } from '../../../src/runtime/metrics.ts'
import { redisForTests, routed, takeIn } from '../../support/ledger.ts'

const tests = redisForTests()

test('what waits for a sink that was removed is still counted; one without work is not named', async () => {
  const book = await tests.book()
  await takeIn(book, [routed({ uid: 'a/b/1' }, ['removed'])])
  const metrics = createMetrics()
  metrics.onScrape(() =>
    setSharedGauges({
      nowMs: 0,
      redis: tests.redis,
      metrics,
      books: [book],
      feeds: [],
      sinks: ['soc'],
      circuitOf: async () => ({ state: 'closed', lastSuccessMs: undefined }),
      isAccountPaused: async () => false,
    }),
  )
  const { body } = await metrics.render()
  expect(body).toContain('tocsin_items_pending{sink="removed",state="queued"} 1')
  expect(body).toContain('tocsin_items_pending{sink="soc",state="queued"} 0')
  expect(body).not.toContain('tocsin_sink_circuit_state{sink="removed"')
})
