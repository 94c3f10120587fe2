/** The `reload` command: asks the running daemon to read its configuration again. */
import { resolve } from 'node:path'
import { Command } from 'commander'
import { findTokenFile } from '../config/load.ts'
import { ConfigError, formatMistake } from '../config/config.ts'
import type { ReloadOutcome } from '../daemon/daemon.ts'
import { withTimeout } from '../lib/clock.ts'
import { errorMessage, quoteForShell } from '../lib/errors.ts'
import {
  defaultTokenFile,
  type ReloadAccess,
  readReloadAccess,
  reloadPath,
} from '../ops/reload-access.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  defaultConfigFile,
  loadConfigFile,
  print,
} from './context.ts'
import { CommandError, sanitize } from './terminal.ts'

/** A send that hangs holds the swap up for 8 s; more means that Redis or the file's disk does. */
const patienceMs = 60_000

/** More than all mistakes of the largest file. */
const maxAnswerLength = 16 * 1024 * 1024

export function reloadCommand(context: Context): Command {
  return addCommonOptions(new Command('reload')).action(async (options: CommonOptions) => {
    const file = options.config ?? defaultConfigFile()
    const outcome = await requestReload(findDaemon(context, file), context)
    print(context, options, { json: outcome, lines: () => outcomeLines(outcome, file) })
    if (outcome.status === 'refused') context.exitCode = 2
    if (outcome.status === 'stopped') context.exitCode = 1
  })
}

/** Throws CommandError, and ConfigError if the file is why there is no daemon. */
function findDaemon(context: Context, file: string): ReloadAccess {
  const { env } = context
  const path = findTokenFile({ path: file, env }) ?? defaultTokenFile(file, env)
  let problem = `there is no readable ${path}`
  try {
    const access = readReloadAccess(path)
    if (access) return access
  } catch (error) {
    problem = `${path} is not to be trusted: ${errorMessage(error)}`
  }
  loadConfigFile(context, file)
  const remedy = `start it with: tocsin run --config ${quoteForShell(file)}; if it runs, send it SIGHUP, or run this command as its user and on its machine`
  throw new CommandError(
    'refused',
    `no daemon is found for ${resolve(file)}: ${problem}; ${remedy}`,
  )
}

/** Throws CommandError. */
async function requestReload(
  { url, token }: ReloadAccess,
  { stop }: Context,
): Promise<ReloadOutcome> {
  const wrong = (problem: string, cause?: unknown): CommandError =>
    new CommandError('refused', `${url}: ${problem}; start the daemon, or send it SIGHUP`, {
      cause,
    })
  try {
    return await withTimeout(patienceMs, [stop], async (signal) => {
      const answer = await fetch(`${url}${reloadPath}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        redirect: 'error',
        signal,
      })
      const outcome = parseOutcome(await readAnswer(answer))
      if (outcome === undefined) throw wrong(`no daemon takes this token (${answer.status})`)
      return outcome
    })
  } catch (error) {
    stop.throwIfAborted()
    throw error instanceof CommandError ? error : wrong('no daemon answers', error)
  }
}

async function readAnswer({ body }: Response): Promise<string> {
  let text = ''
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    if (text.length > maxAnswerLength) return ''
  }
  return text
}

const statuses: readonly unknown[] = ['changed', 'unchanged', 'refused', 'stopped']

function parseOutcome(text: string): ReloadOutcome | undefined {
  try {
    const outcome = JSON.parse(text) as ReloadOutcome | null
    return statuses.includes(outcome?.status) ? (outcome ?? undefined) : undefined
  } catch {
    return undefined
  }
}

/** Throws ConfigError for mistakes, so that they read as those of every other command. */
function outcomeLines(outcome: ReloadOutcome, file: string): string[] {
  if (outcome.status === 'stopped') return ['not reloaded: the daemon was asked to stop meanwhile']
  if (outcome.status === 'refused') {
    if (outcome.mistakes.length > 0) throw new ConfigError(outcome.mistakes)
    return ['not reloaded, and the old configuration stays; the log of the daemon says why']
  }
  const { warnings, generation } = outcome
  const warned = warnings.map((warning) => sanitize(`warning ${formatMistake(warning)}`, 1_000))
  if (outcome.status === 'unchanged') {
    return [...warned, `nothing in ${file} has changed: still generation ${generation}`]
  }
  const begins = generation === 0 ? '; it begins when Redis is back' : `: generation ${generation}`
  return [...warned, `reloaded${begins}`, ...changeLines(outcome.changes)]
}

/** `feeds: added staff, removed brand`, one part a line. */
function changeLines({ sections = [], ...parts }: Record<string, unknown>): string[] {
  const named = Object.entries(parts as Record<string, Record<string, string[]>>).map(
    ([part, lists]) =>
      `${part}: ${Object.entries(lists)
        .map(([how, names]) => `${how} ${names.join(', ')}`)
        .join('; ')}`,
  )
  const others = (sections as string[]).map((section) => `${section}: changed`)
  return [...named, ...others].map((line) => `  ${sanitize(line, 1_000)}`)
}
