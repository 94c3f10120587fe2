/** What every command is given, and what it may ask for. */
import { Option, type Command } from 'commander'
import type { Environment } from '../config/environment.ts'
import type { Clock } from '../runtime/clock.ts'
import { createLogger, type Logger } from '../runtime/logger.ts'
import { jsonText } from './json-text.ts'
import type { Terminal } from './terminal.ts'

export interface Context {
  readonly env: Environment
  readonly terminal: Terminal
  /** Aborts when the process is asked to stop. */
  readonly stop: AbortSignal
  /** Gets an event `reload` when the process is asked for one; who heeds it prevents its default, the end. */
  readonly reloads: EventTarget
  /** By which a command waits before it asks again. */
  readonly clock: Clock
  /** 0 unless the command says otherwise; a thrown error decides for itself. */
  exitCode: number
}

/** What every command takes. */
export interface CommonOptions {
  config?: string
  output: 'text' | 'json'
}

export function addCommonOptions(command: Command): Command {
  return command
    .option('--config <file>', 'the configuration (default: config/tocsin.yaml, then tocsin.yaml)')
    .addOption(
      new Option('--output <form>', 'for people or for machines')
        .choices(['text', 'json'])
        .default('text'),
    )
}

/** What a command found: for machines whole, for people in lines. */
export function print(
  { terminal }: Context,
  { output }: CommonOptions,
  found: { json: unknown; lines: () => readonly string[] },
): void {
  terminal.print(output === 'json' ? jsonText(found.json, 2) : found.lines().join('\n'))
}

/** For the parts that a command borrows from the daemon: what they would log, the command says itself. */
export const quiet: Logger = createLogger({ level: 'silent' })
