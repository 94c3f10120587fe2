import { createHash } from 'node:crypto'
import type { Destination } from './sink.ts'

/**
 * Lists a sink's destinations: the sink itself, or each e-mail recipient in `to`. Addresses that
 * differ only by case are the same recipient.
 */
export function listDestinations({
  name,
  to,
}: {
  name: string
  to?: readonly string[]
}): readonly Destination[] {
  if (to === undefined) return [{ id: name, label: name }]
  const byId = to.map((address): [string, Destination] => {
    const id = `${name}:${recipientHash(address)}`
    return [id, { id, label: address }]
  })
  return [...new Map(byId).values()]
}

/** 16 hex digits that stand for an address in ids; the same whatever its case. */
export function recipientHash(address: string): string {
  return createHash('sha256').update(address.toLowerCase()).digest('hex').slice(0, 16)
}
