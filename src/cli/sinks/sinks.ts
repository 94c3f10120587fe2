import { Command } from 'commander'
import type { CircuitReading } from '../../delivery/circuit.ts'
import { openCircuit } from '../../delivery/sink-address.ts'
import { redisNow } from '../../redis/scripts.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { destinationsBySink, withStore } from '../open/open-store.ts'
import { addAccountOption, addListOptions, type ListOptions } from '../list.ts'
import { listSinks } from './sinks-list.ts'
import { findingLine, isProblem, runProbes } from '../set-up/probe.ts'
import { findNamed, sanitize, formatIsoTime, parseShortText, formatUtcTime } from '../terminal.ts'

export function sinksCommand(context: Context): Command {
  const list = addAccountOption(addListOptions(addCommonOptions(new Command('list')), 'sink'))
    .description('list sinks with circuit, pending items, digest and problems, the worst first')
    .action((name: string | undefined, options: ListOptions) => listSinks(context, name, options))
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
  return new Command('sinks')
    .addCommand(list)
    .addCommand(test)
    .addCommand(flush)
    .addCommand(pauseCommand(context))
    .addCommand(resumeCommand(context))
}

function pauseCommand(context: Context): Command {
  return addCommonOptions(new Command('pause'))
    .description('send nothing to a sink until it is resumed; what comes for it is kept')
    .argument('<sink>', 'name of the sink')
    .requiredOption(
      '--reason <text>',
      'why; everybody who looks at the sink reads it',
      parseShortText,
    )
    .action((name: string, options: PauseOptions) => pauseSink(context, name, options))
}

function resumeCommand(context: Context): Command {
  return addCommonOptions(new Command('resume'))
    .description('send to a sink again that is paused, disabled or down, what was kept first')
    .argument('<sink>', 'name of the sink')
    .action((name: string, options: CommonOptions) => resumeSink(context, name, options))
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

export interface PauseOptions extends CommonOptions {
  reason: string
}

/** A sink that is already paused keeps its time and gets the new reason. */
export async function pauseSink(
  context: Context,
  name: string,
  options: PauseOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  findNamed(config.sinks, name, 'sink')
  const { reason } = options
  const sinceMs = await withStore(config, async (store) => {
    const circuit = openCircuit(store, config)
    const nowMs = await redisNow(store)
    const { paused } = await circuit.read(name, nowMs)
    const since = paused?.sinceMs ?? nowMs
    await circuit.pause(name, { reason, sinceMs: since })
    return since
  })
  print(context, options, {
    json: { sink: name, paused: { reason, since: formatIsoTime(sinceMs) } },
    lines: () => [
      `${name} is paused since ${formatUtcTime(sinceMs)}: ${sanitize(reason)}`,
      `  What is being sent just now still ends; all else is kept until "tocsin sinks resume ${name}".`,
    ],
  })
}

/** Ends a pause; a disabled sink, and one whose circuit is open, is tried again. */
export async function resumeSink(
  context: Context,
  name: string,
  options: CommonOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  findNamed(config.sinks, name, 'sink')
  const before = await withStore(config, async (store) => {
    const circuit = openCircuit(store, config)
    const destinations = destinationsBySink(config).get(name)
    const reading = await circuit.read(name, await redisNow(store), destinations)
    await circuit.pause(name, undefined, destinations)
    return reading
  })
  print(context, options, {
    json: {
      sink: name,
      was_paused: before.paused !== undefined,
      was_disabled: before.disabled !== undefined,
      was_open: before.state === 'open',
    },
    lines: () => [resumedLine(name, before)],
  })
}

function resumedLine(name: string, reading: CircuitReading): string {
  const { paused, disabled, state, openedAtMs = 0 } = reading
  if (disabled) {
    return `${name} is tried again; it was disabled since ${formatUtcTime(disabled.sinceMs)}: ${sanitize(disabled.reason)}`
  }
  if (state === 'open') {
    return `${name} is tried again within seconds; its circuit has been open since ${formatUtcTime(openedAtMs)}`
  }
  if (!paused) return `${name} was not paused`
  return `${name} is resumed; a running daemon sends what was kept within seconds`
}
