import { expect, test } from 'vitest'
import {
  fallbackGroup,
  mutedGroup,
  blockedGroup,
  movedGroup,
  placeItem,
  type Outlet,
} from '../../../src/grouping/placement.ts'

const nowMs = Date.UTC(2026, 10, 1)
const grouping = { route: 'root', waitMs: 30_000, labels: {} }
const destinations = [{ id: 'soc', label: 'soc' }]
const people: Outlet = {
  name: 'soc',
  isForPeople: true,
  destinations,
  batchWaitMs: undefined,
  fallback: undefined,
  fallbackAfterMs: 0,
  sendTimeoutMs: 0,
}
const mailbox: Outlet = {
  ...people,
  digest: {
    schedule: { next: (atMs: number) => atMs + 86_400_000, previous: () => nowMs } as never,
    timeZone: 'UTC',
    immediate: 'high',
    sendsEmpty: false,
    maxItems: 100,
  },
}

function place(sink: Outlet, severity: string, isBacklog: boolean) {
  const item = { destination: 'soc', feed: 'brand', severity, isBacklog }
  return placeItem(sink, item, grouping, nowMs)
}

test.each(['high', 'critical', 'no word of the service'])(
  'what a first poll or a re-reading finds and is as severe as immediate (%s) waits for no digest',
  (severity) => {
    const { group: gathering, listedIn: toldIn } = place(mailbox, severity, true)
    expect(gathering).toMatchObject({ kind: 'backlog', isUrgent: true, waitMs: 15_000 })
    expect(toldIn).toBeDefined()
  },
)

test('what is less severe waits for the digest, found late or not', () => {
  for (const isBacklog of [true, false]) {
    expect(place(mailbox, 'medium', isBacklog).group).toMatchObject({ kind: 'digest' })
  }
})

test('what is critical has a summary of its own, which later pages of the reading do not put off', () => {
  const urgent = place(people, 'critical', true).group
  const others = place(people, 'low', true).group
  expect(urgent).toMatchObject({ kind: 'backlog', isUrgent: true })
  expect(others).toMatchObject({ kind: 'backlog', isUrgent: false })
  expect(urgent?.id).not.toBe(others?.id)
  expect(urgent?.id).toBe('4592d941b125453885d436c6') // as replicas of another version call it
})

test('machines get every event by itself; people without a digest a summary, a group, or where nothing waits each', () => {
  expect(place({ ...mailbox, isForPeople: false }, 'low', true)).toEqual({})
  expect(place(people, 'low', true).group).toMatchObject({ kind: 'backlog' })
  expect(place(people, 'low', false).group).toMatchObject({ kind: 'group' })
  const item = { destination: 'soc', feed: 'brand', severity: 'low', isBacklog: false }
  expect(placeItem(people, item, { ...grouping, waitMs: 0 }, nowMs)).toEqual({})
})

test('what goes at once is listed by the digest, and waits for nothing; without immediate all of it waits', () => {
  expect(place(mailbox, 'high', false)).toEqual({
    listedIn: place(mailbox, 'critical', true).listedIn,
  })
  const patient = { ...mailbox, digest: { ...mailbox.digest!, immediate: null } }
  expect(place(patient, 'critical', false).group).toMatchObject({ kind: 'digest' })
})

test('each feed and each destination has a summary of its own of what a first poll finds', () => {
  const of = (destination: string, feed: string) =>
    placeItem(people, { destination, feed, severity: 'low', isBacklog: true }, grouping, nowMs)
  const places = [of('soc', 'brand'), of('soc', 'leaks'), of('ir', 'brand')]
  expect(new Set(places.map(({ group: gathering }) => gathering?.id)).size).toBe(3)
  expect(places.map(({ group: gathering }) => gathering?.about)).toEqual([
    { destination: 'soc', route: null, labels: {}, feed: 'brand' },
    { destination: 'soc', route: null, labels: {}, feed: 'leaks' },
    { destination: 'ir', route: null, labels: {}, feed: 'brand' },
  ])
})

