/** A log line is one line, and no terminal acts upon what others wrote into it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createLogger, prettyLines } from '../../src/lib/logger.ts'
import { UpstreamError } from '../../src/upstream/error.ts'
import { actedUpon, hostileWords } from './hostile-words.ts'

type Say = (logger: ReturnType<typeof createLogger>, words: string) => void

const places: Record<string, Say> = {
  'a field': (logger, words) => logger.info({ uid: words, list: [words] }, 'note'),
  'a field of a field': (logger, words) => logger.info({ deep: { deeper: { words } } }, 'note'),
  'an error of the world': (logger, words) =>
    logger.warn({ err: new UpstreamError('timeout', words) }, 'note'),
  'an error of ours, with its stack': (logger, words) =>
    logger.error({ err: new Error(words) }, 'note'),
  'a cause': (logger, words) =>
    logger.error({ err: new Error('ours', { cause: new Error(words) }) }, 'note'),
  'what is thrown and no error': (logger, words) => logger.error({ err: words }, 'note'),
}

const forPeople = await prettyLines(false)

function linesOf(say: Say, words: string, isPretty: boolean): string[] {
  let text = ''
  const destination = { write: (line: string) => void (text += line) }
  say(
    createLogger({ level: 'trace', pretty: isPretty ? forPeople : undefined, destination }),
    words,
  )
  return text.replace(/\n$/, '').split('\n')
}

describe.each(Object.entries(places))('hostile words in %s', (_place, say) => {
  test.each(hostileWords)(
    'that %s make one line of JSON, with nothing to act upon',
    (_does, words) => {
      const [line, ...others] = linesOf(say, words, false)
      expect(others).toEqual([])
      expect(line).not.toMatch(actedUpon)
      expect(JSON.stringify(JSON.parse(line!))).toContain(JSON.stringify(words).slice(1, -1))
    },
  )

  test.each(hostileWords)('that %s begin no line of their own for people', (_does, words) => {
    const [first, ...others] = linesOf(say, words, true)
    expect(first).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] (?:INFO|WARN|ERROR): note$/)
    for (const line of others) {
      expect(line).toMatch(/^ {4}/)
      expect(line).not.toMatch(actedUpon)
    }
  })
})

test('of any words a line of JSON gives back the same', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (words) => {
      const [line] = linesOf(places['a field']!, words, false)
      expect(line).not.toMatch(actedUpon)
      expect(JSON.parse(line!)).toMatchObject({
        uid: words.toWellFormed(),
        list: [words.toWellFormed()],
      })
    }),
    { numRuns: 40 },
  )
})
