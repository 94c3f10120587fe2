import { createHash } from 'node:crypto'
import type { Audience, CommonConfig } from './config.ts'
import type { Destination, Sink } from './sink.ts'

export interface DescribedSink {
  name: string
  type: string
  limitPerSecond?: number | undefined
  timeZone?: string | undefined
  reveal?: boolean | undefined
  excerpts?: CommonConfig['excerpts']
  to?: readonly string[]
}

type SameKeys = keyof Sink & keyof DescribedSink

/** What a sink says of itself by its configuration alone. */
export function describeSink(
  config: DescribedSink,
  audience: Audience,
): Pick<Sink, SameKeys | 'audience' | 'destinations' | 'reveals' | 'hidesExcerpts'> {
  const { name, type, timeZone, limitPerSecond, reveal = false, excerpts } = config
  const destinations = listDestinations(config)
  const shows = { reveals: reveal, hidesExcerpts: excerpts === 'never' }
  return { name, type, audience, timeZone, destinations, limitPerSecond, ...shows }
}

/**
 * Lists a sink's destinations: the sink itself, or each e-mail recipient in `to`. Addresses that
 * differ only by case are the same recipient.
 */
export function listDestinations({
  name,
  to,
}: Pick<DescribedSink, 'name' | 'to'>): readonly Destination[] {
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
