import fc from 'fast-check'
import { expect, test } from 'vitest'
import { buildAttachment, toCsvRow, type CsvRow } from '../../../src/messages/csv.ts'
import { aMember, hostileTexts } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import { anyUnicode, linkable, unseenCharacters } from './any-unicode.ts'
import { runs } from '../../support/runs.ts'

const formulaStarts = '=+-@＝＋－＠'.split('')
/** What a spreadsheet would take for a formula, also behind what it may strip. */
const dangerous = /^["`\s]*[=+\-@＝＋－＠]/u
const lead = fc.constantFrom(
  '',
  ' ',
  '"',
  "'",
  '\t',
  '\r',
  '\n',
  '\u200B',
  '\uFEFF',
  '\u00A0',
  '; ',
)

const anyCell = fc.oneof(
  anyUnicode,
  fc.constantFrom(...hostileTexts, ''),
  fc
    .tuple(fc.array(lead, { maxLength: 4 }), fc.constantFrom(...formulaStarts), anyUnicode)
    .map(([before, start, after]) => `${before.join('')}${start}${after}`),
)

const anyRow: fc.Arbitrary<CsvRow> = fc.record({
  severity: anyCell,
  type: anyCell,
  uid: anyCell,
  title: anyCell,
  identifiers: anyCell,
  feed: anyCell,
  created: anyCell,
  matched: anyCell,
  fetched: anyCell,
  tags: anyCell,
  link: anyCell,
  account: anyCell,
})

test('whatever the rows hold, the file parses back to as many rows of twelve harmless cells', () => {
  fc.assert(
    fc.property(fc.array(anyRow, { maxLength: 5 }), (rows) => {
      const lines = parse(textOf(rows))
      expect(lines).toHaveLength(rows.length + 1)
      for (const line of lines) {
        expect(line).toHaveLength(12)
        for (const cell of line) {
          expect(cell).not.toMatch(dangerous)
          expect(cell).not.toMatch(unseenCharacters)
          expect(cell).not.toMatch(/[\r\n]/)
        }
      }
    }),
    { numRuns: runs({ short: 100, long: 500 }) },
  )
})

test('where the semicolon separates, no cell begins a formula either', () => {
  fc.assert(
    fc.property(anyRow, (row) => {
      const [, line = ''] = textOf([row]).split('\r\n')
      for (const cell of line.split(/[;|]/)) expect(cell).not.toMatch(dangerous)
    }),
    { numRuns: runs({ short: 100, long: 500 }) },
  )
})

test.each([
  ['=1+1', "'=1+1"],
  [' =1+1', "'=1+1"],
  ['"=1+1', '\'"=1+1'],
  ['\u200B@SUM(A1)', "'@SUM(A1)"],
  ['\t-2', "'-2"],
  ['＝1', "'＝1"],
  ['a;=1+1', "a;'=1+1"],
  ['a\r\nb', 'a b'],
  ['a-b', 'a-b'],
])('%j stands in its cell as %j', (title, shown) => {
  expect(parse(textOf([{ ...aRow, title }]))[1]?.[3]).toBe(shown)
})

test('a row is what the message about the event says, and never a secret', () => {
  const event = aThreatEvent({
    type: 'leaked_credential',
    identifiers: [{ id: 1, name: 'acme.com' }],
  })
  const secret = 'hunter2-in-clear'
  const row = toCsvRow(aMember({ event, secret, detail: { password: 'h••••2' } }))
  expect(row).toMatchObject({ severity: 'high', type: 'leaked_credential', feed: 'brand' })
  expect(row.identifiers).toBe('acme[.]com')
  expect(row.title).not.toMatch(linkable)
  expect(textOf([row])).not.toContain(secret)
})

test('a type of the feed is cleaned and defanged as the rest of its row is', () => {
  const event = aThreatEvent({ type: `\u202Ehttps://evil.example/x\n${'y'.repeat(200)}` })
  const { type } = toCsvRow(aMember({ event }))
  expect(type).toMatch(/^hxxps:\/\/evil\[\.\]example\/x y+…$/u)
  expect(type).not.toMatch(linkable)
  expect(type.length).toBeLessThanOrEqual(120)
})

test('what no mail server would take is cut, and says so', () => {
  const rows = Array.from({ length: 30_000 }, () => ({ ...aRow, title: 'x'.repeat(200) }))
  const { fileName, contentType, content } = buildAttachment(rows, 'tocsin digest/2026')
  expect({ fileName, contentType }).toEqual({
    fileName: 'tocsin-digest-2026.csv',
    contentType: 'text/csv; charset=utf-8',
  })
  expect(content.length).toBeLessThanOrEqual(6 * 1024 * 1024)
  const lines = parse(Buffer.from(content).toString())
  const left = rows.length - (lines.length - 2)
  expect(left).toBeGreaterThan(0)
  expect(lines.at(-1)?.[0]).toMatch(new RegExp(`^${left} more rows left out`))
})

const aRow: CsvRow = {
  severity: 'high',
  type: 'paste',
  uid: 'paste/x/1',
  title: 'Paste',
  identifiers: 'a; b',
  feed: 'brand',
  created: '2026-11-01T12:00:00.000Z',
  matched: '',
  fetched: '',
  tags: 'x',
  link: '',
  account: 'main',
}

function textOf(rows: readonly CsvRow[]): string {
  return Buffer.from(buildAttachment(rows, 'rows').content).toString()
}

/** RFC 4180 read character by character, apart from the code under test. */
function parse(text: string): string[][] {
  const rows: string[][] = [[]]
  let cell = ''
  let isQuoted = false
  const source = text.replace(/^\uFEFF/, '')
  for (let at = 0; at < source.length; at += 1) {
    const character = source[at]!
    if (isQuoted && character === '"' && source[at + 1] === '"') {
      cell += '"'
      at += 1
    } else if (character === '"') isQuoted = !isQuoted
    else if (!isQuoted && (character === ',' || character === '\r')) {
      rows.at(-1)!.push(cell)
      cell = ''
      if (character === '\r' && source[at + 1] === '\n' && at + 2 < source.length) rows.push([])
      if (character === '\r') at += 1
    } else cell += character
  }
  if (isQuoted) throw new Error('a quote is left open')
  return rows
}

test('rows that were never read are counted in the last line too', () => {
  const { content } = buildAttachment([aRow, aRow], 'digest', 5)
  expect(Buffer.from(content).toString().trimEnd().split('\r\n').at(-1)).toMatch(
    /^"3 more rows left out/,
  )
})
