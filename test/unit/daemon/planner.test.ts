import { expect, test } from 'vitest'
import { buildPlanner } from '../../../src/daemon/planner.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createRouter } from '../../../src/routing/router.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aTree } from '../../support/routing.ts'

test('the plan of a leaked credential names whose login it is', () => {
  type Given = Parameters<typeof buildPlanner>[0]
  const context = { config: { inhibitRules: [] }, clock: systemClock } as unknown as Given
  const plan = buildPlanner(context, createRouter(aTree()), new Map())
  const highlights = { identity_name: ['joe@acme.com'] }
  const event = aThreatEvent({ type: 'credential', highlights })
  const feed = { account: 'main', name: 'leaks', labels: {} } as Parameters<typeof plan>[1]
  expect(plan(event, feed, { isBacklog: false, isFresh: true })).toMatchObject({
    victims: { logins: ['joe@acme.com'], hosts: [] },
  })
})
