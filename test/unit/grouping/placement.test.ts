import { expect, test } from 'vitest'
import {
  fallbackPlace,
  heldPlace,
  keptPlace,
  movedPlace,
  placeItem,
  returnedPlace,
  type CollectingSink,
} from '../../../src/grouping/placement.ts'

const nowMs = Date.UTC(2026, 10, 1)
const grouping = { route: 'root', waitMs: 30_000, labels: {} }
const people: CollectingSink = { name: 'soc', isForPeople: true, destinations: [{ id: 'soc' }] }
const mailbox: CollectingSink = {
  ...people,
  digest: {
    schedule: { next: (atMs: number) => atMs + 86_400_000, previous: () => nowMs } as never,
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
  expect(urgent?.id).toBe('4592d941b125453885d436c6') // as replicas of another version call it
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

const about = { destination: 'soc', route: null, labels: {}, feed: null }
const moved = { destination: 'soc', severity: 'low', from: 'old' }
const together = { kind: 'group', waitMs: 15_000, isUrgent: false }

test.each([
  [
    'in a group as long as the route says',
    placeItem(people, { ...moved, feed: 'brand', isBacklog: false }, grouping, nowMs).gathering,
    { kind: 'group', waitMs: 30_000, isUrgent: false, about: { ...about, route: 'root' } },
  ],
  [
    'for the next digest',
    place(mailbox, 'low', false).gathering,
    { kind: 'digest', waitMs: 0, atMs: nowMs + 86_400_000, isUrgent: false, about },
  ],
  [
    'for the end of a mute',
    heldPlace('soc', 'night', nowMs + 7),
    { kind: 'held', waitMs: 0, atMs: nowMs + 7, isUrgent: false, about },
  ],
  [
    'for the others that are moved with it',
    movedPlace(people, moved, nowMs),
    { ...together, about: { ...about, labels: { 'moved from': 'old' } } },
  ],
  [
    'for the others that a sink could not take, and says which sink',
    fallbackPlace(people, moved),
    { ...together, about: { ...about, divertedFrom: 'old' } },
  ],
  [
    'until its sink can be reached, and no interval longer',
    keptPlace('soc'),
    {
      ...together,
      isUrgent: true,
      about: { ...about, labels: { 'kept while': 'nothing could be sent here' } },
    },
  ],
  [
    'for the others of a sink that is back',
    returnedPlace('soc'),
    { ...together, about: { ...about, labels: { 'held until': 'the sink was back' } } },
  ],
])('an event waits %s', (_what, gathering, expected) => {
  expect(gathering).toEqual({ ...expected, id: expect.stringMatching(/^[0-9a-f]{24}$/) })
})

test('events wait together that the route groups by the same labels, in whatever order, and no others', () => {
  const labels = { type: 'paste', team: 'brand' }
  const of = (route: string, own: Record<string, string>, destination = 'soc') => {
    const item = { destination, feed: 'brand', severity: 'low', isBacklog: false }
    return placeItem(people, item, { route, waitMs: 1, labels: own }, nowMs).gathering
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
    heldPlace('soc', 'night', 1),
    heldPlace('soc', 'weekend', 1),
    heldPlace('ir', 'night', 1),
    ...['soc', 'ir'].flatMap((destination) => [
      keptPlace(destination),
      returnedPlace(destination),
      ...['old', 'older'].flatMap((from) => [
        movedPlace(people, { ...moved, destination, from }, nowMs),
        fallbackPlace(people, { ...moved, destination, from }),
      ]),
    ]),
  ].map((one) => one?.id)
  expect(new Set(ids).size).toBe(ids.length)
})

test.each(['critical', 'no word of the service'])(
  'what is %s waits for no interval of its group or of a fallback',
  (severity) => {
    expect(place(people, severity, false).gathering?.isUrgent).toBe(true)
    expect(fallbackPlace(people, { ...moved, severity })?.isUrgent).toBe(true)
  },
)

test('what is moved to a mailbox waits for its digest, unless it is too severe; a fallback waits for none', () => {
  expect(movedPlace(mailbox, moved, nowMs)).toEqual(place(mailbox, 'low', false).gathering)
  expect(movedPlace(mailbox, { ...moved, severity: 'high' }, nowMs)).toMatchObject(together)
  expect(fallbackPlace(mailbox, moved)).toMatchObject(together)
})

test('machines get each of what is moved or diverted to them', () => {
  const machine = { ...people, isForPeople: false }
  expect(movedPlace(machine, moved, nowMs)).toBeUndefined()
  expect(fallbackPlace(machine, moved)).toBeUndefined()
})
