/** Crons, durations, timestamps, HTTP dates, moments of the command line. */
import { CommandError } from '../../../src/cli/terminal.ts'
import { parseFutureTime, parsePastTime } from '../../../src/cli/options.ts'
import { duration } from '../../../src/lib/config-fields.ts'
import { createSchedule, cronProblem } from '../../../src/lib/cron-schedule.ts'
import { parseHttpDate, parseRetryAfter } from '../../../src/lib/web-address.ts'
import { formatDuration } from '../../../src/lib/time-zone.ts'
import { parseTimestamp } from '../../../src/upstream/timestamps.ts'
import { bytesOf } from '../engine/bytes.ts'
import { assertThat } from '../engine/target.ts'

export const dictionary = [
  '*/15',
  '1-5',
  'mon',
  'sun',
  'jan',
  'L',
  '#2',
  'T12:00',
  '+02:00',
  ' GMT',
  '7d',
]

const nowMs = Date.UTC(2026, 10, 1, 12)
const hundredYearsMs = 36_500 * 86_400_000
const zones = ['Europe/Zurich', 'UTC', 'America/St_Johns', 'Australia/Lord_Howe', 'Pacific/Apia']
const span = duration('A span.')

const checks = [checkCron, checkDuration, checkTimestamp, checkRetryAfter, checkMoment]

export function fuzz(data: Uint8Array): void {
  const bytes = bytesOf(data)
  const check = bytes.pick(checks)
  check(bytes.text(), bytes.byte())
}

function checkCron(text: string, choice: number): void {
  const problem = cronProblem(text)
  if (problem) {
    return assertThat(problem.problem !== '' && problem.remedy !== '', 'refused unclearly', text)
  }
  const timeZone = zones[choice % zones.length] ?? 'UTC'
  const schedule = createSchedule({ cron: text, timeZone })
  const next = schedule.next(nowMs)
  assertThat(next > nowMs, 'fires in the past', { text, timeZone, next })
  assertThat(schedule.previous(next) === next, 'did not fire when it fired', {
    text,
    timeZone,
    next,
  })
  assertThat(schedule.previous(next - 1) <= nowMs, 'fires in between', { text, timeZone, next })
}

function checkDuration(text: string): void {
  const { success, data, error } = span.safeParse(text)
  if (!success) {
    const isClear = error.issues.every(({ message }) => /^[^\n]+\n[^\n]+$/.test(message))
    return assertThat(isClear, 'refused unclearly', text)
  }
  const isInRange = Number.isSafeInteger(data) && data >= 1 && data <= hundredYearsMs
  assertThat(isInRange, 'a duration out of range', { text, data })
  const printed = data % 1000 === 0 ? `${data / 1000}s` : `${data}ms`
  assertThat(span.parse(printed) === data, 'another duration once printed', { text, data })
  assertThat(/^\d/.test(formatDuration(data)), 'a span without words', data)
}

function checkTimestamp(text: string): void {
  const atMs = parseTimestamp(text)
  if (atMs === null) return
  assertThat(Number.isSafeInteger(atMs) && Math.abs(atMs) <= 8.64e15, 'no time', { text, atMs })
  const printed = new Date(atMs).toISOString()
  if (!/^\d{4}-/.test(printed)) return // an offset leads out of the years that are written so
  assertThat(parseTimestamp(printed) === atMs, 'another time once printed', { text, printed })
}

function checkRetryAfter(text: string): void {
  const waitMs = parseRetryAfter(text, nowMs)
  const isBounded = waitMs === undefined || (waitMs >= 1000 && waitMs <= 900_000)
  assertThat(isBounded, 'waits too long or not at all', { text, waitMs })
  const atMs = parseHttpDate(text)
  if (atMs === undefined) return
  const printed = new Date(atMs).toUTCString()
  if (!/\b\d{4} \d\d:/.test(printed) || / -/.test(printed)) return
  assertThat(parseHttpDate(printed) === Math.floor(atMs / 1000) * 1000, 'another date', text)
}

function checkMoment(text: string): void {
  for (const parse of [parsePastTime, parseFutureTime]) {
    try {
      const atMs = parse(text, nowMs)
      const isReal = Math.abs(atMs) <= 8.64e15 && (parse === parseFutureTime) === atMs > nowMs
      assertThat(isReal, 'no such moment', { text, atMs })
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
    }
  }
}
