import { afterEach, describe, expect, test } from 'vitest'
import { createSchedule, cronProblem } from '../../../src/lib/cron-schedule.ts'

const at = (iso: string): number => Date.parse(iso)
const shown = (ms: number): string => new Date(ms).toISOString().replace(':00.000Z', 'Z')

function firesOf(cron: string, timeZone: string, after: string): string[] {
  const schedule = createSchedule({ cron, timeZone })
  const fires: number[] = [schedule.next(at(after))]
  while (fires.length < 4) fires.push(schedule.next(fires.at(-1) ?? 0))
  return fires.map(shown)
}

describe('a schedule', () => {
  test.each([
    ['0 8 * * 7', '0 8 * * sun'],
    ['0 8 * JAN-Mar,12 *', '0 8 * 1-3,12 *'],
    ['0 8 * * fri-sun', '0 8 * * 0,5,6'],
    ['0 */6 * * *', '0 0,6,12,18 * * *'],
    ['*/15 8-9 * * *', '0,15,30,45 8,9 * * *'],
    ['0 9-17/4 * * *', '0 9,13,17 * * *'],
    ['  0  8\t* * * ', '0 8 * * *'],
  ])('reads %j as %j', (one, other) => {
    const from = '2026-01-30T00:00:00Z'
    expect(firesOf(one, 'UTC', from)).toEqual(firesOf(other, 'UTC', from))
  })
})

describe('a host in another zone', () => {
  const zoneOfHost = process.env['TZ']

  afterEach(() => {
    if (zoneOfHost === undefined) delete process.env['TZ']
    else process.env['TZ'] = zoneOfHost
  })

  test.each(['America/New_York', 'Australia/Lord_Howe'])('%s changes nothing', (zone) => {
    const from = '2026-03-07T12:00:00Z'
    const expected = firesOf('30 2 * * *', 'UTC', from)
    process.env['TZ'] = zone
    expect(new Date(at(from)).getTimezoneOffset()).not.toBe(0)
    expect(firesOf('30 2 * * *', 'UTC', from)).toEqual(expected)
    expect(expected[0]).toBe('2026-03-08T02:30Z')
  })
})

describe('no schedule is made of', () => {
  test.each([
    ['0 0 8 * * *', /seconds/],
    ['0 0 8 * * * 2026', /seconds and years/],
    ['0 8 * *', /five fields/],
    ['@daily', /five fields/],
    ['', /five fields/],
    ['60 8 * * *', /its minute/],
    ['0 24 * * *', /its hour/],
    ['0 8-6 * * *', /its hour/],
    ['5/10 8 * * *', /its minute/],
    ['*/0 8 * * *', /its minute/],
    ['0 8 0 * *', /its day of the month/],
    ['0 8 L * *', /its day of the month/],
    ['0 8 15W * *', /its day of the month/],
    ['0 8 1, * *', /its day of the month/],
    ['0 8 * 13 *', /its month/],
    ['0 8 * february *', /its month/],
    ['0 8 * * 8', /its day of the week/],
    ['0 8 * * mon#2', /its day of the week/],
    ['0 8 * * +mon', /its day of the week/],
    ['0 8 * * fri-mon', /its day of the week/],
    ['0 8 * * Sun-sun', /its day of the week/],
    ['0 8 ? * mon', /its day of the month/],
    ['0 8 30 2 *', /never fires/],
    ['0 8 31 4,6,9,11 *', /never fires/],
    ['* * * * *', /every 15 minutes/],
    ['*/14 * * * *', /every 15 minutes/],
    ['0,14 8 * * *', /every 15 minutes/],
    ['0,50 0,23 * * *', /every 15 minutes/],
  ])('%j: %s', (cron, problem) => {
    const wrong = cronProblem(cron)
    expect(wrong?.problem).toMatch(problem)
    expect(wrong?.remedy).toMatch(/^write /)
  })

  test.each(['0,15 8 * * *', '50 23 * * *', '*/15 * * * *', '0 0 2,* * *'])('but of %j', (cron) => {
    expect(cronProblem(cron)).toBeUndefined()
  })

  test('what was not checked before: it throws with the problem and the remedy', () => {
    expect(() => createSchedule({ cron: '0 8 30 2 *', timeZone: 'UTC' })).toThrow(
      /never fires; write a day/,
    )
    expect(() => createSchedule({ cron: '0 8 * * *', timeZone: 'Mars/Olympus' })).toThrow(
      /not a time zone/,
    )
  })
})
