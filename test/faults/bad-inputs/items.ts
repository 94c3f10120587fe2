/** Items of a page that are odd: one without a uid is kept aside alone, one with a uid is an event. */
import type { BadInput } from './bad-input.ts'

const uid = 'paste/x/1'
const huge = 'x'.repeat(600)

const shapes: Record<string, unknown> = {
  null: null,
  'a number': 7,
  'a text': 'paste/x/1',
  true: true,
  'a list': [],
  'a list of items': [{ metadata: { uid } }],
  'an empty object': {},
  'metadata that is null': { metadata: null },
  'metadata that is a text': { metadata: uid },
  'metadata that is a list': { metadata: [uid] },
  'no uid': { metadata: { type: 'paste' } },
  'an empty uid': { metadata: { uid: '' } },
  'a uid that is null': { metadata: { uid: null } },
  'a uid that is a list': { metadata: { uid: [uid] } },
  'a uid that is an object': { metadata: { uid: { toString: 'a' } } },
  'a uid with a line end': { metadata: { uid: 'paste/x/1\nforged' } },
  'a uid with a zero byte': { metadata: { uid: 'paste/x/\u0000' } },
  'a uid with an escape': { metadata: { uid: 'paste/\u001B[2J/1' } },
  'a uid of half a character': { metadata: { uid: 'paste/x/\uD800' } },
  'a uid of 600 characters': { metadata: { uid: huge } },
  "a uid of Tocsin's own": { metadata: { uid: 'notice/tocsin/1' } },
}

/** Each put where a search item has something else. */
const wrong: Record<string, unknown> = { 'a number': -1.5, 'a list': [[]], 'an object': { a: {} } }

const places: Record<string, (value: unknown) => { metadata: object }> = {
  type: (type) => ({ metadata: { type } }),
  severity: (severity) => ({ metadata: { severity } }),
  'the time of creation': (value) => ({ metadata: { estimated_created_at: value } }),
  'the time of the match': (value) => ({ metadata: { matched_at: value } }),
  'the link': (value) => ({ metadata: { flare_url: value } }),
  tags: (value) => ({ metadata: {}, tenant_metadata: { tags: { a: value } } }),
  notes: (value) => ({ metadata: {}, tenant_metadata: { notes: value } }),
  identifiers: (value) => ({ metadata: {}, identifiers: { a: value } }),
  'the name of an identifier': (value) => ({ metadata: {}, identifiers: [{ id: value }] }),
  'the whole tenant': (value) => ({ metadata: {}, tenant_metadata: [value] }),
}

/** Without a usable uid. */
export function badItems(): BadInput<unknown>[] {
  return Object.entries(shapes).map(([name, content]) => ({ name: `an item: ${name}`, content }))
}

/** With a uid, and something else odd. */
export function oddItems(): BadInput<unknown>[] {
  const misplaced = Object.entries(places).flatMap(([place, put]) =>
    Object.entries(wrong).map(([kind, value]) => ({
      place: `${kind} for ${place}`,
      item: put(value),
    })),
  )
  return misplaced.map(({ place, item }, at) => ({
    name: `an item: ${place}`,
    content: { ...item, metadata: { uid: `paste/odd/${at}`, ...item.metadata } },
  }))
}
