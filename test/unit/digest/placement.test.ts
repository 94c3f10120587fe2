import { expect, test } from 'vitest'
import { placeItem, type CollectingSink } from '../../../src/digest/placement.ts'

const nowMs = Date.UTC(2026, 10, 1)
const grouping = { route: 'root', waitMs: 30_000, labels: {} }
const people: CollectingSink = { name: 'soc', isForPeople: true, destinations: [{ id: 'soc' }] }
const mailbox: CollectingSink = {
  ...people,
  digest: {
    schedule: { next: () => nowMs + 86_400_000, previous: () => nowMs } as never,
    timeZone: 'UTC',
    immediate: 'high',
    sendsEmpty: false,
    maxItems: 100,
  },
}

function place(sink: CollectingSink, severity: string, isBacklog: boolean) {
  const item = { destination: 'soc', feed: 'brand', severity, isBacklog }
  return placeItem(sink, item, grouping, nowMs)
}

test.each(['high', 'critical', 'no word of the service'])(
  'what a first poll or a re-reading finds and is as severe as immediate (%s) waits for no digest',
  (severity) => {
    const { gathering, toldIn } = place(mailbox, severity, true)
    expect(gathering).toMatchObject({ kind: 'backlog', isUrgent: true, waitMs: 15_000 })
    expect(toldIn).toBeDefined()
  },
)

test('what is less severe waits for the digest, found late or not', () => {
  for (const isBacklog of [true, false]) {
    expect(place(mailbox, 'medium', isBacklog).gathering).toMatchObject({ kind: 'digest' })
  }
})

test('what is critical has a summary of its own, which later pages of the reading do not put off', () => {
  const urgent = place(people, 'critical', true).gathering
  const others = place(people, 'low', true).gathering
  expect(urgent).toMatchObject({ kind: 'backlog', isUrgent: true })
  expect(others).toMatchObject({ kind: 'backlog', isUrgent: false })
  expect(urgent?.id).not.toBe(others?.id)
})

test('machines get every event by itself; people without a digest a summary, a group, or where nothing waits each', () => {
  expect(place({ ...mailbox, isForPeople: false }, 'low', true)).toEqual({})
  expect(place(people, 'low', true).gathering).toMatchObject({ kind: 'backlog' })
  expect(place(people, 'low', false).gathering).toMatchObject({ kind: 'group' })
  const item = { destination: 'soc', feed: 'brand', severity: 'low', isBacklog: false }
  expect(placeItem(people, item, { ...grouping, waitMs: 0 }, nowMs)).toEqual({})
})

test('what goes at once is listed by the digest, and waits for nothing; without immediate all of it waits', () => {
  expect(place(mailbox, 'high', false)).toEqual({ toldIn: place(mailbox, 'critical', true).toldIn })
  const patient = { ...mailbox, digest: { ...mailbox.digest!, immediate: null } }
  expect(place(patient, 'critical', false).gathering).toMatchObject({ kind: 'digest' })
})

test('each feed and each destination has a summary of its own of what a first poll finds', () => {
  const of = (destination: string, feed: string) =>
    placeItem(people, { destination, feed, severity: 'low', isBacklog: true }, grouping, nowMs)
  const places = [of('soc', 'brand'), of('soc', 'leaks'), of('ir', 'brand')]
  expect(new Set(places.map(({ gathering }) => gathering?.id)).size).toBe(3)
  expect(places.map(({ gathering }) => gathering?.about)).toEqual([
    { destination: 'soc', route: null, labels: {}, feed: 'brand' },
    { destination: 'soc', route: null, labels: {}, feed: 'leaks' },
    { destination: 'ir', route: null, labels: {}, feed: 'brand' },
  ])
})
