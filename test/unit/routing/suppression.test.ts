/** Which rules keep an item from people, and that machines get every event all the same. */
import { expect, test } from 'vitest'
import { newSilence, isSilenceProblem, type Silence } from '../../../src/routing/silences.ts'
import { createRouter } from '../../../src/routing/router.ts'
import {
  allowsAll,
  decideVerdict,
  type Candidate,
  type SuppressionSetup,
} from '../../../src/routing/suppression.ts'
import { timeIntervalsConfig } from '../../../src/routing/time-intervals.ts'
import { aRoutableEvent, aTree } from '../../support/routing.ts'

const nowMs = Date.UTC(2026, 10, 21, 12)

function aSilence(machines: boolean): Silence {
  const silence = newSilence({
    id: 's1',
    matchers: ['feed="brand"'],
    labels: [],
    forMs: 3_600_000,
    owner: 'jo',
    reason: 'known campaign',
    severity: 'critical',
    machines,
    nowMs,
  })
  if (isSilenceProblem(silence)) throw new Error(JSON.stringify(silence))
  return silence
}

function aSetup(silences: Silence[] = []): SuppressionSetup {
  const tree = aTree({ muteTimeIntervals: ['this-year'], onMute: 'drop' })
  return {
    router: createRouter(tree),
    inhibitRules: [],
    timeIntervals: timeIntervalsConfig.parse({ 'this-year': [{ years: ['2026'] }] } as never),
    silences: () => silences,
    isForPeople: (sink) => sink === 'soc',
  }
}

function aCandidate(overrides: Partial<Candidate>): Candidate {
  const none = { closed: undefined, inhibitedBy: undefined, routes: [] }
  return { sink: 'soc', event: aRoutableEvent(), ...none, ...overrides }
}

test.each([
  ['what is closed at the service', aSetup(), { closed: 'ignored' }, 'ignored'],
  ['what a silence matches', aSetup([aSilence(false)]), {}, 'silence'],
  ['what another event inhibits', aSetup(), { inhibitedBy: 'outage' }, 'inhibition'],
  ['what its route mutes', aSetup(), { routes: ['root'] }, 'mute'],
] satisfies [string, SuppressionSetup, Partial<Candidate>, string][])(
  '%s is kept from people and sent to machines',
  (_what, setup, about, reason) => {
    expect(decideVerdict(setup, aCandidate(about), nowMs)).toMatchObject({
      act: 'suppress',
      reason,
    })
    const forMachines = aCandidate({ ...about, sink: 'siem' })
    expect(decideVerdict(setup, forMachines, nowMs)).toEqual({ act: 'send' })
    expect(allowsAll(setup, 'siem')).toBe(true)
    expect(allowsAll(setup, 'soc')).toBe(false)
  },
)

test('a silence of machines keeps its events from them too', () => {
  const setup = aSetup([aSilence(true)])
  const verdict = { act: 'suppress', reason: 'silence', rule: 's1' }
  for (const sink of ['siem', 'soc'])
    expect(decideVerdict(setup, aCandidate({ sink }), nowMs)).toEqual(verdict)
  expect(allowsAll(setup, 'siem')).toBe(false)
})
