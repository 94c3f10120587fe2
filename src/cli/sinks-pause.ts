import { addressPrints } from '../app/address-prints.ts'
import { createCircuit, type CircuitReading } from '../delivery/circuit.ts'
import { findNamed } from './command-error.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { redisNow, withLedger } from './open-ledger.ts'
import { harmless, isoTime, timeInWords } from './words.ts'

export interface PauseOptions extends CommonOptions {
  reason: string
}

/** One that is paused already stays so since then, with the new reason. */
export async function pauseSink(
  context: Context,
  name: string,
  options: PauseOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  findNamed(config.sinks, name, 'sink')
  const { reason } = options
  const sinceMs = await withLedger(config, async (ledger) => {
    const circuit = createCircuit(ledger.redis, ledger.keys, addressPrints(config, ledger.books))
    const nowMs = await redisNow(ledger)
    const { paused } = await circuit.read(name, nowMs)
    const since = paused?.sinceMs ?? nowMs
    await circuit.pause(name, { reason, sinceMs: since })
    return since
  })
  print(context, options, {
    json: { sink: name, paused: { reason, since: isoTime(sinceMs) } },
    lines: () => [
      `${name} is paused since ${timeInWords(sinceMs)}: ${harmless(reason)}`,
      `  What is being sent just now still ends; all else is kept until "tocsin sinks resume ${name}".`,
    ],
  })
}

/** Ends a pause; one that is disabled is tried again. */
export async function resumeSink(
  context: Context,
  name: string,
  options: CommonOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  findNamed(config.sinks, name, 'sink')
  const before = await withLedger(config, async (ledger) => {
    const circuit = createCircuit(ledger.redis, ledger.keys, addressPrints(config, ledger.books))
    const reading = await circuit.read(name, await redisNow(ledger))
    await circuit.pause(name, undefined)
    return reading
  })
  print(context, options, {
    json: {
      sink: name,
      was_paused: before.paused !== undefined,
      was_disabled: before.disabled !== undefined,
    },
    lines: () => [resumedLine(name, before)],
  })
}

function resumedLine(name: string, { paused, disabled }: CircuitReading): string {
  if (disabled) {
    return `${name} is tried again; it was disabled since ${timeInWords(disabled.sinceMs)}: ${harmless(disabled.reason)}`
  }
  if (!paused) return `${name} was not paused`
  return `${name} is resumed; a running daemon sends what was kept within seconds`
}
