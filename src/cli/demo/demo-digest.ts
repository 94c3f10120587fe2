import type { Config } from '../../config/config.ts'
import { endWindowNow } from '../../digest/digest-turn.ts'
import { withTurns } from '../command-turns.ts'
import { digestSinkOf } from '../digest-sink.ts'

/** Does what `tocsin digests send <sink>` does: the window ends now, and the daemon sends its digest. */
export function endDigestNow(config: Config, sink: string): Promise<void> {
  return withTurns(config, async (parts) => {
    const digestSink = digestSinkOf(parts, config, sink)
    for (const { id } of digestSink.destinations) await endWindowNow(parts.turns, digestSink, id)
  })
}
