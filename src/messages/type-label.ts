import type { ThreatEvent } from '../events/threat-event.ts'
import { describerOf } from './families.ts'
import { inertLine } from './inert-line.ts'
import { messageLimits } from './message.ts'
import { readFields } from './read-fields.ts'

/** A type in plain words, as the messages about its events have it: `stealer_log` → "Stealer log". */
export function typeLabel(type: string): string {
  const description = describerOf(type)({
    feed: '',
    event: { ...blank, type },
    fields: readFields(null, {}),
    id: null,
    secret: null,
  })
  return inertLine(description.typeLabel, messageLimits.typeLabel)
}

/** "stealer logs", "bots for sale": several of a type, within a sentence. */
export function typesInSentence(type: string): string {
  const label = typeLabel(type)
  const [, noun = label, rest = ''] = /^(.*?)( (?:for|in|of|on) .*)?$/u.exec(label) ?? []
  const plural = noun.endsWith('s') ? noun : `${noun}s`
  return `${plural.charAt(0).toLowerCase()}${plural.slice(1)}${rest}`
}

/** Of an event nothing but its type. */
const blank = {
  uid: '',
  kind: 'event' as const,
  source: '',
  severity: '',
  originalSeverity: null,
  createdAtMs: null,
  matchedAtMs: null,
  ignoredAtMs: null,
  remediatedAtMs: null,
  url: null,
  tags: [],
  notes: null,
  identifiers: [],
  highlights: {},
} satisfies Omit<ThreatEvent, 'type'>
