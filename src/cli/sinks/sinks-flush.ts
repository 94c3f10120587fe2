/** `sinks flush`: ends the window of a digest now; a running daemon sends what it held. */
import { useEngine } from '../../daemon/for-commands/engine.ts'
import { endDigests, listDigestSinks } from '../../operator/reports/digests.ts'
import { type CommonOptions, type Context, loadConfigFile, print } from '../context.ts'
import { recordCommand, withStore } from '../open/open-store.ts'
import { CommandError, findNamed, sanitize } from '../terminal.ts'

export async function flushSink(
  context: Context,
  name: string,
  options: CommonOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  findNamed(config.sinks, name, 'sink')
  const digests = await withStore(config, (store) =>
    useEngine(config, store, async ({ flushContext, sinks }) => {
      const destinations = sinks.get(name)?.destinations ?? []
      const ended = await recordCommand(context, store, { act: `/sinks/${name}/flush` }, () =>
        endDigests(flushContext, name, destinations),
      )
      if (ended) return ended
      const named = listDigestSinks(flushContext).join(', ')
      const remedy =
        named === ''
          ? 'no sink has one; give it a digest in the configuration'
          : `those that have one: ${named}`
      throw new CommandError('mistake', `the sink "${name}" has no digest; ${remedy}`)
    }),
  )
  print(context, options, {
    json: { sink: name, digests },
    lines: () => digests.map(({ destination, said }) => `${sanitize(destination)}: ${said}`),
  })
}
