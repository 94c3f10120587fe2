/** What arrives is bounded before it is parsed, wherever the pieces end. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BoundedText, itemLimits, type AnswerLimits } from '../../../src/upstream/bounded-text.ts'

const wide: AnswerLimits = { textBytes: Infinity, bytes: 1_000_000, values: 100_000 }

/** The text as it is kept when it arrives in pieces of so many bytes. */
function read(text: string, limits: Partial<AnswerLimits> = {}, pieceBytes = 1_000): string {
  const bounded = new BoundedText({ ...wide, ...limits })
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    bounded.add(bytes.subarray(at, at + pieceBytes))
  }
  return bounded.end()
}

function items(count: number, item = '{}'): string {
  return `{"items":[${Array.from({ length: count }, () => item).join(',')}],"next":null}`
}

const everyPieceSize = [1, 2, 3, 5, 7, 1_000]

test('whatever is within the limits comes through unchanged, however it is cut into pieces', () => {
  const pieceBytes = fc.integer({ min: 1, max: 50 })
  fc.assert(
    fc.property(fc.json(), fc.boolean(), pieceBytes, (json, isEscaped, bytes) => {
      const text = isEscaped ? escapeAll(json) : json
      expect(read(text, { textBytes: 1_000_000 }, bytes)).toBe(text)
    }),
  )
})

test('long strings are cut between characters, and all else stays', () => {
  const string = fc
    .string({ unit: 'binary', maxLength: 40 })
    .filter((text) => !text.includes('\uFFFD'))
  const value = fc.dictionary(string, fc.oneof(string, fc.integer()), { maxKeys: 5 })
  fc.assert(
    fc.property(
      value,
      fc.boolean(),
      fc.integer({ min: 1, max: 30 }),
      (members, isEscaped, bytes) => {
        const json = JSON.stringify(members)
        const kept = read(isEscaped ? escapeAll(json) : json, { textBytes: 20 }, bytes)
        const parsed = Object.entries(JSON.parse(kept) as Record<string, unknown>)
        expect(kept).not.toContain('\uFFFD')
        for (const [at, [, original]] of Object.entries(members).entries()) {
          const [, cut] = parsed[at] ?? []
          if (typeof original !== 'string' || typeof cut !== 'string') continue
          expect(
            original === cut || (cut.endsWith('…') && original.startsWith(cut.slice(0, -1))),
          ).toBe(true)
        }
      },
    ),
  )
})

test.each(everyPieceSize)('of a string its first bytes are kept, in pieces of %i', (pieceBytes) => {
  const limits = { textBytes: 10 }
  const text = (value: string): string => `{"a":"${value}","b":"short"}`
  const kept = (value: string): unknown => JSON.parse(read(text(value), limits, pieceBytes))
  expect(kept('0123456789')).toEqual({ a: '0123456789', b: 'short' })
  expect(kept('0123456789a')).toEqual({ a: '0123456789…', b: 'short' })
  expect(kept('012345678é!')).toEqual({ a: '012345678é…', b: 'short' })
  expect(kept(String.raw`0123456\u00e9!`)).toEqual({ a: '0123456é…', b: 'short' })
  expect(kept(String.raw`012345678\"\"\\`)).toEqual({ a: '012345678"…', b: 'short' })
  expect(kept(String.raw`\n`.repeat(20))).toEqual({ a: `${'\n'.repeat(5)}…`, b: 'short' })
  expect(kept(`${'x'.repeat(5_000)}\\"${'y'.repeat(5_000)}`)).toEqual({
    a: 'xxxxxxxxxx…',
    b: 'short',
  })
})

test('too many values are refused however they are nested', () => {
  const limits = { values: 1_000 }
  for (const one of ['[],', '{},', '[[],[]],', '1,', '"",', '[']) {
    expect(() => read(`[${one.repeat(1_100)}`, limits)).toThrow(/over 1000 values/)
  }
})

test('a limit itself holds: one value or one byte more is too much', () => {
  expect(() => read('[1,[1],1]', { values: 4 })).not.toThrow()
  expect(() => read('[1,[1],1]', { values: 3 })).toThrow(/over 3 values/)
  expect(() => read(' '.repeat(2_048), { bytes: 2_048 })).not.toThrow()
  expect(() => read(' '.repeat(2_049), { bytes: 2_048 })).toThrow(/over 2 KiB/)
  const page = '{"items":[{"uid":"a","late":1}]}'
  const [toLate, less] = ['[{"uid":"a"'.length, '{"uid":"a"'.length]
  expect(read(page, { itemBytes: toLate })).toBe(page)
  expect(read(page, { itemBytes: less })).toBe('{"items":[{"uid":"a"}]}')
})

