import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Delivery, DeliveryMember } from '../../../../src/sinks/sink.ts'
import { measureMember, renderBody } from '../../../../src/sinks/webhook/body.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'

function delivery(members: DeliveryMember[], more: Partial<Delivery> = {}): Delivery {
  const destination = { id: 'siem', label: 'siem' }
  return { id: 'd1', destination, members, attempt: 1, mayBeRepeat: false, ...more }
}

const arbitraryText = fc.string({ unit: 'binary', maxLength: 3000 })

const arbitraryMember = fc
  .record({
    type: arbitraryText,
    source: arbitraryText,
    severity: arbitraryText,
    notes: fc.option(arbitraryText),
    tags: fc.array(arbitraryText, { maxLength: 60 }),
    identifiers: fc.array(fc.record({ id: fc.nat(), name: arbitraryText }), { maxLength: 60 }),
    highlights: fc.dictionary(arbitraryText, fc.array(arbitraryText, { maxLength: 20 })),
    detail: fc.dictionary(arbitraryText, fc.jsonValue()) as fc.Arbitrary<Record<string, unknown>>,
    labels: fc.dictionary(fc.string({ maxLength: 200 }), fc.string({ maxLength: 2000 })),
    url: fc.option(fc.string({ maxLength: 4000 })),
  })
  .map(({ detail, labels, ...event }) => aMember({ event: aThreatEvent(event), detail, labels }))

test('a body says the tenant and the next step, and null or nothing for what is not known', () => {
  const guidance = { notes: [], runbookUrls: [], mentions: [], nextStep: 'Isolate it.' }
  const event = aThreatEvent({ createdAtMs: null, matchedAtMs: null })
  const dataOf = (more: Partial<DeliveryMember>): Record<string, unknown> =>
    (JSON.parse(renderBody(delivery([aMember({ event, ...more })]))) as { data: object })
      .data as Record<string, unknown>
  const unknown = { created_at: null, matched_at: null, detail: null }
  const said = dataOf({ tenantId: 17, guidance })
  expect(said).toMatchObject({ ...unknown, tenant_id: 17, next_step: 'Isolate it.' })
  expect(said).not.toHaveProperty('detail_unavailable')
  expect(dataOf({ detail: 'unavailable' })).toMatchObject({ ...unknown, detail_unavailable: true })
})

describe('a batch', () => {
  test('takes exactly what its members measure, and the envelope', () => {
    fc.assert(
      fc.property(fc.array(arbitraryMember, { minLength: 2, maxLength: 4 }), (members) => {
        const measured = members.reduce((sum, member) => sum + measureMember(member), 0)
        const envelope = Buffer.byteLength(
          '{"type":"tocsin.batch.v1","timestamp":"2026-11-01T12:02:00.000Z","data":{"items":[]}}',
        )
        const commas = members.length - 1
        expect(Buffer.byteLength(renderBody(delivery(members)))).toBe(measured + envelope + commas)
      }),
      { numRuns: 30 },
    )
  })
})

test('the body is the same bytes on every attempt, repeat or not', () => {
  fc.assert(
    fc.property(arbitraryMember, fc.integer({ min: 2, max: 99 }), (member, attempt) => {
      const again = delivery([structuredClone(member)], { attempt, mayBeRepeat: true })
      expect(renderBody(again)).toBe(renderBody(delivery([member])))
    }),
    { numRuns: 50 },
  )
})

describe('size', () => {
  test('whatever an event holds, its body stays under 20 KB, parses, and says when it was cut', () => {
    fc.assert(
      fc.property(arbitraryMember, (member) => {
        const body = renderBody(delivery([member]))
        expect(Buffer.byteLength(body)).toBeLessThan(20_000)
        const { data } = JSON.parse(body)
        expect(data).toMatchObject({ id: member.id, uid: member.event.uid })
        // as text: V8 was seen to parse the key "\"" as "\\" after many objects with odd keys
        const isWhole = [member.event.highlights, member.detail].every((part) =>
          body.includes(JSON.stringify(part)),
        )
        expect(data.truncated === true || isWhole).toBe(true)
      }),
      { numRuns: 200 },
    )
  })

  test('is held at the boundary to the byte', () => {
    for (let length = 18_500; length < 20_500; length += 1) {
      const event = aThreatEvent({ highlights: { content: ['x'.repeat(length)] } })
      expect(Buffer.byteLength(renderBody(delivery([aMember({ event })])))).toBeLessThan(20_000)
    }
  })

  test('long extracts are shortened first, and the link and the rest stay', () => {
    const event = aThreatEvent({
      highlights: { content: ['é'.repeat(30_000)] },
      notes: 'n'.repeat(1000),
      tags: ['a', 'b'],
    })
    const { data } = JSON.parse(renderBody(delivery([aMember({ event })])))
    expect(data.truncated).toBe(true)
    expect(data.highlights.content[0]).toBe(`${'é'.repeat(2000)}…`)
    expect(data).toMatchObject({ notes: event.notes, tags: event.tags, url: event.url })
  })

  test('where extracts and detail cannot be shortened enough, they go and the rest stays', () => {
    const cells = Array.from({ length: 16 }, () => 'x'.repeat(130))
    const rows = Array.from({ length: 16 }, (_, row) => [`row ${row}`, [cells, cells, cells]])
    const detail = Object.fromEntries(rows)
    const event = aThreatEvent({ notes: 'n'.repeat(1000) })
    const { data } = JSON.parse(renderBody(delivery([aMember({ event, detail })])))
    expect(data).toMatchObject({ detail: null, highlights: {}, notes: event.notes })
    expect(data.truncated).toBe(true)
  })

  test('as the last resort the rest is cut too, but never an id, and no link is left half', () => {
    const event = aThreatEvent({
      uid: `stealer_log/x/${'1'.repeat(500)}`,
      notes: '\u0001'.repeat(30_000),
      tags: Array.from({ length: 5000 }, (_, index) => `tag ${index}`),
      url: `https://app.example.com/${'a'.repeat(30_000)}`,
    })
    const pageUrl = `https://tocsin.example.net/events/${'a'.repeat(600)}/5f2c9a1b7d3e4f6a8b0c1d2e`
    const { data } = JSON.parse(renderBody(delivery([aMember({ event, pageUrl })])))
    const whole = { id: 'item1', uid: event.uid, page_url: pageUrl }
    expect(data).toMatchObject({ ...whole, url: null, truncated: true })
    expect(data.tags.length).toBeGreaterThan(0)
    expect(data.notes).toMatch(/…$/)
  })
})
