/** Items of a page that are no events: each must be kept aside alone, and the rest of its page go on. */
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
  'a uid that is a number': { metadata: { uid: 17 } },
  'a uid that is null': { metadata: { uid: null } },
  'a uid that is a list': { metadata: { uid: [uid] } },
  'a uid that is an object': { metadata: { uid: { toString: 'a' } } },
  'a uid with a line end': { metadata: { uid: 'paste/x/1\nforged' } },
  'a uid with a zero byte': { metadata: { uid: 'paste/x/\u0000' } },
  'a uid with an escape': { metadata: { uid: 'paste/\u001B[2J/1' } },
  'a uid of half a character': { metadata: { uid: 'paste/x/\uD800' } },
  'a uid of 600 characters': { metadata: { uid: huge } },
  "a uid of Tocsin's own": { metadata: { uid: 'notice/tocsin/1' } },
  'the uid beside its metadata': { uid, metadata: {} },
}

/** Each put where a search item has something else. */
const wrong: Record<string, unknown> = { 'a number': -1.5, 'a list': [[]], 'an object': { a: {} } }

const places: Record<string, (value: unknown) => unknown> = {
  type: (value) => ({ metadata: { uid, type: value } }),
  severity: (value) => ({ metadata: { uid, severity: value } }),
  'the time of creation': (value) => ({ metadata: { uid, estimated_created_at: value } }),
  'the time of the match': (value) => ({ metadata: { uid, matched_at: value } }),
  'the link': (value) => ({ metadata: { uid, flare_url: value } }),
  tags: (value) => ({ metadata: { uid }, tenant_metadata: { tags: { a: value } } }),
  notes: (value) => ({ metadata: { uid }, tenant_metadata: { notes: value } }),
  identifiers: (value) => ({ metadata: { uid }, identifiers: { a: value } }),
  'the name of an identifier': (value) => ({ metadata: { uid }, identifiers: [{ id: value }] }),
  'the whole tenant': (value) => ({ metadata: { uid }, tenant_metadata: [value] }),
}

export function badItems(): BadInput<unknown>[] {
  const misplaced = Object.entries(places).flatMap(([place, put]) =>
    Object.entries(wrong).map(([kind, value]) => ({
      name: `${kind} for ${place}`,
      content: put(value),
    })),
  )
  return [
    ...Object.entries(shapes).map(([name, content]) => ({ name: `an item: ${name}`, content })),
    ...misplaced.map(({ name, content }) => ({ name: `an item: ${name}`, content })),
  ]
}