test('what is still too large after its strings were cut is refused', () => {
  const limits = { textBytes: 10, bytes: 2_048 }
  expect(() => read(items(10, `"${'x'.repeat(1_000)}"`), limits)).not.toThrow()
  expect(() => read(items(200, `"${'x'.repeat(1_000)}"`), limits)).toThrow(/over 2 KiB/)
  expect(() => read(' '.repeat(3_000), limits)).toThrow(/over 2 KiB/)
})

test.each(everyPieceSize)(
  'of a large item lists and objects are cut, and its neighbours kept whole, in pieces of %i',
  (pieceBytes) => {
    const limits = { itemBytes: 76 }
    const long = Array.from({ length: 50 }, (_none, at) => ({ at: [at], text: ']},"{[' }))
    const text = JSON.stringify({
      items: [{ uid: 'a' }, { uid: 'b', deep: { long }, late: 1 }, { uid: 'c', more: [[], {}] }],
      next: 'cursor',
    })
    const { items: kept, next } = JSON.parse(read(text, limits, pieceBytes)) as {
      items: Record<string, unknown>[]
      next: unknown
    }
    expect(kept).toEqual([
      { uid: 'a' },
      { uid: 'b', deep: { long: [{ at: [0], text: ']},"{[' }] }, late: 1 },
      { uid: 'c', more: [[], {}] },
    ])
    expect(next).toBe('cursor')
    const nested = `{"items":[{"uid":"d","in":${'['.repeat(5_000)}${']'.repeat(5_000)}}]}`
    const page = JSON.parse(read(nested, limits, pieceBytes)) as { items: unknown[] }
    expect(page.items).toMatchObject([{ uid: 'd' }])
    expect(JSON.stringify(page).length).toBeLessThan(150)
    const full = `{"data":{"uid":"e","list":[${'1,'.repeat(500)}1],"late":true}}`
    expect(JSON.parse(read(full, limits, pieceBytes))).toMatchObject({ data: { uid: 'e' } })
    expect(read(full, limits, pieceBytes).length).toBeLessThan(100)
  },
)

test('an event that comes alone is whole with 200 kB, and cut beyond half a megabyte instead of refused', () => {
  const event = (members: number): string =>
    JSON.stringify({
      data: { uid: 'x/y/1', list: Array(members).fill('x'.repeat(1_000)), last: 1 },
    })
  expect(read(event(200), itemLimits)).toBe(event(200))
  const cut = read(event(2_000), itemLimits)
  expect(cut.length).toBeLessThan(600 * 1_024)
  expect(JSON.parse(cut)).toMatchObject({ data: { uid: 'x/y/1' } })
})

test('what is kept takes little more than its length in memory, even where it comes byte by byte', () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const bounded = new BoundedText(wide)
  gc()
  const before = process.memoryUsage().heapUsed
  const text = Buffer.from(`[${'"a",'.repeat(40_000)}1]`)
  for (const byte of text) bounded.add(Uint8Array.of(byte))
  gc()
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(10 * text.length)
  expect(bounded.end()).toHaveLength(text.length)
})

/** Every character of every string as an escape. */
function escapeAll(json: string): string {
  return json.replaceAll(/"(?:[^"\\]|\\.)*"/g, (string) => {
    const text = JSON.parse(string) as string
    const units = Array.from({ length: text.length }, (_none, at) => text.charCodeAt(at))
    return `"${units.map((unit) => String.raw`\u${unit.toString(16).padStart(4, '0')}`).join('')}"`
  })
}

test.each(everyPieceSize)(
  'of an item of very many members the first are kept, and of an answer that is no page all, in pieces of %i',
  (pieceBytes) => {
    const many = JSON.stringify(
      Object.fromEntries(Array.from({ length: 99 }, (_, n) => [`k${n}`, n])),
    )
    const page = read(`{"items":[${many},{"uid":"b"}]}`, { itemBytes: 76 }, pieceBytes)
    const { items: kept } = JSON.parse(page) as { items: object[] }
    expect(page.length).toBeLessThan(130)
    expect(kept).toEqual([expect.objectContaining({ k0: 0, k7: 7 }), { uid: 'b' }])
    const some = { text: 'x'.repeat(90) }
    const whole = JSON.stringify({ one: some, two: some, three: some, four: 4 })
    expect(read(whole, { itemBytes: 76 }, pieceBytes)).toBe(whole)
    const last = JSON.stringify({ items: [some], next: 'cursor' })
    expect(read(last, { itemBytes: 76 }, pieceBytes)).toBe(last)
  },
)

test.each(everyPieceSize)(
  'what closes more than it opened is kept alike, in pieces of %i',
  (pieceBytes) => {
    const text =
      '"c"}items":[{"a":"long enough to be c9"},{"b":[1,2,3ut"},{"b"${:[1,2,3,4,5,6]}],"n":"c"}'
    const limits = { pageSize: 1, textBytes: 5, itemBytes: 16, bytes: 257, values: 97 }
    expect(read(text, limits, pieceBytes)).toBe(read(text, limits))
  },
)
