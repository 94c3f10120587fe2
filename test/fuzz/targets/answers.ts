/** Answers as they arrive, in pieces and beyond their limits: what is kept is bounded, and still the same JSON. */
import { UpstreamError } from '../../../src/upstream/error.ts'
import { BoundedText, type AnswerLimits } from '../../../src/upstream/bounded-text.ts'
import { bytesOf, type Bytes } from '../engine/bytes.ts'
import { assertThat } from '../engine/target.ts'
import { damaged, jsonOf } from '../engine/wild-json.ts'

export const dictionary = ['{"items":[', '],"next":', '\\u00e9', '\\"', '"a":{', '[[', '},{']

const page = {
  items: [
    { metadata: { uid: 'a/b/1' }, list: [{ text: 'één' }, [1, [2]]] },
    { metadata: { uid: 'a/b/2' }, highlights: { text: ['\\"', '\u{1F600}'] } },
  ],
  next: 'cursor',
}

const wide: AnswerLimits = { textBytes: Infinity, bytes: Infinity, values: Infinity }

export function fuzz(data: Uint8Array): void {
  const bytes = bytesOf(data)
  const limits: AnswerLimits = {
    pageSize: bytes.byte() % 4 === 0 ? 1 : undefined,
    textBytes: bytes.byte() % 40,
    itemBytes: bytes.byte() % 2 === 0 ? bytes.byte() : undefined,
    bytes: 1 + bytes.byte() * 8,
    values: 1 + bytes.byte() * 2,
  }
  const pieceBytes = 1 + (bytes.byte() % 30)
  const text = textFrom(bytes).replace(/^\uFEFF+/u, '') // a decoder takes a byte order mark away
  assertThat(read(text, wide, pieceBytes) === text, 'changed within the limits', text)
  const kept = readBounded(text, limits, pieceBytes)
  if (kept === undefined) return
  assertThat(Buffer.byteLength(kept) <= limits.bytes, 'more than may be kept', { kept, limits })
  assertThat(kept === readBounded(text, limits, 1_000_000), 'differs by its pieces', {
    text,
    limits,
  })
  const whole = jsonOf(text)
  if (whole !== undefined) checkSame(whole, jsonOf(kept), { text, kept, limits })
}

function textFrom(bytes: Bytes): string {
  const isText = bytes.byte() % 2 === 0
  if (isText) return Buffer.from(bytes.text()).toString() // no half characters: they cannot arrive
  return Buffer.from(JSON.stringify(damaged(page, bytes)) ?? '').toString()
}

function read(text: string, limits: AnswerLimits, pieceBytes: number): string {
  const bounded = new BoundedText(limits)
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    bounded.add(bytes.subarray(at, at + pieceBytes))
  }
  return bounded.end()
}

function readBounded(text: string, limits: AnswerLimits, pieceBytes: number): string | undefined {
  try {
    return read(text, limits, pieceBytes)
  } catch (error) {
    if (error instanceof UpstreamError && error.fault === 'too_large') return undefined
    throw error
  }
}

/** Members and elements may be missing at the end, texts may be cut; all else is as it was. */
function checkSame(whole: unknown, kept: unknown, about: unknown): void {
  if (typeof whole === 'string' && typeof kept === 'string') {
    const isCut = kept.endsWith('…') && whole.startsWith(kept.slice(0, -1))
    assertThat(whole === kept || isCut, 'another text', about)
  } else if (Array.isArray(whole) && Array.isArray(kept)) {
    assertThat(kept.length <= whole.length, 'more elements', about)
    for (const [at, one] of kept.entries()) checkSame(whole[at], one, about)
  } else if (isObject(whole) && isObject(kept)) {
    // a name may be cut as well; then nothing tells which one it was
    for (const [name, one] of Object.entries(kept)) {
      if (Object.hasOwn(whole, name)) checkSame(whole[name], one, about)
      else assertThat(name.endsWith('…'), 'another name', about)
    }
  } else assertThat(Object.is(whole, kept), 'another value', about)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
