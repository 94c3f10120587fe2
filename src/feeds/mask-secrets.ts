/**
 * Leaked secrets are masked before anything is stored: by the name of the field that holds them, at
 * any depth, and in free text by the shapes in which dumps write them. What comes out is bounded.
 */
import { fullMask, maskSecret } from '../events/mask-secret.ts'
import type { EventDetail } from '../events/threat-event.ts'
import { maskText, withoutMarks } from './mask-text.ts'
import { treatmentOf, type Treatment } from './secret-fields.ts'

/** Of a detail are kept: 64 levels, 20,000 code units a text, 200,000 in all, keys and values included. */
const detailLimits = { depth: 64, text: 20_000, all: 200_000 } as const

/** Masks every extract by its field's name and its own text, mark tags removed; `dump` as in `maskText`. */
export function maskHighlights(
  highlights: Readonly<Record<string, readonly string[]>>,
  dump = false,
): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(highlights).map(([field, extracts]) => {
      const treatment = treatmentOf(field)
      return [field, extracts.map((extract) => maskLeaf(extract, treatment, dump))]
    }),
  )
}

/** A copy of an event's `data`, secrets masked; what exceeds the bounds is replaced by "…" or left out. */
export function maskDetail(data: Readonly<Record<string, unknown>>): EventDetail {
  return maskObject(data, top())
}

/** As `maskDetail`, for whatever the service sent. */
export function maskSecrets(value: unknown): unknown {
  return maskValue(value, top())
}

function top(): Place {
  return { treatment: 'shown', depth: 0, budget: { left: detailLimits.all } }
}

interface Place {
  treatment: Treatment
  depth: number
  budget: { left: number }
}

function maskValue(value: unknown, place: Place): unknown {
  if (typeof value === 'string') return maskString(value, place)
  if (typeof value === 'number') return maskNumber(value, place)
  if (typeof value !== 'object' || value === null) return value
  if (place.depth >= detailLimits.depth) return '…'
  const below = { ...place, depth: place.depth + 1 }
  return Array.isArray(value) ? maskArray(value, below) : maskObject(value, below)
}

function maskString(text: string, { treatment, budget }: Place): string {
  const room = Math.min(detailLimits.text, budget.left)
  budget.left -= Math.min(text.length, room)
  return maskLeaf(cut(text, room), treatment)
}

function maskNumber(value: number, { treatment, budget }: Place): number | string {
  budget.left -= 8
  return treatment === 'masked' || treatment === 'hidden' ? fullMask : value
}

function maskArray(values: readonly unknown[], place: Place): unknown[] {
  const kept: unknown[] = []
  for (const value of values) {
    place.budget.left -= 1
    if (place.budget.left <= 0) break
    kept.push(maskValue(value, place))
  }
  return kept
}

function maskObject(object: object, place: Place): Record<string, unknown> {
  const isNamedSecret = namesSecret(object)
  const kept: [string, unknown][] = []
  for (const [key, value] of Object.entries(object)) {
    place.budget.left -= key.length + 1
    if (place.budget.left <= 0) break
    const treatment = treatmentOf(key, place.treatment)
    const isSecretValue = isNamedSecret && key.toLowerCase() === 'value' && treatment === 'shown'
    kept.push([
      key,
      maskValue(value, { ...place, treatment: isSecretValue ? 'masked' : treatment }),
    ])
  }
  return Object.fromEntries(kept)
}

/** `{name: 'password', value: …}`, as autofill data is written. */
function namesSecret(object: object): boolean {
  return Object.entries(object).some(
    ([key, value]) =>
      /^(?:name|key|field|label|type)$/iu.test(key) &&
      typeof value === 'string' &&
      treatmentOf(value) !== 'shown',
  )
}

function maskLeaf(marked: string, treatment: Treatment, dump = false): string {
  if (treatment === 'hidden' || treatment === 'cookie') return fullMask
  const text = withoutMarks(marked)
  return treatment === 'masked' ? maskSecret(text) : maskText(text, dump)
}

/** Well-formed, at most `max` code units and an ellipsis. */
export function cut(text: string, max: number): string {
  const wellFormed = text.toWellFormed()
  if (wellFormed.length <= max) return wellFormed
  return `${wellFormed.slice(0, Math.max(max, 0)).replace(/[\uD800-\uDBFF]$/u, '')}…`
}
