/** Silences made by command, as every replica looks at them. */
import { expect, test } from 'vitest'
import { createLiveSilences } from '../../../src/delivery/silences.ts'
import { readSilenceTexts, writeSilence } from '../../../src/store/silences.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { redisForTests, silent } from '../../support/ledger.ts'

const tests = redisForTests()
const dayMs = 86_400_000

test('a silence is listed for a week after its end, and then forgotten', async () => {
  const { redis } = tests
  const keys = tests.keys()
  const endsAtMs = Date.UTC(2026, 10, 1)
  const silence = {
    id: 's1',
    matchers: ['feed=brand'],
    starts: new Date(endsAtMs - dayMs),
    until: new Date(endsAtMs),
    owner: 'ann',
    reason: 'a test of ours',
    severity: 'high',
  }
  await writeSilence(redis, keys, { id: 's1', text: JSON.stringify(silence) })
  let nowMs = endsAtMs + 7 * dayMs
  const clock = { ...systemClock, now: () => nowMs }
  const config = { silences: [] } as never
  const silences = createLiveSilences({ config, redis, keys, clock, logger: silent })
  await silences.refreshOnce()
  await silences.refreshOnce()
  expect(silences.current()).toMatchObject([{ id: 's1', endsAtMs }])
  nowMs += 1
  await silences.refreshOnce()
  await silences.refreshOnce()
  expect(silences.current()).toEqual([])
  expect(await readSilenceTexts(redis, keys)).toEqual(new Map())
})
