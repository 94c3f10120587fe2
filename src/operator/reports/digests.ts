/** Ends the windows of digests before they are due. */
import { endWindowNow, hasDigest } from '../../grouping/digest-flush.ts'
import type { FlushContext } from '../../grouping/flush-context.ts'
import type { Destination } from '../../sinks/sink.ts'

export interface EndedDigest {
  /** Its label. */
  destination: string
  messages: number
  said: string
}

/** Names of the sinks that have one. */
export function listDigestSinks({ sinks }: FlushContext): string[] {
  return [...sinks.values()].filter(hasDigest).map(({ name }) => name)
}

/** One for each destination; undefined: the sink has no digest. */
export async function endDigests(
  context: FlushContext,
  name: string,
  destinations: readonly Destination[],
): Promise<EndedDigest[] | undefined> {
  const sink = context.sinks.get(name)
  if (!sink || !hasDigest(sink)) return undefined
  const ended: EndedDigest[] = []
  for (const { id, label } of destinations) {
    const messages = await endWindowNow(context, sink, id)
    ended.push({ destination: label, messages: messages ?? 0, said: describeEnd(messages) })
  }
  return ended
}

function describeEnd(messages: number | undefined): string {
  if (messages === undefined) return 'a running daemon makes its digest just now'
  if (messages === 0) return 'nothing has come since the last digest'
  return 'its digest is queued, a running daemon sends it within seconds; the next window has begun'
}
