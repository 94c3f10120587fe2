/**
 * Whatever reads text that others wrote takes time that grows with its length, and not with its square:
 * meanwhile the whole daemon stands still.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withholds } from '../../src/masking/masking.ts'
import { cpuMs, explosiveTexts, frames, readers } from './explosive-search.ts'

const longLine = 20_000

let thread: Worker

beforeAll(() => {
  thread = new Worker(new URL('explosive-search.ts', import.meta.url), { execArgv: [] })
})
afterAll(async () => void (await thread.terminate()))

test.each(Object.keys(readers))('no text keeps the reader of %s busy', async (name) => {
  thread.postMessage(name)
  expect(await once(thread, 'message')).toEqual([[]])
})

/** What a long line or a long command repeats. */
test.each([
  ['a;', '.'],
  ['a.b:c:d', '://:'],
  ['', 'curl -u a: '],
])('one long line of %j and %j takes no longer than as much in short lines', (start, piece) => {
  const lineOf = (size: number): string => start + piece.repeat((size - 100) / piece.length)
  const leastMs = (text: string): number => Math.min(...[1, 2, 3].map(() => cpuMs(withholds, text)))
  const inShortLines = `${lineOf(300)}\n`.repeat(longLine / 200)
  expect(leastMs(lineOf(longLine))).toBeLessThan(Math.max(40, 4 * leastMs(inShortLines)))
})

/** Counted instead of timed: what the search for explosive texts says does not hang on the machine. */
test.each([
  ['with the square of the length', ({ length: all }: string) => (all * all) / 1_000_000, true],
  ['with the length', ({ length: all }: string) => all / 100, false],
  ['with the square, but hardly', ({ length: all }: string) => (all * all) / 1e10, false],
])('of a reader whose work grows %s it says so, or says nothing', (_growth, cost, found) => {
  const explosive = explosiveTexts(cost, {
    from: ['a'],
    measure: (read, text) => Number(read(text)),
  })
  expect(explosive).toEqual(found ? frames.map(([start, end]) => `${start}"a" and "${end}"`) : [])
})
