/** Local clocks the slow way, for judging the quick one: every minute is asked for, nothing is derived. */
const minuteMs = 60_000
const dayMs = 86_400_000

export const zones = [
  'Europe/Zurich',
  'America/New_York',
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
  'Pacific/Apia',
  'Africa/Casablanca',
  'America/Sao_Paulo',
]

const formats = new Map(
  zones.map((zone) => [
    zone,
    new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' }),
  ]),
)

/** `2026-11-20 08:00` */
export function labelAt(atMs: number, zone: string): string {
  return formats.get(zone)?.format(atMs) ?? ''
}

/** What a clock in UTC would show for the label, ms. */
export function readingOf(label: string): number {
  return Date.parse(`${label.replace(' ', 'T')}Z`)
}

/** The instants (whole hours) after which the distance to UTC changes within the hour. */
function changesIn(zone: string, years: { from: number; to: number }): number[] {
  const changes: number[] = []
  const endMs = Date.UTC(years.to, 0, 1)
  const offset = (atMs: number): number => readingOf(labelAt(atMs, zone)) - atMs
  for (let atMs = Date.UTC(years.from, 0, 1); atMs < endMs; atMs += dayMs) {
    if (offset(atMs) !== offset(atMs + dayMs)) changes.push(atMs)
  }
  return changes
}

export interface Window {
  zone: string
  fromMs: number
  toMs: number
}

/** Two days before to two days after each change of the clock, and as many days where there is none. */
export function windowsOf(zone: string): Window[] {
  const changes = [...changesIn(zone, { from: 2008, to: 2030 }), Date.UTC(2027, 1, 27)]
  return changes.map((day) => ({ zone, fromMs: day - 2 * dayMs, toMs: day + 3 * dayMs }))
}

export interface Minute {
  atMs: number
  reading: number
  /** Readings that this minute is the first to have reached: its own and skipped ones, or none. */
  reached: number[]
}

/** Every minute of a window, in order. */
export function minutesOf({ zone, fromMs, toMs }: Window): Minute[] {
  const minutes: Minute[] = []
  let latest = readingOf(labelAt(fromMs - minuteMs, zone))
  for (let atMs = fromMs; atMs < toMs; atMs += minuteMs) {
    const reading = readingOf(labelAt(atMs, zone))
    const reached: number[] = []
    for (; latest < reading; latest += minuteMs) reached.push(latest + minuteMs)
    minutes.push({ atMs, reading, reached })
  }
  return minutes
}
