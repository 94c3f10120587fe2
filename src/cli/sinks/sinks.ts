import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
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
import { addPauseCommands } from '../pause.ts'
import { listSinks } from './sinks-list.ts'
import { isProblem, runProbes } from '../../operator/probe.ts'
import { findingLine } from '../finding-line.ts'
import { findNamed, formatUtcTime, sanitize } from '../terminal.ts'

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
  const sinks = new Command('sinks').addCommand(list).addCommand(test).addCommand(flush)
  const acts = { pause: pauseSink, resume: resumeSink }
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

async function pauseSink(config: Config, name: string, reason: string): Promise<number> {
  return withStore(config, async (store) => {
    const circuit = openCircuit(store, config)
    const nowMs = await redisNow(store)
    const { paused } = await circuit.read(name, nowMs)
    const sinceMs = paused?.sinceMs ?? nowMs
    await circuit.pause(name, { reason, sinceMs })
    return sinceMs
  })
}

/** Ends a pause; a disabled sink, and one whose circuit is open, is tried again. */
async function resumeSink(
  config: Config,
  name: string,
): Promise<{ was: Record<string, boolean>; said: string }> {
  const reading = await withStore(config, async (store) => {
    const circuit = openCircuit(store, config)
    const destinations = destinationsBySink(config).get(name)
    const before = await circuit.read(name, await redisNow(store), destinations)
    await circuit.pause(name, undefined, destinations)
    return before
  })
  const { paused, disabled, state } = reading
  const was = {
    was_paused: paused !== undefined,
    was_disabled: disabled !== undefined,
    was_open: state === 'open',
  }
  return { was, said: resumedLine(name, reading) }
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
