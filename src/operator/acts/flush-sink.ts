/** Makes the digests of a sink due before their time. */
import { outletsOf } from '../../delivery/outlets.ts'
import { endWindowNow, hasDigest } from '../../grouping/digest-flush.ts'
import { redisNow } from '../../redis/scripts.ts'
import type { SinkConfig } from '../../sinks/sink-types.ts'
import type { OpenLedgers } from '../open-ledgers.ts'

/** Resolves with the labels of its destinations; undefined: the sink has no digest. */
export async function flushDigests(
  store: OpenLedgers,
  sinks: readonly SinkConfig[],
  name: string,
): Promise<string[] | undefined> {
  const sink = outletsOf(sinks).get(name)
  if (!sink || !hasDigest(sink)) return undefined
  const nowMs = await redisNow(store)
  for (const { id: destination } of sink.destinations) {
    await endWindowNow(store.ledgers, sink, { destination, nowMs })
  }
  return sink.destinations.map(({ label }) => label)
}

export const flushedWords = 'its digest is due: a running daemon sends it within seconds'
