/** The `reload` command: asks the running daemon to read its configuration again. */
import { resolve } from 'node:path'
import { Command } from 'commander'
import { findTokenFile } from '../config/load.ts'
import { ConfigError, type Mistake, formatMistake } from '../config/config.ts'
import type { ReloadOutcome } from '../daemon/daemon.ts'
import { errorMessage, quoteForShell } from '../lib/errors.ts'
import {
  isSameProof,
  likelyTokenFiles,
  type ReloadAccess,
  readReloadAccess,
  reloadPath,
  reloadProofs,
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

/** A daemon proves itself at once, unless it reads a large configuration at that moment. */
const proofPatienceMs = 10_000

/** A send that hangs holds the swap up for 8 s; more means that Redis or the file's disk does. */
const patienceMs = 60_000

/** More than all mistakes of the largest file. */
const maxAnswerLength = 16 * 1024 * 1024

export function reloadCommand(context: Context): Command {
  return addCommonOptions(new Command('reload')).action(async (options: CommonOptions) => {
    const file = options.config ?? defaultConfigFile()
    const outcome = await requestReload(context, file)
    print(context, options, { json: outcome, lines: () => outcomeLines(outcome, file) })
    if (outcome.status === 'refused') context.exitCode = 2
    if (outcome.status === 'stopped') context.exitCode = 1
  })
}

/**
 * Asks the first daemon that takes the request: one that was killed leaves its file, and by now
 * something else may answer at its port. Throws CommandError with all that was passed over, and
 * ConfigError if the file is why there is no daemon.
 */
async function requestReload(context: Context, file: string): Promise<ReloadOutcome> {
  const { env } = context
  const named = findTokenFile({ path: file, env })
  // A daemon that runs may have begun before the file named one.
  const paths = [...(named === undefined ? [] : [named]), ...likelyTokenFiles(file, env)]
  const passedOver: string[] = []
  for (const path of paths) {
    const problem = await tryTokenFile(context, path)
    if (problem === undefined) continue
    if (typeof problem === 'object') return problem
    passedOver.push(`${path}: ${problem}`)
  }
  loadConfigFile(context, file)
  throw new CommandError('refused', noDaemonText(file, paths, passedOver))
}

function noDaemonText(
  file: string,
  paths: readonly string[],
  passedOver: readonly string[],
): string {
  if (passedOver.length > 0)
    return [`no daemon reloads ${resolve(file)}:`, ...passedOver].join('\n  ')
  const remedy = `start it with: tocsin run --config ${quoteForShell(file)}; if it runs, run this command as its user or root and on its machine (in its container), with the path that it was started with, or send it SIGHUP`
  return `no daemon runs on ${resolve(file)}: there is no readable ${paths.join(', nor ')}; ${remedy}`
}

/**
 * Returns what came of it, or why nobody could be asked; undefined: there is no such file. Throws
 * CommandError if the daemon takes too long.
 */
async function tryTokenFile(
  context: Context,
  path: string,
): Promise<ReloadOutcome | string | undefined> {
  let access: ReloadAccess | undefined
  try {
    access = readReloadAccess(path)
  } catch (error) {
    return `not to be trusted: ${errorMessage(error)}`
  }
  if (access === undefined) return undefined
  const deadline = createDeadline(context)
  try {
    return await askForReload(access, deadline)
  } catch (cause) {
    context.stop.throwIfAborted()
    if (!deadline.isOver()) return silenceText(access.url)
    if (!deadline.isProven) return holdUpText(access.url)
    const problem = `the daemon at ${access.url} has not taken the configuration over within ${patienceMs / 1000} s; its log says what it waits for`
    throw new CommandError('refused', problem, { cause })
  } finally {
    deadline.end()
  }
}

interface Deadline {
  /** Aborts when it is over, or the command is broken off. */
  readonly signal: AbortSignal
  /** Whether a daemon answers. */
  isProven: boolean
  isOver(): boolean
  /** Begins anew. */
  set(ms: number): void
  end(): void
}

function createDeadline({ clock, stop }: Context): Deadline {
  const late = new AbortController()
  let waiting = new AbortController()
  return {
    signal: AbortSignal.any([late.signal, stop]),
    isProven: false,
    isOver: () => late.signal.aborted,
    set(ms) {
      waiting.abort()
      const { signal } = (waiting = new AbortController())
      void clock.sleep(ms, signal).then(() => {
        if (!signal.aborted) late.abort()
      })
    },
    end: () => waiting.abort(),
  }
}

/**
 * Returns what came of it, or what is wrong with the answer; throws if there is none. Nothing is
 * believed, nor read to its end, before the daemon has proved itself.
 */
async function askForReload(
  { url, token }: ReloadAccess,
  deadline: Deadline,
): Promise<ReloadOutcome | string> {
  const { ofCommand, ofDaemon } = reloadProofs(token)
  const { signal } = deadline
  deadline.set(proofPatienceMs)
  const answer = await fetch(`${url}${reloadPath}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ofCommand}` },
    redirect: 'error',
    signal,
  })
  if (!answer.ok || answer.body === null) {
    await answer.body?.cancel()
    return refusalText(answer.status, url)
  }
  let text = ''
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (text.length < ofDaemon.length) continue
    if (!isSameProof(text.slice(0, ofDaemon.length), ofDaemon)) return strangerText(url)
    if (!deadline.isProven) deadline.set(patienceMs)
    deadline.isProven = true
    if (text.length > maxAnswerLength) return strangerText(url)
  }
  return parseOutcome(text.slice(ofDaemon.length)) ?? strangerText(url)
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

function silenceText(url: string): string {
  return `no daemon answers at ${url}: it has ended without a word, or http.host keeps this machine out; start it, or send it SIGHUP`
}

function holdUpText(url: string): string {
  return `nothing at ${url} has answered as a daemon within ${proofPatienceMs / 1000} s: it is held up, or has ended and something else has its port; try again, or start it`
}

function strangerText(url: string): string {
  return `something else than a daemon answers at ${url}; the daemon has ended: start it`
}

function refusalText(status: number, url: string): string {
  const remedies: Record<number, string> = {
    401: 'does not know this token: another daemon wrote the file; restart one of them with an http.token_file of its own',
    403: 'takes reloads from 127.0.0.1 or ::1 only: set http.host to one of them or to 0.0.0.0, or send it SIGHUP',
  }
  return `the daemon at ${url} ${remedies[status] ?? `answered ${status}; send it SIGHUP, and see its log`}`
}

/** Throws ConfigError for mistakes, so that they read as those of every other command. */
function outcomeLines(outcome: ReloadOutcome, file: string): string[] {
  switch (outcome.status) {
    case 'changed':
      return [
        ...warningLines(outcome.warnings),
        outcome.generation === 0
          ? 'reloaded; it begins when Redis is back'
          : `reloaded: ${generationText(outcome)}`,
        ...changeLines(outcome.changes),
      ]
    case 'unchanged':
      return [
        ...warningLines(outcome.warnings),
        `nothing in ${file} has changed: still ${generationText(outcome)}`,
      ]
    case 'refused':
      if (outcome.mistakes.length > 0) throw new ConfigError(outcome.mistakes)
      return ['not reloaded, and the old configuration stays; the log of the daemon says why']
    case 'stopped':
      return ['not reloaded: the daemon was asked to stop meanwhile']
  }
}

function generationText({ generation }: { generation: number }): string {
  return `generation ${generation}`
}

function warningLines(warnings: readonly Mistake[]): string[] {
  return warnings.map((warning) => sanitize(`warning ${formatMistake(warning)}`, 1_000))
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
