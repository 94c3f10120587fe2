import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { severities, type KnownSeverity } from '../../../src/event.ts'
import {
  findSilence,
  isSilenceProblem,
  maxSilenceMs,
  newSilence,
  parseSilence,
  silencesConfig,
  silenceText,
  type Silence,
  type SilenceRequest,
} from '../../../src/routing/silences.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aRoutableEvent } from '../../support/routing.ts'

const nowMs = Date.UTC(2026, 10, 21, 12)
const hourMs = 3_600_000

function aRequest(overrides: Partial<SilenceRequest> = {}): SilenceRequest {
  return {
    id: 's1',
    matchers: ['type="paste"'],
    labels: ['team'],
    forMs: hourMs,
    owner: 'jo',
    reason: 'known campaign',
    severity: 'medium',
    machines: false,
    nowMs,
    ...overrides,
  }
}

function aSilence(overrides: Partial<SilenceRequest> = {}): Silence {
  const silence = newSilence(aRequest(overrides))
  if (isSilenceProblem(silence)) throw new Error(JSON.stringify(silence))
  return silence
}

function mistakesIn(overrides: Partial<SilenceRequest>): string[] {
  const result = newSilence(aRequest(overrides))
  if (!isSilenceProblem(result)) return []
  return result.mistakes.map(({ place, problem }) => `${place}: ${problem}`)
}

function found(silences: Silence[], severity = 'low', atMs = nowMs, type = 'paste'): unknown {
  const input = aRoutableEvent({ event: aThreatEvent({ severity, type }) })
  return findSilence(silences, input, atMs)?.id
}

describe('a silence', () => {
  test('holds from its begin to just before its end', () => {
    const silences = [aSilence()]
    expect(found(silences, 'low', nowMs - 1)).toBeUndefined()
    expect(found(silences, 'low', nowMs)).toBe('s1')
    expect(found(silences, 'low', nowMs + hourMs - 1)).toBe('s1')
    expect(found(silences, 'low', nowMs + hourMs)).toBeUndefined()
  })

  test('needs all of its matchers to hold', () => {
    const silences = [aSilence({ matchers: ['type="paste"', 'team!="brand"'] })]
    expect(found(silences)).toBe('s1')
    expect(found(silences, 'low', nowMs, 'chat')).toBeUndefined()
  })

  test('never hides an event above its severity', () => {
    const upwards = ['info', 'low', 'medium', 'high', 'critical']
    fc.assert(
      fc.property(
        fc.constantFrom<KnownSeverity>(...severities),
        fc.constantFrom(...severities),
        (ceiling, severity) => {
          const isHidden = found([aSilence({ severity: ceiling })], severity) !== undefined
          expect(isHidden).toBe(upwards.indexOf(severity) <= upwards.indexOf(ceiling))
        },
      ),
    )
  })

  test('never hides an event of an unknown severity, whatever it says', () => {
    const every = aSilence({ severity: 'critical', matchers: ['severity=~".*"'] })
    expect(found([every], 'critical')).toBe('s1')
    expect(found([every], 'apocalyptic')).toBeUndefined()
  })
})

describe('a new silence', () => {
  test('begins now, by an operator, and ends after its time', () => {
    expect(aSilence()).toMatchObject({
      id: 's1',
      startsAtMs: nowMs,
      endsAtMs: nowMs + hourMs,
      owner: 'jo',
      reason: 'known campaign',
      maxSeverity: 'medium',
      origin: 'operator',
    })
  })

  test.each<[string, Partial<SilenceRequest>]>([
    ['until: more than 30 days after it begins', { forMs: 30 * 24 * hourMs + 1 }],
    ['until: ends before it begins', { forMs: 0 }],
    ['until: has no value', { forMs: Infinity }],
    ['matchers: an empty list, which would mean every event', { matchers: [] }],
    ['matchers.1: not a matcher', { matchers: ['type=paste', 'paste'] }],
    ['matchers.0: neither a name of an event nor a label of a feed', { matchers: ['typ!=paste'] }],
    ['owner: has no value', { owner: ' ' }],
    ['reason: has no value', { reason: '' }],
    ['reason: not a short text', { reason: 'two\nlines' }],
    ['reason: not a short text', { reason: 'x'.repeat(501) }],
    ['severity: not one of the known words', { severity: 'hihg' }],
    ['id: not a usable id', { id: 'No Good' }],
    ['id: not a usable id', { id: 'no good' }],
    ['id: not a usable id', { id: '-no' }],
    ['id: not a usable id', { id: 'n'.repeat(41) }],
  ])('is refused: %s', (mistake, overrides) => {
    expect(mistakesIn(overrides)).toEqual([mistake])
  })

  test('is told all of its mistakes at once, each with what to write instead', () => {
    const result = newSilence(aRequest({ owner: '', severity: 'x', matchers: ['a b'] }))
    const mistakes = isSilenceProblem(result) ? result.mistakes : []
    expect(mistakes.map(({ place }) => place)).toEqual(['matchers.0', 'owner', 'severity'])
    for (const { remedy } of mistakes) expect(remedy).not.toBe('')
  })

  test('may last 30 days, and know the labels of the feeds', () => {
    expect(mistakesIn({ forMs: 30 * 24 * hourMs, matchers: ['team="brand"'] })).toEqual([])
    expect(mistakesIn({ id: `0${'-'.repeat(39)}` })).toEqual([])
  })
})

describe('a stored silence', () => {
  test('is read back as it was', () => {
    const silence = aSilence({ matchers: ['severity>=low', 'identifier=~"a\\.b|c"'] })
    const read = parseSilence(JSON.parse(silenceText(silence)))
    expect(JSON.stringify(read)).toBe(JSON.stringify(silence))
    expect(found([aSilence()])).toBe('s1')
  })

  test('that is none is a problem and no failure', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (json) => {
        expect(isSilenceProblem(parseSilence(json))).toBe(true)
      }),
    )
  })
})

describe('a silence of the file', () => {
  const written = {
    matchers: ['type=paste'],
    until: '2026-11-21T13:00:00+01:00',
    owner: 'jo',
    reason: 'known',
    max_severity: 'low',
  }

  test('without a begin starts 30 days before its end, so that it never lasts longer', () => {
    const [silence] = silencesConfig.parse([written])
    expect(silence).toMatchObject({
      endsAtMs: nowMs,
      startsAtMs: nowMs - maxSilenceMs,
      origin: 'config',
    })
  })

  test('has an id of its content: the same for the same, another for another', () => {
    const idOf = (file: object): string | undefined => silencesConfig.parse([file])[0]?.id
    expect(idOf(written)).toMatch(/^c[0-9a-f]{8}$/)
    expect(idOf({ ...written })).toBe(idOf(written))
    for (const [key, value] of Object.entries({ reason: 'x', owner: 'al', max_severity: 'high' })) {
      expect(idOf({ ...written, [key]: value })).not.toBe(idOf(written))
    }
    expect(idOf({ ...written, matchers: ['type=chat'] })).not.toBe(idOf(written))
  })
})
