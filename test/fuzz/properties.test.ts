/** The promises of the fuzz targets, held against inputs that are drawn by their grammar. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readAnswer } from '../../src/upstream/session.ts'
import { UpstreamError } from '../../src/upstream/error.ts'
import { wireReportRequest } from '../../src/upstream/resources/reports.ts'
import { parseReport } from '../../src/feed-types/reports.ts'
import type { Target } from './engine/target.ts'
import { fuzz as addresses } from './targets/addresses.ts'
import { fuzz as config } from './targets/config.ts'
import { fuzz as matcher } from './targets/matcher.ts'
import { fuzz as messages } from './targets/messages.ts'
import { fuzz as pages } from './targets/pages.ts'
import { fuzz as times } from './targets/times.ts'
import { runs as casesFor } from '../support/runs.ts'

/** Texts with a zero byte between them, as the targets take them. */
function bytes(...parts: (string | number[])[]): Uint8Array {
  const texts = parts.map((part) => (typeof part === 'string' ? `${part}\0` : Buffer.from(part)))
  return Buffer.concat(texts.map((part) => Buffer.from(part)))
}

const anyBytes = fc.uint8Array({ maxLength: 300 })
const anyText = fc.string({ unit: 'grapheme' })

/** Texts of these characters only: almost right far more often than any text. */
function written(characters: string, maxLength = 40): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...characters.split('')), maxLength })
}

const json = fc.oneof(
  fc.json(),
  fc.json().map((items) => `{"items":[${items}],"next":null}`),
)
const cronField = fc.oneof(
  fc.constantFrom(
    '*',
    '*/2',
    '*/15',
    '0',
    '7',
    '31',
    '1-5',
    'mon',
    'sun-sat',
    'jan',
    '1,15',
    '0-59/20',
  ),
  written('0123456789*/-,LW#', 6),
)
const quotable = written('ab"\\\n,()[]|*+?{}^$.é ', 20)
const address = written('ab.@<>"%[]:1 é\t_-\\', 30)

const drawn: Record<string, { target: Target; inputs: fc.Arbitrary<Uint8Array>; runs: number }> = {
  'a page with its places changed, through every type of feed': {
    target: pages,
    inputs: fc.tuple(fc.nat(3), anyBytes).map(([kind, rest]) => bytes([kind, 1, ...rest])),
    runs: 400,
  },
  'any JSON for a page, through every type of feed': {
    target: pages,
    inputs: fc.tuple(fc.nat(3), json).map(([kind, text]) => bytes([kind, 0], text)),
    runs: 300,
  },
  'a part of a configuration with any JSON in it': {
    target: config,
    inputs: fc
      .tuple(fc.constantFrom('accounts', 'feeds', 'sinks', 'route', 'silences'), fc.json())
      .map(([part, value]) => Buffer.from(`${part}: ${value}\n`)),
    runs: 150,
  },
  'a matcher, quoted': {
    target: matcher,
    inputs: fc
      .tuple(fc.constantFrom('=', '!=', '=~', '!~'), quotable, fc.array(quotable))
      .map(([operator, value, values]) =>
        bytes(`tag${operator}${JSON.stringify(value)}`, ...values),
      ),
    runs: 400,
  },
  'a cron': {
    target: times,
    inputs: fc
      .tuple(fc.array(cronField, { minLength: 5, maxLength: 5 }), fc.nat(4))
      .map(([fields, zone]) => bytes([0], fields.join(' '), [zone])),
    runs: 150,
  },
  'a duration': {
    target: times,
    inputs: written('0123456789msmhd.-+e ', 16).map((text) => bytes([1], text)),
    runs: 300,
  },
  'a timestamp': {
    target: times,
    inputs: fc
      .tuple(
        fc.date({ noInvalidDate: true }),
        fc.constantFrom('', 'Z', '+02:00', '-2359', '+24:00'),
      )
      .map(([date, zone]) => bytes([2], date.toISOString().replace('Z', zone))),
    runs: 300,
  },
  'a Retry-After': {
    target: times,
    inputs: fc
      .oneof(
        written('0123456789.-e ', 24),
        fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
      )
      .map((text) => bytes([3], text)),
    runs: 300,
  },
  'a moment of the command line': {
    target: times,
    inputs: fc
      .oneof(written('0123456789-:TZ+.dhm ', 24), fc.date({ noInvalidDate: true }).map(String))
      .map((text) => bytes([4], text)),
    runs: 300,
  },
  'addresses of mail': {
    target: addresses,
    inputs: fc
      .tuple(address, address, address)
      .map(([host, from, to]) => bytes(`smtp://${host}`, `${from} <a@b.example>`, to)),
    runs: 400,
  },
  'an event of any texts, in every dialect': {
    target: messages,
    inputs: fc
      .tuple(fc.nat(255), fc.array(anyText, { minLength: 1, maxLength: 6 }))
      .map(([shape, texts]) => bytes([shape], ...texts)),
    runs: 100,
  },
}

test.each(Object.entries(drawn))('%s', async (_what, { target, inputs, runs }) => {
  await fc.assert(
    fc.asyncProperty(inputs, async (input) => {
      await expect(Promise.resolve(input).then(target)).resolves.toBeUndefined()
    }),
    { numRuns: casesFor({ short: runs / 5, long: runs }) },
  )
})

test('any JSON for a request of a report is one, or breaks the contract', () => {
  const report = fc.record(
    { id: fc.nat(), title: fc.jsonValue(), summary: fc.jsonValue(), tags: fc.jsonValue() },
    { requiredKeys: ['id'] },
  )
  const answer = fc.oneof(fc.jsonValue(), fc.record({ status: fc.string(), report }))
  fc.assert(
    fc.property(answer, (value) => {
      expect(['report', 'contract']).toContain(outcomeOf(JSON.stringify(value)))
    }),
    { numRuns: casesFor({ short: 60, long: 300 }) },
  )
})

function outcomeOf(body: string): string {
  try {
    const read = readAnswer({ status: 200, headers: {}, body, sentAtMs: 0 }, wireReportRequest)
    const end = { requestId: 'r', outcome: 'completed', report: read.report ?? null } as const
    return parseReport(end, 'high').kind
  } catch (error) {
    if (error instanceof UpstreamError) return error.reason
    throw error
  }
}
