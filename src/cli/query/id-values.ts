/** Ids as arguments and options take them, alone and several; each refuses anything else. */
import { InvalidArgumentError } from 'commander'
import { listValue } from './option-values.ts'

/** Of a thing at the service: a whole number from 1 on, below 2^53. */
export function wholeId(text: string): number {
  const id = /^\d{1,16}$/.test(text) ? Number(text) : 0
  if (id >= 1 && Number.isSafeInteger(id)) return id
  throw new InvalidArgumentError('Write the id, a whole number of at least 1.')
}

/** One of several arguments. */
export function anotherId(text: string, before: readonly number[] = []): number[] {
  return [...before, wholeId(text)]
}

/** `77,78`. */
export function idList(text: string): number[] {
  return listValue(text).map(wholeId)
}

export function uuid(text: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text.toLowerCase()
  throw new InvalidArgumentError('Write a UUID, such as 7e5f1c70-0000-4000-8000-000000000001.')
}

/** Of a report that is being made. Its form is not described: servers of today give UUIDs. */
export function requestIdValue(text: string): string {
  if (/^[\w.-]{1,100}$/.test(text)) return text
  throw new InvalidArgumentError('Write the id of the request as the service gave it.')
}

/** One of several arguments. */
export function anotherUuid(text: string, before: readonly string[] = []): string[] {
  return [...before, uuid(text)]
}