const about = { destination: 'soc', route: null, labels: {}, feed: null }
const moved = { destination: 'soc', severity: 'low', from: 'old' }
const together = { kind: 'group', waitMs: 15_000, isUrgent: false }

test.each([
  [
    'in a group as long as the route says',
    placeItem(people, { ...moved, feed: 'brand', isBacklog: false }, grouping, nowMs).group,
    { kind: 'group', waitMs: 30_000, isUrgent: false, about: { ...about, route: 'root' } },
  ],
  [
    'for the next digest',
    place(mailbox, 'low', false).group,
    { kind: 'digest', waitMs: 0, atMs: nowMs + 86_400_000, isUrgent: false, about },
  ],
  [
    'for the end of a mute',
    mutedGroup('soc', 'night', nowMs + 7),
    { kind: 'held', waitMs: 0, atMs: nowMs + 7, isUrgent: false, about },
  ],
  [
    'for the others that are moved with it',
    movedGroup(people, moved, nowMs),
    { ...together, about: { ...about, labels: { 'moved from': 'old' } } },
  ],
  [
    'for the others that a sink could not take, and says which sink',
    fallbackGroup(people, moved),
    { ...together, about: { ...about, divertedFrom: 'old' } },
  ],
  [
    'until its sink can be reached, and no interval longer',
    blockedGroup('soc'),
    {
      ...together,
      isUrgent: true,
      about: { ...about, labels: { 'kept while': 'nothing could be sent here' } },
    },
  ],
])('an event waits %s', (_what, gathering, expected) => {
  expect(gathering).toEqual({ ...expected, id: expect.stringMatching(/^[0-9a-f]{24}$/) })
})

test('events wait together that the route groups by the same labels, in whatever order, and no others', () => {
  const labels = { type: 'paste', team: 'brand' }
  const of = (route: string, own: Record<string, string>, destination = 'soc') => {
    const item = { destination, feed: 'brand', severity: 'low', isBacklog: false }
    return placeItem(people, item, { route, waitMs: 1, labels: own }, nowMs).group
  }
  const { id, about: known } = of('root', labels)!
  expect(known.labels).toEqual(labels)
  expect(of('root', { team: 'brand', type: 'paste' })?.id).toBe(id)
  const others = [
    of('root', { ...labels, type: 'leak' }),
    of('root', { type: 'paste' }),
    of('night', labels),
    of('root', labels, 'ir'),
  ]
  expect(new Set([id, ...others.map((one) => one?.id)]).size).toBe(5)
})

test('what one mute, sink or destination holds does not come with what another holds', () => {
  const ids = [
    mutedGroup('soc', 'night', 1),
    mutedGroup('soc', 'weekend', 1),
    mutedGroup('ir', 'night', 1),
    ...['soc', 'ir'].flatMap((destination) => [
      blockedGroup(destination),
      ...['old', 'older'].flatMap((from) => [
        movedGroup(people, { ...moved, destination, from }, nowMs),
        fallbackGroup(people, { ...moved, destination, from }),
      ]),
    ]),
  ].map((one) => one?.id)
  expect(new Set(ids).size).toBe(ids.length)
})

test.each(['critical', 'no word of the service'])(
  'what is %s waits for no interval of its group or of a fallback',
  (severity) => {
    expect(place(people, severity, false).group?.isUrgent).toBe(true)
    expect(fallbackGroup(people, { ...moved, severity })?.isUrgent).toBe(true)
  },
)

test('what is moved to a mailbox waits for its digest, unless it is too severe; a fallback waits for none', () => {
  expect(movedGroup(mailbox, moved, nowMs)).toEqual(place(mailbox, 'low', false).group)
  expect(movedGroup(mailbox, { ...moved, severity: 'high' }, nowMs)).toMatchObject(together)
  expect(fallbackGroup(mailbox, moved)).toMatchObject(together)
})

test('machines get each of what is moved or diverted to them', () => {
  const machine = { ...people, isForPeople: false }
  expect(movedGroup(machine, moved, nowMs)).toBeUndefined()
  expect(fallbackGroup(machine, moved)).toBeUndefined()
})
