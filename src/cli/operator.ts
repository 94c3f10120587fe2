import { userInfo } from 'node:os'
import type { Command } from 'commander'
import type { Context } from './context.ts'
import { shortText } from './short-text.ts'

/** Of commands whose operator the ledger keeps. */
export interface ByOption {
  by?: string
}

export function addByOption(command: Command): Command {
  const described = "who does it, as stories tell it (default: $USER, else the system's user)"
  return command.option('--by <name>', described, shortText)
}

/** Who asks: `--by`, else USER (on Windows USERNAME), else the system's user; undefined where it has none. */
export function operatorName(
  { env }: Pick<Context, 'env'>,
  { by }: ByOption = {},
  systemUser: () => string = () => userInfo().username,
): string | undefined {
  return by ?? readable(env['USER'] ?? env['USERNAME']) ?? readable(nameOf(systemUser))
}

function readable(given: string | undefined): string | undefined {
  const name = (given ?? '').replaceAll(/\p{Cc}/gu, '').trim()
  return name === '' ? undefined : name.slice(0, 100)
}

/** A container may run under a number that has no name. */
function nameOf(systemUser: () => string): string | undefined {
  try {
    return systemUser()
  } catch {
    return undefined
  }
}
