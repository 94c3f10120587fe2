import type { Bytes } from './bytes.ts'

const scalars: unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  2 ** 53,
  -0,
  1e308,
  '',
  ' ',
  'x',
  '2026-11-01T12:00:00Z',
  [],
  {},
  [[]],
  [null],
  { a: 1 },
  { toString: 1 },
  ['x', 7, null],
  { length: 3 },
]

/** A copy of `sample` with some of its places changed as the bytes say. */
export function damaged(sample: unknown, bytes: Bytes): unknown {
  const copy: { root: unknown } = { root: structuredClone(sample) }
  for (let left = 8; left > 0 && !bytes.isOver(); left -= 1) change(copy, bytes)
  return copy.root
}

type Holder = Record<string, unknown>

function change(copy: { root: unknown }, bytes: Bytes): void {
  const places = placesIn(copy as unknown as Holder)
  const place = places[(bytes.byte() * 256 + bytes.byte()) % places.length]
  if (place === undefined) return
  const { holder, key } = place
  switch (bytes.byte() % 6) {
    case 0:
      delete holder[key]
      break
    case 1:
      holder[key] = structuredClone(bytes.pick(scalars))
      break
    case 2:
      holder[key] = bytes.text()
      break
    case 3:
      holder[key] = [holder[key], bytes.text()]
      break
    case 4:
      holder[bytes.text()] = structuredClone(holder[key])
      break
    default:
      holder[key] = bytes.text().repeat(1 + (bytes.byte() % 64))
  }
}

function placesIn(holder: Holder): { holder: Holder; key: string }[] {
  return Object.entries(holder).flatMap(([key, value]) => [
    { holder, key },
    ...(typeof value === 'object' && value !== null ? placesIn(value as Holder) : []),
  ])
}

/** What the text says as JSON; undefined where it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
