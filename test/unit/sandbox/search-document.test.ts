import { expect, test } from 'vitest'
import { createGenerator } from '../../../src/sandbox/history/generator.ts'
import type { SandboxEvent } from '../../../src/sandbox/history/history.ts'
import { readStolen } from '../../../src/sandbox/history/draft.ts'
import { luceneMatcher, parseLucene, toSearchDocument } from '../../../src/sandbox/api/lucene.ts'

const group = { id: 1, name: 'one', tenantId: 1, identifiers: [{ id: 5, name: 'Example Bank' }] }

function anEvent(given: Partial<SandboxEvent>): SandboxEvent {
  return createGenerator(1).make(group, Date.UTC(2026, 2, 1), given)
}

test('fields go by their whole path, without its first part, and by their last name', () => {
  const data = { Actor: { name: 'n0va' }, tags: [{ name: 'latest' }, { name: 'v2' }], port: 22 }
  const { fields } = toSearchDocument(anEvent({ type: 'forum_post', severity: 'high', data }))
  expect(fields['data.actor.name']).toEqual(['n0va'])
  expect(fields['actor.name']).toEqual(['n0va'])
  expect(fields['name']).toEqual(['n0va', 'latest', 'v2'])
  expect(fields['port']).toEqual(['22'])
  expect(fields['type']).toEqual(['forum_post'])
  expect(fields['metadata.severity']).toEqual(['high'])
  expect(fields['estimated_created_at']).toEqual(['2026-03-01T00:00:00.000Z'])
})

test('the text is what the event says, without marks, and what a tenant noted is not in it', () => {
  const { text } = toSearchDocument(
    anEvent({
      uid: 'paste/site/1',
      type: 'paste',
      highlights: { content: ['a <mark>hit</mark> here'] },
      data: { content: 'first line', has_cvv: true, count: 7 },
      tags: ['private-tag'],
      notes: 'private note',
    }),
  )
  expect(text.split('\n').toSorted()).toEqual(
    ['a hit here', 'first line', 'paste/site/1', 'Example Bank'].toSorted(),
  )
})

test('a raw item is searched by its own words', () => {
  const { text, fields } = toSearchDocument(anEvent({ raw: { odd: ['one', { deeper: 'two' }] } }))
  expect(text).toBe('one\ntwo')
  expect(fields['odd.deeper']).toEqual(['two'])
})

test('the names of fields that every object has are none of a document', () => {
  const { fields } = toSearchDocument(anEvent({ data: JSON.parse('{"__proto__": {"a": "b"}}') }))
  expect(Object.getPrototypeOf(fields)).toBe(Object.prototype)
  expect(fields['a']).toEqual(['b'])
})

test('a stealer log holds what its highlights show, the same at each reading', () => {
  const event = anEvent({ type: 'stealer_log' })
  const stolen = readStolen(event)
  const [shown] = event.highlights['credentials.password'] ?? []
  expect(stolen?.credentials[0]?.password).toBe(shown)
  expect(readStolen(structuredClone(event))).toEqual(stolen)
  expect(toSearchDocument(event).fields['credentials.password']).toContain(shown)
  expect(readStolen(anEvent({ type: 'paste' }))).toBeNull()
})

test('stealer logs differ in how much they hold, from next to nothing to several pages', () => {
  const generator = createGenerator(1)
  const logs = Array.from({ length: 60 }, () => generator.make(group, 0, { type: 'stealer_log' }))
  const counts = logs.map((event) => readStolen(event)?.credentials.length ?? 0)
  expect(Math.min(...counts)).toBeLessThan(6)
  expect(Math.max(...counts)).toBeGreaterThan(40)
  const cookies = logs.flatMap((event) => readStolen(event)?.cookies ?? [])
  expect(cookies.every((cookie) => /T\d\d:\d\d:\d\d\.\d{3}$/.test(cookie.expires_utc))).toBe(true)
})

test('what an event is given to hold, it holds', () => {
  const cookies = [{ host_key: 'h', path: '/', expires_utc: 'e', name: 'n', value: 'v' }]
  const stolen = readStolen(anEvent({ type: 'stealer_log', stolen: { cookies } }))
  expect(stolen?.cookies).toEqual(cookies)
  expect(stolen?.credentials.length).toBeGreaterThan(0)
})

test('one in two pastes gives away an owner, a repository and an Azure tenant, not in its highlight', () => {
  const generator = createGenerator(1)
  const pastes = Array.from({ length: 200 }, () => generator.make(group, 0, { type: 'paste' }))
  const open = pastes.filter(({ data }) => String(data?.['content']).includes('AZURE_TENANT_ID='))
  expect(open.length).toBeGreaterThan(60)
  expect(open.length).toBeLessThan(140)
  expect(String(open[0]?.data?.['content'])).toMatch(/github\.com\/example-bank\/infra-\d+\.git/)
  expect(JSON.stringify(pastes.map(({ highlights }) => highlights))).not.toContain('AZURE')
})

test('the name of a field is asked for in small and capital letters', () => {
  const document = toSearchDocument(anEvent({ raw: { οδος: 'x' } }))
  for (const query of ['_exists_:οδος', '_exists_:ΟΔΟΣ', 'ΟΔΟΣ:x'])
    expect([query, luceneMatcher(parseLucene(query))(document)]).toEqual([query, true])
})
