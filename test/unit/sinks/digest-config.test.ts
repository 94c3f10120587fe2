import { expect, test } from 'vitest'
import { digestConfig } from '../../../src/sinks/config.ts'

test('a schedule alone collects everything, tells of nothing too, and shows 50 events', () => {
  expect(digestConfig.parse({ schedule: '0 8,16 * * *' })).toEqual({
    cron: '0 8,16 * * *',
    timeZone: 'UTC',
    immediate: null,
    sendsEmpty: true,
    maxItems: 50,
  })
})

test.each([
  [{ schedule: '0 8 30 2 *' }, 'schedule', 'never fires'],
  [{ schedule: '*/5 * * * *' }, 'schedule', 'fires more often than every 15 minutes'],
  [{ schedule: '0 8 * * *', timezone: 'Mars/Olympus' }, 'timezone', 'not a time zone'],
  [{ schedule: '0 8 * * *', immediate: 'urgent' }, 'immediate', 'not one of the known words'],
  [{ schedule: '0 8 * * *', max_items: 0 }, 'max_items', 'too small'],
  [{ schedule: '0 8 * * *', at: '8' }, 'at', 'unknown key'],
])('%j is refused at %s: %s', (written, key, problem) => {
  const issues = digestConfig.safeParse(written).error?.issues ?? []
  expect(issues.map(({ path, message }) => [path[0], message.split('\n')[0]])).toEqual([
    [key, problem],
  ])
})
