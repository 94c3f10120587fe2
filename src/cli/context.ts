/** What every command is given, and the helpers that commands share. */
import { createReadStream, existsSync } from 'node:fs'
import { type Command, Option } from 'commander'
import type { Environment } from '../config/config.ts'
import { maxFileBytes } from '../config/file-contents.ts'
import { loadConfig, type LoadedConfig } from '../config/load.ts'
import type { Clock } from '../lib/clock.ts'
import { errorCode } from '../lib/errors.ts'
import { createLogger, type Logger } from '../lib/logger.ts'
import type { FileLimits } from '../lib/config/private-files.ts'
import { CommandError, jsonText, type Terminal } from './terminal.ts'

export interface Context {
  readonly env: Environment
  readonly terminal: Terminal
  /** Aborts when the process is asked to stop. */
  readonly stop: AbortSignal
  /** Aborts when the process ends at once: what listens has no time but its own call. */
  readonly ending?: AbortSignal | undefined
  /**
   * Dispatches `reload` when the process is asked to reload. A listener that handles it calls
   * preventDefault; otherwise the process ends.
   */
  readonly reloads: EventTarget
  /** Times the waits between retries and polls. */
  readonly clock: Clock
  /** 0 unless the command sets it; a thrown error has its own exit code. */
  exitCode: number
}

/** Options that every command takes. */
export interface CommonOptions {
  config?: string
  output: 'text' | 'json'
}

export function addCommonOptions(command: Command): Command {
  return command
    .option('--config <file>', 'the configuration (default: tocsin.yaml, then config/tocsin.yaml)')
    .addOption(
      new Option('--output <form>', 'for people or for machines')
        .choices(['text', 'json'])
        .default('text'),
    )
}

/** How this program was called, for commands to copy: a clone has no `tocsin` on its path. */
export function calledAs({ env }: Pick<Context, 'env'>): string {
  return env['npm_lifecycle_script']?.includes('src/main.ts') ? 'npm run tocsin --' : 'tocsin'
}

/** Prints a result: everything as JSON, or lines for people. */
export function print(
  { terminal }: Context,
  { output }: CommonOptions,
  found: { json: unknown; lines: () => readonly string[] },
): void {
  terminal.print(output === 'json' ? jsonText(found.json, 2) : found.lines().join('\n'))
}

/** For daemon parts that a command uses: the command itself reports what they would log. */
export const silentLogger: Logger = createLogger({ level: 'silent' })

const defaultConfigFiles = ['tocsin.yaml', 'config/tocsin.yaml'] as const

/**
 * Loads the named configuration, or else the one in its default place. Throws ConfigError, and
 * CommandError where there is none.
 */
export function loadConfigFile({ env }: Context, path: string | undefined): LoadedConfig {
  if (path === undefined && !defaultConfigFiles.some((place) => existsSync(place))) {
    const remedy = 'make one with "tocsin init", or name yours with --config'
    const problem = `there is no ${defaultConfigFiles.join(' or ')} here`
    throw new CommandError('mistake', `${problem}; ${remedy}`)
  }
  return loadConfig({ path: path ?? defaultConfigFile(), env })
}

export function defaultConfigFile(): string {
  return defaultConfigFiles.find((place) => existsSync(place)) ?? defaultConfigFiles[0]
}

/** Throws CommandError unless somebody answers yes. */
export async function requireConfirmation(
  { terminal }: Context,
  lines: readonly string[],
): Promise<void> {
  const isWanted = await terminal.confirm([...lines, 'Go on?'].join('\n'))
  if (isWanted === undefined) {
    throw new CommandError('mistake', `${lines.join(' ')} Nobody is there to ask; say --yes`)
  }
  if (!isWanted) throw new CommandError('refused', 'nothing was changed')
}

/**
 * Reads a file or a pipe, or standard input for `-`. Throws CommandError with its name, also if it
 * is longer than the limit.
 */
export async function readText(
  { terminal }: Context,
  file: string,
  { maxBytes }: FileLimits = { maxBytes: maxFileBytes },
): Promise<string> {
  const place = inputName(file)
  const input = file === '-' ? terminal.input : createReadStream(file)
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of input) {
      const chunk = Buffer.from(piece)
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > maxBytes) break
    }
  } catch (cause) {
    const code = errorCode(cause)
    const problem = code === 'ENOENT' ? 'there is no such file' : `cannot be read (${code})`
    throw new CommandError('mistake', `${place}: ${problem}`, { cause })
  }
  // without the byte order mark that PowerShell puts before what it pipes
  if (bytes <= maxBytes) return new TextDecoder().decode(Buffer.concat(chunks))
  const problem = `longer than ${maxBytes / 1024} KiB`
  throw new CommandError(
    'mistake',
    `${place}: ${problem}; name a file that holds this and nothing else`,
  )
}

export function inputName(file: string): string {
  return file === '-' ? 'standard input' : file
}
