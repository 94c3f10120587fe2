/** One bad value for one key is one mistake, at that key, with a remedy; for each key of a table. */
import { expect, test } from 'vitest'
import { ConfigError, formatMistake, type Mistake } from '../../../src/config/config.ts'
import { parseConfig } from '../../../src/config/load.ts'

/** A place of the file into which one more key is written. */
type Place =
  | ''
  | 'redis'
  | 'http'
  | 'retention'
  | 'self_alerts'
  | 'canary'
  | 'accounts.main'
  | 'accounts.main.limits'
  | 'feeds.brand'
  | 'feeds.one'
  | 'sinks.soc'
  | 'sinks.siem'
  | 'sinks.oncall'
  | 'sinks.duty'
  | 'sinks.chat'
  | 'route.routes[0]'
  | 'silences[0]'

/** `left`: a key that makes room for the one that is written. */
function fileWith(place: Place, line: string, left: string): string {
  const keys = (own: Place, text: string): string => {
    const kept =
      own === place ? text.split(/, (?=\w+: )/).filter((key) => !key.startsWith(left)) : [text]
    return `{ ${[...kept, ...(own === place ? [line] : [])].filter(Boolean).join(', ')} }`
  }
  const top = place === '' ? `${line}\n` : ''
  return `${top}
redis: ${keys('redis', "url: 'redis://127.0.0.1:1'")}
http: ${keys('http', '')}
retention: ${keys('retention', '')}
self_alerts: ${keys('self_alerts', 'sink: soc')}
canary: ${keys('canary', 'sinks: [soc]')}
accounts:
  main: ${keys('accounts.main', `base_url: 'https://api.example.com', api_key: key, limits: ${keys('accounts.main.limits', '')}`)}
feeds:
  brand: ${keys('feeds.brand', 'type: events')}
  one: ${keys('feeds.one', 'type: events, identifier: 7')}
sinks:
  soc: ${keys('sinks.soc', "type: slack, url: 'https://hooks.slack.com/services/T/B/x'")}
  siem: ${keys('sinks.siem', "type: webhook, url: 'https://h.example.com/x', secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")}
  oncall: ${keys('sinks.oncall', "type: email, smtp: 'smtp://h.example.com', from: a@example.com, to: [b@example.com]")}
  duty: ${keys('sinks.duty', 'type: pagerduty, routing_key: c04d9e77b1Q4xZv8hJt2T7F3E9A51C2p')}
  chat: ${keys('sinks.chat', "type: teams, url: 'https://a.environment.api.powerplatform.com/workflows/b?sig=c'")}
route:
  sinks: [soc, siem, oncall, duty, chat]
  routes:
    - ${keys('route.routes[0]', "name: low, matchers: ['severity=low']")}
silences:
  - ${keys('silences[0]', "matchers: ['type=paste'], until: '2099-01-01T00:00Z', owner: jo, reason: r, max_severity: low")}
`
}

const values = {
  nothing: 'null',
  'an empty text': "''",
  'a blank text': "'  '",
  'a word': 'nonsense',
  'two words': "'two words'",
  'control characters': String.raw`"a\u0007b\u202e"`,
  true: 'true',
  'a number': '5',
  'a large number': '1e12',
  'a fraction': '0.5',
  zero: '0',
  'a negative number': '-1',
  'an empty list': '[]',
  'a list of numbers': '[1]',
  'a list with an empty text': "['']",
  'a list with control characters': String.raw`["a\u0007b\u202e"]`,
  'an empty section': '{}',
  'a section of something else': '{nonsense: 1}',
} as const

type Value = keyof typeof values

