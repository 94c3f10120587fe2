/** How an error ends a command: what is said about it, and the exit code. */
import { CommanderError } from 'commander'
import { ConfigError } from '../config/config-error.ts'
import { StoreError } from '../redis/store-error.ts'
import { TocsinError } from '../runtime/errors.ts'
import { CommandError } from './command-error.ts'
import type { Terminal } from './terminal.ts'

/** 1 the world refused, 2 the operator's mistake. A bug of ours shows its stack and counts as 1. */
export function reportError(error: unknown, terminal: Terminal): number {
  terminal.progress('')
  if (error instanceof CommanderError) return exitCodeOfUsage(error)
  if (error instanceof TocsinError) {
    terminal.complain(error.message)
    return isMistake(error) ? 2 : 1
  }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  terminal.complain(`this is a defect of Tocsin; please report it with these lines:\n${stack}`)
  return 1
}

function isMistake(error: TocsinError): boolean {
  if (error instanceof StoreError) return error.reason === 'unsafe'
  if (error instanceof CommandError) return error.reason === 'mistake'
  return error instanceof ConfigError
}

/** commander has said it already; it ends bad arguments with 1, and help that was asked for with 0. */
function exitCodeOfUsage({ code, exitCode }: CommanderError): number {
  return exitCode === 0 || code === 'commander.error' ? exitCode : 2
}
