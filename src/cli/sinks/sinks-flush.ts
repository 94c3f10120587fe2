/** `sinks flush`: ends the window of a digest now; a running daemon sends what it held. */
import {
  endDigest,
  findDigestSink,
  type OpenEngine,
  useEngine,
} from '../../daemon/for-commands/engine.ts'
import { type CommonOptions, type Context, loadConfigFile, print } from '../context.ts'
import { withStore } from '../open/open-store.ts'
import { CommandError, findNamed, sanitize } from '../terminal.ts'

export async function flushSink(
  context: Context,
  name: string,
  options: CommonOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  findNamed(config.sinks, name, 'sink')
  const digests = await withStore(config, (store) =>
    useEngine(config, store, (engine) => endWindows(engine, name)),
  )
  print(context, options, {
    json: { sink: name, digests },
    lines: () => digests.map(({ destination, said }) => `${sanitize(destination)}: ${said}`),
  })
}

/** One for each destination. */
async function endWindows(
  engine: OpenEngine,
  name: string,
): Promise<{ destination: string; messages: number; said: string }[]> {
  const sink = requireDigestSink(engine, name)
  const ended = []
  for (const { id, label } of engine.sinks.get(name)?.destinations ?? []) {
    const messages = await endDigest(engine, sink, id)
    ended.push({ destination: label, messages: messages ?? 0, said: describeEnd(messages) })
  }
  return ended
}

function describeEnd(messages: number | undefined): string {
  if (messages === undefined) return 'a running daemon makes its digest just now'
  if (messages === 0) return 'nothing has come since the last digest'
  return 'its digest is queued, a running daemon sends it within seconds; the next window has begun'
}

/** Throws CommandError where the sink has no digest. */
function requireDigestSink(
  engine: OpenEngine,
  name: string,
): Exclude<ReturnType<typeof findDigestSink>, string[]> {
  const found = findDigestSink(engine, name)
  if (!Array.isArray(found)) return found
  const remedy =
    found.length === 0
      ? 'no sink has one; give it a digest in the configuration'
      : `those that have one: ${found.join(', ')}`
  throw new CommandError('mistake', `the sink "${name}" has no digest; ${remedy}`)
}