/** Which of the values are good, for each key. */
const keys: [place: Place, key: string, good: Value[], left?: string][] = [
  ['redis', 'embedded', ['a word', 'two words'], 'url'],
  ['http', 'hosts', []],
  ['http', 'metrics', []],
  ['retention', 'history', []],
  ['retention', 'max_bytes', []],
  ['self_alerts', 'sink', [], 'sink'],
  ['self_alerts', 'fallback', []],
  ['self_alerts', 'after', []],
  ['canary', 'every', []],
  ['canary', 'sinks', [], 'sinks'],
  ['canary', 'ping', []],
  ['accounts.main', 'link_hosts', []],
  ['accounts.main', 'organization_id', ['a number', 'a large number']],
  ['accounts.main', 'limits', ['an empty section'], 'limits'],
  ['accounts.main.limits', 'share', ['a fraction']],
  ['feeds.brand', 'detail', ['an empty list']],
  ['feeds.brand', 'lag_objective', []],
  ['feeds.brand', 'initial_poll', []],
  ['feeds.brand', 'rescan', ['an empty section']],
  ['feeds.brand', 'every', []],
  ['feeds.one', 'identifier', ['a number', 'a large number'], 'identifier'],
  ['sinks.soc', 'excerpts', []],
  ['sinks.oncall', 'excerpts', []],
  ['sinks.chat', 'excerpts', []],
  ['sinks.siem', 'excerpts', []],
  ['sinks.duty', 'excerpts', []],
  ['sinks.soc', 'time_zone', []],
  ['sinks.oncall', 'time_zone', []],
  ['sinks.chat', 'time_zone', []],
  ['sinks.siem', 'time_zone', []],
  ['sinks.duty', 'time_zone', []],
  ['sinks.duty', 'url', []],
  ['sinks.duty', 'routing_key', [], 'routing_key'],
  ['sinks.duty', 'routing_key_file', [], 'routing_key'],
  ['sinks.chat', 'url', [], 'url'],
  ['route.routes[0]', 'mode', []],
  ['silences[0]', 'matchers', [], 'matchers'],
  ['silences[0]', 'max_severity', [], 'max_severity'],
]

function mistakesIn(text: string): readonly Mistake[] {
  try {
    parseConfig(text, { file: 'tocsin.yaml', env: {} })
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes
    throw error
  }
}

test('the file is good without them', () => {
  expect(mistakesIn(fileWith('http', '', 'nothing')).map(formatMistake)).toEqual([])
})

/** What is wrong with how a bad value is refused; undefined: nothing. */
function findFault(mistakes: readonly Mistake[], text: string, where: string): string | undefined {
  const [first, ...others] = mistakes
  if (first === undefined) return 'it is taken'
  const said = mistakes.map(formatMistake).join(' | ')
  const [place, key] = [first.path, where.split('.').at(-1)]
  if (others.length > 0) return `more than one mistake: ${said}`
  if (!place.startsWith(where)) return `said of ${place}: ${said}`
  if (!text.split('\n')[first.line - 1]?.includes(`${key}: `)) return `wrong line: ${said}`
  if (first.problem.length < 5 || first.remedy.length < 10) return `says too little: ${said}`
  return /[\p{Cc}\u202E]|undefined|\[object/u.test(said)
    ? `says what it should not: ${said}`
    : undefined
}

test.each(keys)('%s.%s takes %j and refuses all else with one mistake', (...row) => {
  const [place, key, good, left = 'nothing'] = row
  const found = (Object.keys(values) as Value[]).map((value): [Value, string | undefined] => {
    const text = fileWith(place, `${key}: ${values[value]}`, left)
    return [value, findFault(mistakesIn(text), text, place === '' ? key : `${place}.${key}`)]
  })
  const taken = found.filter(([, fault]) => fault === 'it is taken').map(([value]) => value)
  expect(taken.toSorted()).toEqual(good.toSorted())
  expect(found.filter(([value, fault]) => fault !== undefined && !good.includes(value))).toEqual([])
})

test.each(["''", "'  '"])('a path of %s names no file, and is no file that is missing', (path) => {
  const text = fileWith('sinks.soc', `proxy_file: ${path}`, 'nothing')
  expect(mistakesIn(text)).toMatchObject([
    { problem: 'has no value', remedy: 'write the path of a file, or remove the line' },
  ])
})
