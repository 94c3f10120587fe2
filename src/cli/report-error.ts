/** How an error ends a command: what is said about it, and the exit code. */
import { CommanderError } from 'commander'
import { ConfigError } from '../config/config-error.ts'
import { StoreError } from '../redis/store-error.ts'
import { TocsinError } from '../runtime/errors.ts'
import { ServiceError, type ServiceReason } from '../service/service-error.ts'
import { CommandError } from './command-error.ts'
import { Interruption, type Terminal } from './terminal.ts'

/** As a shell has it: 128 and the number of SIGINT. */
export const interruptedCode = 130

/** 1 the world refused, 2 the operator's mistake. A bug of ours shows its stack and counts as 1. */
export function reportError(error: unknown, terminal: Terminal): number {
  terminal.progress('')
  if (error instanceof CommanderError) return exitCodeOfUsage(error)
  if (error instanceof Interruption) return interruptedCode
  if (error instanceof TocsinError) {
    for (const line of linesOf(error)) terminal.complain(line)
    return isMistake(error) ? 2 : 1
  }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  terminal.complain(`this is a defect of Tocsin; please report it with these lines:\n${stack}`)
  return 1
}

/** Several fields that are wrong stand below each other; last, where to look next. */
function linesOf(error: TocsinError): string[] {
  if (!(error instanceof ServiceError)) return [error.message]
  const { details, message, reason } = error
  const fields = details.map(({ loc, msg }) => (loc === '' ? msg : `${loc}: ${msg}`))
  const advice = needsLook.has(reason) ? ['tocsin token test says more'] : []
  if (fields.length < 2) return [message, ...advice]
  const head = message.replace(fields.join('; '), `${fields.length} fields are wrong`)
  return [head, ...fields.map((field) => `  ${field}`), ...advice]
}

const needsLook: ReadonlySet<ServiceReason> = new Set(['auth', 'unavailable', 'contract'])

function isMistake(error: TocsinError): boolean {
  if (error instanceof ServiceError) return error.reason === 'invalid'
  if (error instanceof StoreError) return error.reason === 'unsafe'
  if (error instanceof CommandError) return error.reason === 'mistake'
  return error instanceof ConfigError
}

/** commander has said it already; it ends bad arguments with 1, and help that was asked for with 0. */
function exitCodeOfUsage({ code, exitCode }: CommanderError): number {
  return exitCode === 0 || code === 'commander.error' ? exitCode : 2
}
