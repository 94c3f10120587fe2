import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findUnknownConversion, formatAs, timeConversions } from '../../../src/lib/strftime.ts'

/** A Saturday morning, in whose zone the clock shows summer. */
const atMs = Date.UTC(2026, 5, 6, 7, 5, 9, 42)

const cases: [format: string, written: string][] = [
  ['%a %A %b %B %h', 'Sat Saturday Jun June Jun'],
  ['%C %y %Y %m %d %e|%j', '20 26 2026 06 06  6|157'],
  ['%H %I %k|%l|%M %S %L', '09 09  9| 9|05 09 042'],
  ['%p %P %s', 'AM am 1780729509'],
  ['%u %w %U %W %V %G', '6 6 22 22 23 2026'],
  ['%z %:z %Z', '+0200 +02:00 CEST'],
  ['%F %D %x', '2026-06-06 06/06/26 06/06/26'],
  ['%T %X %R %r', '09:05:09 09:05:09 09:05 09:05:09 AM'],
  ['%c', 'Sat Jun  6 09:05:09 2026'],
  ['%-d %-m %_H %06Y %^a %#p %10A|%5d', '6 6  9 002026 SAT am   Saturday|00006'],
  ['100%% %%F%n%t.', '100% %F\n\t.'],
]

test.each(cases)('%s', (format, written) => {
  expect(formatAs(format, atMs, 'Europe/Zurich')).toBe(written)
})

test.each([
  ['2027-01-01', '2026-W53', '00 00'],
  ['2024-12-30', '2025-W01', '52 53'],
  ['2023-01-01', '2022-W52', '01 00'],
  ['2024-12-31', '2025-W01', '52 53'],
])('the weeks of %s', (day, iso, weeks) => {
  const words = `${day} ${iso} ${weeks}`
  expect(formatAs('%F %G-W%V %U %W', Date.parse(day), 'UTC')).toBe(words)
})

test('the last day of a year is its 366th only in a leap year', () => {
  const days = ['2024-12-31', '2026-12-31', '2000-12-31', '1900-12-31', '2024-02-29', '2026-03-01']
  const written = days.map((day) => formatAs('%j', Date.parse(day), 'UTC'))
  expect(written).toEqual(['366', '365', '366', '365', '060', '060'])
})

test('the clock of twelve hours knows no hour 0', () => {
  const written = [0, 1, 12, 23].map((hour) =>
    formatAs('%I%p %l%P', Date.UTC(2026, 0, 1, hour), 'UTC'),
  )
  expect(written).toEqual(['12AM 12am', '01AM  1am', '12PM 12pm', '11PM 11pm'])
})

test('a time that no calendar shows is none', () => {
  expect(formatAs('%F', Number.MAX_SAFE_INTEGER, 'UTC')).toBeUndefined()
  for (const zone of ['UTC', 'Europe/Zurich']) {
    expect(formatAs('%F', NaN, zone)).toBeUndefined()
    expect(formatAs('%F', Infinity, zone)).toBeUndefined()
  }
  expect(formatAs('%Y', Date.UTC(-43, 2, 15), 'UTC')).toBe('-043')
})

test.each([
  ['%Q', '%Q'],
  ['%H:%M %N', '%N'],
  ['a %', '%'],
  ['%\n', '%\n'],
  ['%99d', '%99d'],
  ['%Ey', '%E'],
])('no conversion is in %j', (format, unknown) => {
  expect(findUnknownConversion(format)).toBe(unknown)
})

test('every listed conversion writes something else than itself', () => {
  for (const letter of timeConversions) {
    expect(findUnknownConversion(`%${letter}`)).toBeUndefined()
    expect(formatAs(`%${letter}`, atMs, 'UTC')).not.toBe(`%${letter}`)
  }
})

/** Every half hour of the two nights in which the clocks of Europe are set. */
const script = `import { formatAs } from ${JSON.stringify(join(import.meta.dirname, '../../../src/lib/strftime.ts'))}
for (const night of [Date.UTC(2026, 2, 28, 20), Date.UTC(2026, 9, 24, 20)])
  for (let half = 0; half < 20; half += 1)
    for (const zone of ['UTC', 'Europe/Zurich', 'America/New_York', 'Asia/Tokyo'])
      console.log(formatAs('%c %F %H:%M %:z %Z %p', night + half * 1_800_000, zone))
`

function writtenUnder(env: Record<string, string>): string {
  const args = ['--input-type=module-typescript', '--eval', script]
  return execFileSync(process.execPath, args, { encoding: 'utf8', env: { ...process.env, ...env } })
}

test('zone and language of the process play no part, least in the night of a clock change', () => {
  const usual = writtenUnder({ TZ: 'UTC', LC_ALL: 'C.UTF-8' })
  expect(usual).toContain('2026-03-29 03:00 +02:00 CEST AM')
  expect(usual).toContain('2026-03-28 22:30 +00:00 UTC PM')
  expect(writtenUnder({ TZ: 'Europe/Zurich', LC_ALL: 'de_CH.UTF-8' })).toBe(usual)
})
