import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ConfigError } from '../../../src/config/config.ts'
import { parseConfig } from '../../../src/config/load.ts'
import { runs } from '../../support/runs.ts'

const text = readFileSync(join(import.meta.dirname, '../../../config/tocsin.yaml'), 'utf8')
const env = {
  TOCSIN_BASE_URL: 'https://api.example.com',
  TOCSIN_API_KEY: 'the-secret-key',
  SLACK_WEBHOOK_URL: 'https://hooks.example.com/the-secret-token',
  SMTP_URL: 'smtp://user:the-secret-password@mail.example.com',
  SIEM_SECRET: 'the-secret-signature',
}

/** What is wrong with how a text is taken: it loads, or is refused with complete mistakes. */
function defectsOf(source: string, variables: Record<string, string> = env): unknown[] {
  try {
    parseConfig(source, { file: 'tocsin.yaml', env: variables })
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    if (error.mistakes.length === 0 || error.message.includes('the-secret')) return [error]
    return error.mistakes.filter(
      ({ line, column, problem, remedy }) =>
        line < 1 || column < 1 || problem === '' || remedy === '',
    )
  }
}

const lines = text.split('\n')
const someLine = fc.nat({ max: lines.length - 1 })
const scrap = fc.oneof(
  fc.constantFrom(
    ...'{}[]:#&*!|>%@`"\'-\t\n'.split(''),
    ': ',
    '${',
    '${A}',
    '<<: *a',
    '__proto__: 1',
  ),
  fc.string({ unit: 'binary', maxLength: 8 }),
)

test('a file with scraps of text put into it is read or refused, never a crash', () => {
  fc.assert(
    fc.property(fc.nat({ max: text.length }), scrap, (at, inserted) => {
      expect(defectsOf(text.slice(0, at) + inserted + text.slice(at))).toEqual([])
    }),
    { numRuns: runs({ short: 60, long: 300 }) },
  )
})

test('a file with lines left out, doubled or moved is read or refused, never a crash', () => {
  fc.assert(
    fc.property(someLine, someLine, fc.nat({ max: 3 }), (from, to, copies) => {
      const moved = lines.toSpliced(from, 1)
      const copied = Array<string>(copies).fill(lines[from]!)
      expect(defectsOf(moved.toSpliced(to, 0, ...copied).join('\n'))).toEqual([])
    }),
    { numRuns: runs({ short: 60, long: 300 }) },
  )
})

test('any value may stand at any key, never a crash', () => {
  const places = [...text.matchAll(/^( *(?:- )?\w+:).*$/gm)].map(([line]) => line)
  const value = fc.oneof(
    fc.constantFrom('', 'null', '~', '{}', '[]', '0', '-1', '1e400', '.nan', 'true', '{a: {b: 1}}'),
    fc.json().map((json) => json.replaceAll('\n', ' ')),
  )
  fc.assert(
    fc.property(fc.constantFrom(...places), value, (line, content) => {
      const key = /^ *(?:- )?\w+:/.exec(line)?.[0] ?? ''
      expect(defectsOf(text.replace(line, () => `${key} ${content}`))).toEqual([])
    }),
    { numRuns: runs({ short: 100, long: 400 }) },
  )
})

test('any text may stand in the variables, never a crash', () => {
  const words = fc.oneof(fc.string({ unit: 'binary' }), fc.webUrl(), fc.constantFrom('', ' ', '0'))
  const variables = fc.record({
    TOCSIN_BASE_URL: words,
    TOCSIN_API_KEY: words,
    SLACK_WEBHOOK_URL: words,
    SMTP_URL: words,
    SIEM_SECRET: words,
    TOCSIN_HTTP_PORT: words,
    MAIL_TO: words,
  })
  fc.assert(
    fc.property(variables, (given) => {
      expect(defectsOf(text, given)).toEqual([])
    }),
    { numRuns: runs({ short: 60, long: 300 }) },
  )
})

test.each([1, 30, 64, 500, 5000, runs({ short: 20_000, long: 100_000 })])(
  'a tree %i levels deep is read or refused, never a crash',
  (depth) => {
    const list = `${'['.repeat(depth)}${']'.repeat(depth)}`
    expect(defectsOf(`${text}\nextra: ${list}\n`)).toEqual([])
    expect(defectsOf(`route: ${'{routes: [{sinks: [a], '.repeat(depth)}`)).toEqual([])
    const routes = `${'{ routes: ['.repeat(depth)}${'] }'.repeat(depth)}`
    expect(defectsOf(text.replace('  routes:\n', `  routes:\n    - ${routes}\n`))).toEqual([])
  },
)
