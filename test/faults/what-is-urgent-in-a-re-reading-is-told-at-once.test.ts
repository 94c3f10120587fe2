import { expect, test } from 'vitest'
import { readAccounting } from '../../src/store/accounts.ts'
import { until } from '../support/rehearsal.ts'
import { slack, startRig } from '../support/rig.ts'

const dayMs = 86_400_000
const count = 3_000

test('a critical event that a changed filter lets in is told long before the re-reading ends', async () => {
  await using rig = await startRig({
    limit: 10,
    sandbox: { slackLimit: { perSecond: 50, burst: 50 }, keep: 10_000 },
  })
  const { sandbox } = rig
  const configuration = (severities: string): string =>
    rig.yaml({
      feeds: { brand: `start: 7d, filters: {severity: [${severities}]}` },
      sinks: { soc: slack(sandbox) },
    })
  /** `ageDays` before now, and matched then. */
  const add = (severity: string, ageDays: number): string => {
    const createdAtMs = Date.now() - ageDays * dayMs
    const given = { createdAtMs, arrivedAtMs: createdAtMs, matchedAtMs: createdAtMs }
    return sandbox.addEvent({ severity, ignoredAtMs: null, groupIds: [1042], ...given }).uid
  }
  add('medium', 0)
  const before = await rig.start(configuration('medium'))
  await until('the feed is read', async () => {
    const { feeds } = await readAccounting(before.ledger)
    return feeds['brand']?.new === 1
  })
  await before.app.stop()
  const urgent = add('critical', 6.9)
  for (let i = 0; i < count; i += 1) add('low', 6.8 - (6.7 * i) / count)
  const { ledger } = await rig.start(configuration('medium, low, critical'))
  const told = (): boolean => sandbox.received.slack.some(({ uids }) => uids.includes(urgent))
  await until('the critical event is told', told)
  const { feeds } = await readAccounting(ledger)
  expect(feeds['brand']!.new).toBeGreaterThan(100)
  expect(feeds['brand']!.new).toBeLessThan(count)
  const [message] = sandbox.received.slack
  expect(sandbox.received.slack).toHaveLength(1)
  expect(message!.uids).toEqual([urgent]) // nothing of what can wait is told with it
})
