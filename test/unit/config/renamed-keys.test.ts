/** Keys of 0.4.0 that are called otherwise now are read once more, and the file's owner is told. */
import { expect, test } from 'vitest'
import { configKeys } from '../../../src/config/schema.ts'
import { parseConfig } from '../../../src/config/load.ts'

const sections = `
accounts: {main: {base_url: https://api.example.com/, api_key: fw_key, tenant_id: 42}}
sinks:
  soc: {type: slack, url: https://hooks.example.com/services/T1/B2/s3cr3t}
  siem: {type: slack, url: https://hooks.example.com/services/T1/B3/s3cr3t}
`

const ofOldVersion = `${sections}
feeds: {brand: {type: events, identifier_group: 1042, backlog: summarise}}
route: {sinks: [soc], routes: [{matchers: ['type="paste"'], sinks: [siem], stage: shadow}]}
notices: {sink: soc, or: siem}
retention: {story: 30d}
silences:
  - {matchers: ['type="chat"'], until: 2099-01-01T00:00:00Z, starts: 2098-12-20T00:00:00Z, owner: al, reason: known, severity: low}
`

const ofToday = `${sections}
feeds: {brand: {type: events, identifier_group: 1042, initial_poll: summary}}
route: {sinks: [soc], routes: [{matchers: ['type="paste"'], sinks: [siem], mode: shadow}]}
self_alerts: {sink: soc, fallback: siem}
retention: {history: 30d}
silences:
  - {matchers: ['type="chat"'], until: 2099-01-01T00:00:00Z, starts: 2098-12-20T00:00:00Z, owner: al, reason: known, max_severity: low}
`

function load(text: string): ReturnType<typeof parseConfig> {
  return parseConfig(text, { file: 'tocsin.yaml', env: {} })
}

test('a file with the old names means the same as one with the new ones', () => {
  expect(JSON.stringify(load(ofOldVersion).config)).toBe(JSON.stringify(load(ofToday).config))
  expect(load(ofOldVersion).hash).toBe(load(ofToday).hash)
})

test('each old name is told with its place and the new one, and the new ones are not', () => {
  const told = load(ofOldVersion).warnings.filter(({ problem }) => problem.includes('is called'))
  expect(told.map(({ line, path, problem }) => [line, path, problem])).toEqual([
    [7, 'feeds.brand.initial_poll', 'backlog is called initial_poll now'],

    [8, 'route.routes[0].mode', 'stage is called mode now'],
    [9, 'self_alerts', 'notices is called self_alerts now'],
    [9, 'self_alerts.fallback', 'or is called fallback now'],
    [10, 'retention.history', 'story is called history now'],
    [12, 'silences[0].max_severity', 'severity is called max_severity now'],
  ])
  expect(told[4]!.remedy).toBe('write history: the next version no longer reads the old name')
  expect(load(ofToday).warnings.filter(({ problem }) => problem.includes('is called'))).toEqual([])
})

test('an old name is told alike where its value comes from a variable', () => {
  const text = ofOldVersion.replace('story: 30d', "story: '${KEPT:-30d}'")
  const told = load(text).warnings.map(({ problem }) => problem)
  expect(told).toContain('story is called history now')
})

test('both names of one key are a mistake that names the two', () => {
  expect(() => load(`${ofToday}\nnotices: {sink: siem}\n`)).toThrow(
    'self_alerts: notices and self_alerts are the same key under two names; keep one of the two',
  )
})

test.each([
  ['retention: {story: 30d}', 'retention: {story: soon}', '10:13 retention.history:'],
  ['backlog: summarise', 'backlog: summary_of_all', 'feeds.brand.initial_poll:'],
])('a wrong value under an old name is refused at its place: %s as %s', (right, wrong, place) => {
  expect(() => load(ofOldVersion.replace(right, wrong))).toThrow(place)
})

test('an old name is only one where it stood: the severity of a feed is no old key', () => {
  expect(configKeys()).toContain('feeds.<name>.severity')
  const text = `${ofToday.replace('feeds: {', 'feeds: {leaks: {type: credentials, identifier: 9, severity: high}, ')}`
  expect(load(text).warnings.filter(({ problem }) => problem.includes('is called'))).toEqual([])
})
