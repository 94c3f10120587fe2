import { expect, test } from 'vitest'
import { feedLines, alertsToFeeds } from '../../../../src/cli/monitoring/feeds-import.ts'
import type { WireAlert } from '../../../../src/upstream/resources/assets.ts'

function imported(...alerts: Partial<WireAlert>[]): ReturnType<typeof alertsToFeeds> {
  return importedBeside([], ...alerts)
}

function importedBeside(
  feeds: string[],
  ...alerts: Partial<WireAlert>[]
): ReturnType<typeof alertsToFeeds> {
  const whole = alerts.map((alert, index): WireAlert => ({ id: index + 1, ...alert }))
  return alertsToFeeds(whole, { groupId: 1042, account: undefined, feeds })
}

test('risks become an exact list of severities, in order; none or all of them are no filter', () => {
  const filters = imported(
    { risks: [5, 3] },
    { risks: [] },
    { risks: [1, 2, 3, 4, 5] },
    { risks: null },
  )
  expect(filters.map((feed) => feed.filters)).toEqual([{ severity: ['medium', 'critical'] }, {}])
})

test('the order of search types makes no other feed', () => {
  const feeds = imported(
    { name: 'One', search_types: ['paste', 'leaks'] },
    { name: 'Two', search_types: ['leaks', 'paste', 'leaks'] },
  )
  expect(feeds).toHaveLength(1)
  expect(feeds[0]).toMatchObject({ name: 'one', filters: { type: ['leaks', 'paste'] } })
  expect(feeds[0]!.remarks.filter((remark) => remark.startsWith('alert '))).toHaveLength(2)
})

test('names of alerts become names of feeds, each its own', () => {
  const named = (name: string | null, risk: number): Partial<WireAlert> => ({ name, risks: [risk] })
  const feeds = imported(
    named('Größe & Söhne', 1),
    named('Große – Sohne', 2),
    named('7 days', 3),
    named('!!!', 4),
    named(null, 5),
  )
  expect(feeds.map(({ name }) => name)).toEqual([
    'gro-e-sohne',
    'gro-e-sohne-2',
    'days',
    'group-1042',
    'group-1042-2',
  ])
})

test('what has no equivalent, or would be read as something else, is a remark on one line', () => {
  const [feed] = imported({
    name: 'a\nfeeds: b',
    search_types: ['leaks', '${HOME}', 'a]\n'],
    experimental_search_types: ['new_thing'],
    risks: [4, 9],
  })
  expect(feed).toMatchObject({ filters: { type: ['leaks'], severity: ['high'] } })
  const lines = feedLines(feed!)
  expect(lines).toContain('    filters: { severity: [high], type: [leaks] }')
  expect(lines).toContain('    # no severity is known for risk 9')
  expect(lines.join('\n')).toMatch(
    /^ {4}# no equivalent: search types \$\{HOME\}, a\]\S*, new_thing$/m,
  )
  expect(lines.filter((line) => line.includes('\n'))).toEqual([])
})

test('with several accounts the feed says whose it is', () => {
  const [feed] = alertsToFeeds([{ id: 1 }], { groupId: 1042, account: 'second', feeds: [] })
  expect(feedLines(feed!)).toContain('    account: second')
})

test('a name that the configuration has gets the id of the group, and a remark', () => {
  const long = 'a'.repeat(50)
  const known = ['brand', 'group-1042', 'brand-2', 'a'.repeat(34)]
  const feeds = importedBeside(
    known,
    { name: 'Brand', risks: [1] },
    { name: 'Brand', risks: [2] },
    { name: '!!', risks: [3] },
    { name: long, risks: [4] },
    { name: long, risks: [5] },
  )
  expect(feeds.map(({ name }) => name)).toEqual([
    'brand-1042',
    'brand-1042-2',
    'group-1042-2',
    `${'a'.repeat(29)}-1042`,
    `${'a'.repeat(29)}-1042-2`,
  ])
  expect(feeds[0]!.remarks[0]).toBe('the configuration has a feed brand already')
})

test('words that YAML reads as something else are in quotes', () => {
  const words = ['leaks', '123', 'null', 'True', 'yes', '1e3', '-', '_x', 'off']
  const [feed] = alertsToFeeds([{ id: 1, name: 'Null', search_types: words }], {
    groupId: 1042,
    account: 'on',
    feeds: [],
  })
  expect(feedLines(feed!)).toEqual(
    expect.arrayContaining([
      '  "null":',
      '    account: "on"',
      '    filters: { type: ["-", "123", "1e3", "True", "_x", leaks, "null", "off", "yes"] }',
    ]),
  )
})
