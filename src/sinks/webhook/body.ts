/** The body of a webhook: one JSON document per delivery, the same bytes on every attempt. */
import { formatIso, renderEventData } from '../templates/event-data.ts'
import type { Delivery, DeliveryMember } from '../sink.ts'

/**
 * Depends on the content of the delivery alone: not on the attempt, the repeat mark or the clock.
 */
export function renderBody(delivery: Delivery): string {
  const { members } = delivery
  const elements = members.map((member) => renderElement(member, delivery.isTest))
  const [only = ''] = elements
  const isSingle = elements.length === 1
  const timestamp = formatIso(Math.max(...members.map((member) => member.fetchedAtMs)))
  const type = isSingle ? 'tocsin.event.v1' : 'tocsin.batch.v1'
  const body = isSingle ? only : `{"items":[${elements.join(',')}]}`
  return `{"type":"${type}","timestamp":"${timestamp}","data":${body}}`
}

/**
 * Puts U+FFFD for what databases refuse in a text of JSON: U+0000 and halves of surrogate pairs. A
 * feed gives both, and a template may write them.
 */
export function replaceUnstorable(json: string): string {
  const escapes = /\\(?:ud[89ab]..\\ud[c-f]..|u(?:0000|d[89a-f]..)|.)/gis
  const isRefused = /^\\u(?:0000|d...)$/is
  return json
    .toWellFormed()
    .replace(escapes, (escape) => (isRefused.test(escape) ? '\ufffd' : escape))
}

/** The bytes that a member takes in a body. */
export function measureMember(member: DeliveryMember): number {
  const element = renderEventData(member)
  measured.set(member, element)
  return Buffer.byteLength(element)
}

/** What was measured is sent soon. */
const measured = new WeakMap<DeliveryMember, string>()

function renderElement(member: DeliveryMember, isTest = false): string {
  return (isTest ? undefined : measured.get(member)) ?? renderEventData(member, isTest)
}
