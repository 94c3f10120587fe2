/** `sinks flush`: ends the window of a digest now; a running daemon sends what it held. */
import { flushDigests, flushedWords } from '../../operator/acts/flush-sink.ts'
import { type CommonOptions, type Context, loadConfigFile, print } from '../context.ts'
import { recordCommand, withStore } from '../open/open-store.ts'
import { CommandError, findNamed, sanitize } from '../terminal.ts'

export async function flushSink(
  context: Context,
  name: string,
  options: CommonOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { digest } = findNamed(config.sinks, name, 'sink')
  if (!digest) {
    const named = config.sinks.filter((sink) => sink.digest).map((sink) => sink.name)
    const remedy =
      named.length === 0
        ? 'no sink has one; give it a digest in the configuration'
        : `those that have one: ${named.join(', ')}`
    throw new CommandError('mistake', `the sink "${name}" has no digest; ${remedy}`)
  }
  const destinations = await withStore(config, (store) =>
    recordCommand(context, store, { act: `/sinks/${name}/flush` }, () =>
      flushDigests(store, config.sinks, name),
    ),
  )
  print(context, options, {
    json: { sink: name, destinations },
    lines: () => (destinations ?? []).map((label) => `${sanitize(label)}: ${flushedWords}`),
  })
}
