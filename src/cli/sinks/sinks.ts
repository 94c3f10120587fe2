import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import type { OpenStore } from '../open/open-store.ts'
import { addAccountOption, addListOptions, type ListOptions, listThing } from '../list.ts'
import { addPauseCommands, type Resumed } from '../pause.ts'
import { isProblem, runProbes } from '../../operator/probes/probe.ts'
import { findingLine } from '../finding-line.ts'
import { findNamed } from '../terminal.ts'
import { pauseSink, resumedLine, resumeSink } from '../../operator/acts/pauses.ts'

export function sinksCommand(context: Context): Command {
  const list = addAccountOption(addListOptions(addCommonOptions(new Command('list')), 'sink'))
    .description('list sinks with circuit, pending items, digest and problems, the worst first')
    .action((name: string | undefined, options: ListOptions) =>
      listThing(context, options, { thing: 'sink', name }),
    )
  const test = addCommonOptions(new Command('test'))
    .description('send one message marked TEST to each destination of a sink; needs no Redis')
    .argument('<sink>', 'name of the sink')
    .action((name: string, options: CommonOptions) => testSink(context, name, options))
  const flush = addCommonOptions(new Command('flush'))
    .description('end the window of a digest now and send it')
    .argument('<sink>', 'name of a sink with a digest')
    .action(async (name: string, options: CommonOptions) => {
      const { flushSink } = await import('./sinks-flush.ts')
      await flushSink(context, name, options)
    })
  const sinks = new Command('sinks').addCommand(list).addCommand(test).addCommand(flush)
  const acts = { pause: pauseSink, resume: resumeByName }
  return addPauseCommands(sinks, context, { thing: 'sink', ...acts })
}

async function testSink(context: Context, name: string, options: CommonOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const sink = findNamed(config.sinks, name, 'sink')
  const { probes } = await import('../set-up/probes.ts') // they load what sends and asks
  const findings = await runProbes(
    probes.sinkSend,
    { sink, config, env: context.env },
    context.stop,
  )
  print(context, options, {
    json: findings,
    lines: () => findings.map((finding) => findingLine(context.terminal, finding)),
  })
  if (findings.some(isProblem)) context.exitCode = 1
}

async function resumeByName(store: OpenStore, config: Config, name: string): Promise<Resumed> {
  const resumed = await resumeSink(store, config, name)
  const { paused, disabled, state } = resumed.before
  const facts = {
    was_paused: paused !== undefined,
    was_disabled: disabled !== undefined,
    was_open: state === 'open',
    retries_due: resumed.retries,
  }
  return { facts, said: resumedLine(name, resumed) }
}
