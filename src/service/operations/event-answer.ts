import { z } from 'zod'
import { parseErrorBody } from '../transport/error-body.ts'
import type { Answer } from '../transport/failures.ts'
import { readAnswer } from '../read-answer.ts'
import { wireActivityAnswer, wireFullEvent, type WireFullEvent } from '../wire/events.ts'

export type EventAnswer =
  | { kind: 'detail'; event: WireFullEvent; data: Record<string, unknown> }
  /** The type has no full event; nobody knows the uid; its data is empty; it is about another event. */
  | { kind: 'none'; why: 'unsupported' | 'not_found' | 'empty' | 'mismatch' }

const wireEvents = z.union([
  z.looseObject({ activity: wireFullEvent }).transform(({ activity }) => [activity]),
  z.looseObject({ items: z.array(wireFullEvent) }).transform(({ items }) => items),
  wireFullEvent.transform((event) => [event]),
])

/** Whether a refusal only says that there is no full event. */
export function saysNoDetail({ status, body }: Answer): boolean {
  return status === 404 || (status === 400 && parseErrorBody(body).code === 'UNSUPPORTED')
}

/**
 * The answer about one event: bare, or within `activity` or `items` as other versions of the service
 * give it; or a refusal of which `saysNoDetail` holds.
 */
export function readEvent(answer: Answer, uid: string): EventAnswer {
  if (answer.status === 404) return { kind: 'none', why: 'not_found' }
  if (answer.status === 400) return { kind: 'none', why: 'unsupported' }
  const events = readAnswer(answer, wireEvents)
  const event = events.find(({ metadata }) => metadata?.uid === uid) ?? events.find(isAnonymous)
  if (!event) return { kind: 'none', why: events.length === 0 ? 'not_found' : 'mismatch' }
  const data = event.data ?? {}
  return Object.keys(data).length === 0
    ? { kind: 'none', why: 'empty' }
    : { kind: 'detail', event, data }
}

/** The answer of the older operation, in which the uid stands in the header or in the data. */
export function readActivity(answer: Answer, uid: string): EventAnswer {
  const { header, data } = readAnswer(answer, wireActivityAnswer).activity
  const shown = header?.uid ?? data?.['uid'] ?? uid
  if (shown !== uid) return { kind: 'none', why: 'mismatch' }
  if (!data || Object.keys(data).length === 0) return { kind: 'none', why: 'empty' }
  return { kind: 'detail', event: { event_type: header?.type, metadata: { uid }, data }, data }
}

function isAnonymous({ metadata }: WireFullEvent): boolean {
  return metadata?.uid === undefined || metadata.uid === null
}
