import { expect, test } from 'vitest'
import type { EventDetail, ThreatEvent } from '../../../src/event.ts'
import { describedTypes } from '../../../src/messages/types/families.ts'
import { renderMessage, type Message } from '../../../src/messages/message.ts'
import { eventTypeSamples } from '../../fixtures/event-types.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'

function render(event: Partial<ThreatEvent>, detail?: EventDetail | 'unavailable'): Message {
  const identifiers = [{ id: 1, name: 'acme.com' }]
  const subject = aMember({
    event: aThreatEvent({ highlights: {}, identifiers, ...event }),
    detail,
  })
  return renderMessage(subject, { attempt: 1, mayBeRepeat: false })
}

/** Keys of the full events of all types. */
const keys = new Set(eventTypeSamples.flatMap(({ full }) => Object.keys(full?.data ?? {})))

const wrong: unknown[] = [
  null,
  undefined,
  7,
  true,
  '',
  ' ',
  [],
  [null],
  {},
  { name: {} },
  { a: [] },
]

test.each(describedTypes)('%s copes with any key missing, null or of a wrong type', (type) => {
  expect(keys.size).toBeGreaterThan(30)
  for (const value of wrong) {
    const detail = Object.fromEntries([...keys].map((key) => [key, value]))
    const message = render({ type, uid: `${type}/source/1`, source: 'source' }, detail)
    expect(message.title).toMatch(/^[A-Z][^:]+: \S/u)
    expect(JSON.stringify(message)).not.toMatch(/\[object|undefined|NaN/u)
  }
})

test('a hint in the highlights is used where there is no detail', () => {
  const highlights = { identity_name: ['joe@acme.com'], imported_at: ['2026-01-05'] }
  const uid = 'leaked_credential/combolists/1'
  const message = render({ uid, type: 'leaked_credential', source: 'combolists', highlights })
  expect(message.title).toBe('Leaked credential: joe@acme[.]com in combolists')
  expect(message.facts).toContainEqual({
    label: 'Imported',
    value: '2026-01-05 00:00 UTC',
    kind: 'time',
    atMs: Date.UTC(2026, 0, 5),
  })
})
