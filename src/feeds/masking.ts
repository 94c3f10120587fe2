/**
 * The one place that masks secrets: in text by their shape, label or neighbours, in structured values
 * by the name of their field as well. Whatever is stored, sent or printed went through it; masking twice
 * is masking once.
 */
import { fullMask, maskSecret } from '../events/mask-secret.ts'
import type { EventDetail } from '../events/threat-event.ts'
import { isWindowsSid, labelledSpans } from './labelled-secrets.ts'
import { loginSpans } from './login-secrets.ts'
import { recordSpans } from './record-secrets.ts'
import { treatmentOf, type Treatment } from './secret-names.ts'
import { shapeSpans, type Span } from './secret-shapes.ts'
import { spokenSpans } from './spoken-secrets.ts'

/**
 * Masks what in free text reads as a secret; hosts, logins and addresses stay. In `dump` text (a
 * combolist, a stealer log), or where two lines or more look so, also plain `user:secret` lines. First and
 * last character remain. Mark tags, which would split a secret, are removed.
 */
export function maskText(text: string, dump = false): string {
  return untilStable(readable(text), (part) => spansIn(part, dump))
}

function spansIn(text: string, dump: boolean): Span[] {
  return [
    ...shapeSpans(text),
    ...labelledSpans(text),
    ...spokenSpans(text),
    ...loginSpans(text, dump),
    ...recordSpans(text),
  ]
}

/** As `maskText`, for a tag: `token:github` is how people write one, and stays. */
export function maskTag(text: string): string {
  return untilStable(readable(text), (part) => [
    ...shapeSpans(part),
    ...labelledSpans(part, true),
    ...loginSpans(part),
  ])
}

const identityPair =
  /^((?:[a-z][a-z0-9+.-]{0,30}:\/\/[^\s:|;,]+[\s:|;,]+[^\s:|;,]+|[^\s:|;,]*)[\s:|;,]+)(?!\/\/)(.+)$/isu

/**
 * As `maskText`, for a field that should hold a login alone, and holds `login:secret` where a dump was
 * read badly: whatever follows the login is masked as one, whichever of `: | ; ,`, tab or space comes
 * between. An address with a scheme may stand before the login.
 */
export function maskIdentity(text: string): string {
  return untilStable(readable(text).trim(), (part) => {
    const before = identityPair.exec(part)?.[1]?.length
    return [
      ...(before === undefined ? [] : [{ from: before, to: part.length }]),
      ...spansIn(part, true),
    ]
  })
}

/** Without mark tags, and without characters that nobody sees within a word (`pass\u00ADword`). */
function readable(text: string): string {
  return withoutMarks(text).replaceAll(
    /(?<=[\p{L}\p{N}])[\u00AD\u200B\u2060\uFEFF]+(?=[\p{L}\p{N}])/gu,
    '',
  )
}

/** Structure may come to light where a mask took another's place; each round only adds masks. */
const mostRounds = 6

function untilStable(text: string, find: (text: string) => Span[]): string {
  let left = text
  for (let round = 0; round < mostRounds; round += 1) {
    const masked = maskSpans(left, find(left))
    if (masked === left) break
    left = masked
  }
  return left
}

/** Masks each span; those that overlap are one. */
function maskSpans(text: string, spans: readonly Span[]): string {
  const merged: Span[] = []
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    const last = merged.at(-1)
    if (last === undefined || span.from >= last.to) merged.push({ ...span })
    else {
      last.to = Math.max(last.to, span.to)
      last.hidden = last.hidden === true || span.hidden === true
    }
  }
  let at = 0
  const parts: string[] = []
  for (const { from, to, hidden } of merged) {
    parts.push(text.slice(at, from), hidden ? fullMask : maskSecret(text.slice(from, to)))
    at = to
  }
  return parts.join('') + text.slice(at)
}

/** Shorter ones stand in words that have nothing to do with them. */
const leastKnown = 4

/**
 * Gives a function that masks these secrets wherever they literally stand in a text, as they are and
 * trimmed, mark tags removed from both. Secrets of fewer than 4 characters are left to the other masks.
 */
export function maskKnown(secrets: readonly string[]): (text: string) => string {
  const forms = secrets
    .flatMap((secret) => [secret, withoutMarks(secret)])
    .flatMap((secret) => [secret, secret.trim()])
    .filter((secret) => secret.length >= leastKnown)
    .toSorted((a, b) => b.length - a.length)
  const distinct = [...new Set(forms)]
  return (text) =>
    distinct.reduce(
      (left, secret) => left.replaceAll(secret, () => maskSecret(secret)),
      withoutMarks(text),
    )
}

const markTag = /^<\/?mark(?:\s[^<>]*)?>$/iu
const longestTag = 210

