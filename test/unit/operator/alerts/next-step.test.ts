import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  nextStep,
  settleMs,
  type ConditionNote,
  type Step,
} from '../../../../src/operator/alerts/self-alerts.ts'

const minute = 60_000
const slow = { sinceMs: undefined, waitMs: 5 * minute }
const atOnce = { sinceMs: undefined, waitMs: 0 }

interface Look {
  atMs: number
  /** When the picture was read that is looked at; left out: at the look. */
  readMs?: number
  condition?: typeof slow | { sinceMs: number; waitMs: number }
  isCovered?: boolean
  /** The replica dies after it said something, before it could note that. */
  dies?: boolean
}

/** What was said, as the uids of the notices: the same one twice is one notice. */
function rehearse(looks: Look[]): { said: string[]; noted: ConditionNote | undefined } {
  const said: string[] = []
  let noted: ConditionNote | undefined
  for (const { atMs, readMs = atMs, condition, isCovered = false, dies = false } of looks) {
    let step: Step | undefined
    while ((step = nextStep(noted, condition, { nowMs: atMs, readMs, isCovered, via: 'soc' }))) {
      const uid = `${step.verb} ${noted?.sinceMs}`
      if (step.verb !== 'note' && said.at(-1) !== uid) said.push(uid)
      if (step.verb !== 'note' && dies) break
      noted = step.to
    }
  }
  return { said, noted }
}

test('a condition is said once it has lasted, and once more when it is over', () => {
  const looks = [0, 4, 5, 6, 7].map((at) => ({ atMs: at * minute, condition: slow }))
  expect(rehearse(looks.slice(0, 2)).said).toEqual([])
  expect(rehearse(looks).said).toEqual(['say_begin 0'])
  const over = [{ atMs: 8 * minute }, { atMs: 18 * minute - 1 }]
  expect(rehearse([...looks, ...over]).said).toEqual(['say_begin 0'])
  const settled = rehearse([...looks, ...over, { atMs: 18 * minute }])
  expect(settled).toEqual({ said: ['say_begin 0', 'say_end 0'], noted: undefined })
})

test('one that is over before it was said is never heard of', () => {
  const looks = [{ atMs: 0, condition: slow }, { atMs: minute }, { atMs: 30 * minute }]
  expect(rehearse(looks)).toEqual({ said: [], noted: undefined })
})

test('one that is gone stays gone for a replica whose picture is older', () => {
  const begun = [{ atMs: 0, condition: atOnce }, { atMs: 1000 }]
  const older = { atMs: 2000, readMs: 900, condition: atOnce }
  const later = { atMs: 1000 + settleMs }
  expect(rehearse([...begun, older, later]).said).toEqual(['say_begin 0', 'say_end 0'])
  const newer = { ...older, readMs: 1001 }
  expect(rehearse([...begun, newer, later]).said).toEqual(['say_begin 0'])
})

test('one that comes back within ten minutes is the same, however often', () => {
  const looks = Array.from({ length: 50 }, (_look, i) => ({
    atMs: i * (settleMs - 1),
    ...(i % 2 === 0 && { condition: atOnce }),
  }))
  expect(rehearse(looks).said).toEqual(['say_begin 0'])
})

test('one that is known to be old still gets the time to mend after a start', () => {
  const old = { sinceMs: -100 * minute, waitMs: 10 * minute }
  expect(rehearse([0, 9].map((at) => ({ atMs: at * minute, condition: old }))).said).toEqual([])
  expect(rehearse([0, 10].map((at) => ({ atMs: at * minute, condition: old }))).said).toEqual([
    `say_begin ${old.sinceMs}`,
  ])
})

test('one that another explains waits until that one is over, and is not said to be over unsaid', () => {
  const covered = [0, 10].map((at) => ({ atMs: at * minute, condition: slow, isCovered: true }))
  expect(rehearse(covered).said).toEqual([])
  const uncovered = { atMs: 11 * minute, condition: slow }
  expect(rehearse([...covered, uncovered]).said).toEqual(['say_begin 0'])
  expect(rehearse([...covered, { atMs: 11 * minute }]).noted).toBeUndefined()
})

test('a begin that was decided is said although the replica died and the trouble is gone', () => {
  const dead = { atMs: 0, condition: atOnce, dies: true }
  const { said } = rehearse([dead, { atMs: minute }, { atMs: minute + settleMs }])
  expect(said).toEqual(['say_begin 0', 'say_end 0'])
})

test('every begin is followed by at most one end, and none begins again before its end', () => {
  const look = fc.record({
    afterMs: fc.integer({ min: 1, max: 20 * minute }),
    condition: fc.constantFrom(undefined, slow, atOnce),
    isCovered: fc.boolean(),
    dies: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(look, { maxLength: 60 }), (given) => {
      let atMs = 0
      const looks = given.map(({ afterMs, condition, ...rest }) => {
        atMs += afterMs
        return { atMs, ...rest, ...(condition && { condition }) }
      })
      const { said, noted } = rehearse(looks)
      const begins = said.filter((_uid, i) => i % 2 === 0)
      const ends = said.filter((_uid, i) => i % 2 === 1)
      expect(begins.every((uid) => uid.startsWith('say_begin '))).toBe(true)
      expect(ends).toEqual(
        begins.slice(0, ends.length).map((uid) => uid.replace('say_begin', 'say_end')),
      )
      expect(new Set(said).size).toBe(said.length)
      const isOpen = begins.length > ends.length
      expect(isOpen && noted === undefined).toBe(false)
    }),
  )
})