/** The service wraps matched terms in mark tags; they would split what the masks look for. Tags within tags go as well. */
export function withoutMarks(text: string): string {
  if (!/<\/?m/iu.test(text)) return text
  const kept: string[] = []
  let opens: number[] = []
  for (const piece of text.split(/(?<=>)|(?=<)/u)) {
    if (piece.startsWith('<')) opens.push(kept.length)
    kept.push(piece)
    if (!piece.endsWith('>')) continue
    const open = opens.pop()
    const isNear = open !== undefined && kept.length - open <= longestTag
    const tag = isNear ? kept.slice(open).join('') : ''
    if (open !== undefined && tag.length <= longestTag && markTag.test(tag)) kept.length = open
    else opens = []
  }
  return kept.join('')
}

/** Of a detail are kept: 64 levels, 20,000 code units a text, 200,000 in all, keys and values included. */
const detailLimits = { depth: 64, text: 20_000, all: 200_000 } as const

/**
 * Masks every extract by its field's name and its own text, mark tags removed; `dump` as in `maskText`,
 * `uid` that of the event: a cookie's own fields say little more than `value`.
 */
export function maskHighlights(
  highlights: Readonly<Record<string, readonly string[]>>,
  dump = false,
  uid = '',
): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(highlights).map(([field, extracts]) => {
      const treatment = treatmentOf(field, treatmentOfEvent(uid))
      return [maskKey(field), extracts.map((extract) => maskLeaf(extract, treatment, dump))]
    }),
  )
}

/**
 * A copy of the `data` of the event `uid`, secrets masked; what exceeds the bounds is replaced by "…" or
 * left out.
 */
export function maskDetail(data: Readonly<Record<string, unknown>>, uid = ''): EventDetail {
  const [index = '', source = ''] = uid.split('/')
  const dump = isDump(`${index} ${source}`)
  return maskObject(data, { ...top(), treatment: treatmentOfEvent(uid), dump })
}

/** Whether type or source tell of a combolist or a stealer log, where a bare `user:secret` is what it looks like. */
export function isDump(about: string): boolean {
  return /stealer|credential|combo|(?<!ransom)leak/iu.test(about)
}

/** The index of an event's uid is its kind. */
function treatmentOfEvent(uid: string): Treatment {
  return /^cookies?\//iu.test(uid) ? 'cookie' : 'shown'
}

/** As `maskDetail`, for whatever the service sent. */
export function maskSecrets(value: unknown): unknown {
  return maskValue(value, top())
}

function top(): Place {
  return { treatment: 'shown', dump: false, depth: 0, budget: { left: detailLimits.all } }
}

interface Place {
  treatment: Treatment
  dump: boolean
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

function maskString(text: string, { treatment, dump, budget }: Place): string {
  const room = Math.min(detailLimits.text, budget.left)
  budget.left -= Math.min(text.length, room)
  return maskLeaf(cut(text, room), treatment, dump)
}

function maskNumber(value: number, { treatment, budget }: Place): number | string {
  budget.left -= 8
  return treatment === 'shown' || treatment === 'of cookie' ? value : fullMask
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
    const isSecretValue = isNamedSecret && treatment === 'shown' && valueKey.test(key)
    kept.push([
      maskKey(key),
      maskValue(value, { ...place, treatment: isSecretValue ? 'masked' : treatment }),
    ])
  }
  return Object.fromEntries(kept)
}

const namingKey = /^(?:name|key|field|label|type|id|title)$/iu
const valueKey = /^(?:value|val|content|text|data|answer)$/iu

/** `{name: 'password', value: …}`, as autofill data is written. */
function namesSecret(object: object): boolean {
  return Object.entries(object).some(
    ([key, value]) =>
      namingKey.test(key) && typeof value === 'string' && treatmentOf(value) !== 'shown',
  )
}

/** A key may be `mail:secret` where a list was made a map; one that is a plain name stays without a look. */
function maskKey(key: string): string {
  return /[\s:=@|;,<]|.{24}/su.test(key) ? maskText(key) : key
}

function maskLeaf(marked: string, treatment: Treatment, dump: boolean): string {
  if (treatment === 'hidden' || treatment === 'cookie') return fullMask
  const text = withoutMarks(marked)
  if (treatment === 'masked') return isWindowsSid(text) ? text : maskSecret(text)
  return maskText(text, dump)
}

/** Well-formed, at most `max` code units and an ellipsis. */
export function cut(text: string, max: number): string {
  const wellFormed = text.toWellFormed()
  if (wellFormed.length <= max) return wellFormed
  return `${wellFormed.slice(0, Math.max(max, 0)).replace(/[\uD800-\uDBFF]$/u, '')}…`
}
