/**
 * The questions of `init` about Redis and the account, each with the option that answers it and the
 * trial of the answer; and how any question is asked.
 */
import type { Environment } from '../../config/config.ts'
import { secretLimits } from '../../lib/private-files.ts'
import { type Context, readText } from '../context.ts'
import { CommandError, formatTable, sanitize } from '../terminal.ts'
import { type Draft, type DraftAccount, type DraftRedis, findMistake } from './init-draft.ts'
import { type FoundGroups, type Trial, WrongAnswer } from './init-trial.ts'

/** Those of sinks have the names of their flags. */
export interface InitOptions {
  baseUrl?: string
  apiKeyFile?: string
  linkHost?: string
  group?: string
  redisFolder?: string
  redisUrlFile?: string
  allowPrivate?: true
  send?: true
  force?: true
}

export interface Interview {
  context: Context
  options: InitOptions
  /** The file to be written: its name stands in messages, and paths are relative to it. */
  file: string
  trial: Trial
}

const keyVariable = 'TOCSIN_API_KEY'

/** The options but those of sinks that are missing where nobody can be asked. */
export function missingOptions(options: InitOptions, env: Environment): string[] {
  return [
    ...(options.baseUrl === undefined ? ['--base-url <url>'] : []),
    ...(options.apiKeyFile === undefined && !env[keyVariable]
      ? [`--api-key-file <file> (or the variable ${keyVariable})`]
      : []),
    ...(options.group === undefined ? ['--group <id>'] : []),
  ]
}

/** How often a question is asked: at the end of its input nobody answers any more. */
const mostTries = 5

/**
 * Asks until an answer works, and says why one does not. What an option says is tried once where
 * nobody can be asked.
 */
export async function settle<Value>(
  { context: { terminal } }: Interview,
  attempt: (isFirst: boolean) => Promise<Value>,
): Promise<Value> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt(tries === 1)
    } catch (error) {
      if (!(error instanceof WrongAnswer)) throw error
      terminal.progress('')
      const message = sanitize(error.message, 1_000).replace(
        'set allow_private: true',
        'start again with --allow-private',
      )
      if (!terminal.canAsk || tries === mostTries) {
        throw new CommandError('refused', `${message.replace(/\.$/, '')}; nothing was written`)
      }
      terminal.printError(message)
    }
  }
}

/** Asks a question of one line; `given` is its answer by an option. Throws WrongAnswer. */
export async function askFor(
  { context: { terminal } }: Interview,
  { text, usual, given }: { text: string; usual?: string; given: string | undefined },
): Promise<string> {
  return requireAnswer(given ?? (await terminal.ask(text, usual)) ?? usual)
}

/** `file` holds its answer. Throws WrongAnswer. */
export async function askSecretFor(
  { context }: Interview,
  { text, file }: { text: string; file: string | undefined },
): Promise<string> {
  const answer =
    file === undefined
      ? await context.terminal.askSecret(text)
      : await readText(context, file, secretLimits)
  return requireAnswer(answer)
}

function requireAnswer(answer = ''): string {
  const text = answer.trim()
  if (text === '') throw new WrongAnswer('nothing was given')
  return text
}

/** By the rules of the configuration. */
function refuseMistakes({ file }: Interview, answer: Partial<Draft>): void {
  const mistake = findMistake(answer, file)
  if (mistake !== undefined) throw new WrongAnswer(mistake)
}

/** Asks nothing: without an option it is a private one. Whatever is tried later needs a Redis. */
export async function tryRedis(interview: Interview): Promise<DraftRedis> {
  const { redisFolder, redisUrlFile } = interview.options
  return settle(interview, async () => {
    const redis =
      redisUrlFile === undefined
        ? { folder: redisFolder ?? './data' }
        : { url: await askSecretFor(interview, { text: '', file: redisUrlFile }) }
    refuseMistakes(interview, { redis })
    interview.context.terminal.progress('trying Redis')
    report(interview, await interview.trial.redis({ redis }))
    return redis
  })
}

function report({ context: { terminal } }: Interview, found: readonly string[]): void {
  terminal.progress('')
  for (const line of found) terminal.printError(sanitize(line, 1_000))
}

export async function askForAccount(
  interview: Interview,
  redis: DraftRedis,
): Promise<{ account: DraftAccount; groups: FoundGroups }> {
  const { context, options, trial } = interview
  const { linkHost } = options
  let usual: string | undefined
  return settle(interview, async (isFirst) => {
    const baseUrl = await askFor(interview, {
      text: "Address of the service's API, such as https://api.example.com:",
      ...(usual !== undefined && { usual }),
      given: isFirst ? options.baseUrl : undefined,
    })
    const reached = { baseUrl, apiKey: 'not-yet-known', linkHost }
    refuseMistakes(interview, { account: reached })
    await trial.reach({ account: reached })
    usual = baseUrl
    const account = { ...reached, apiKey: await readApiKey(interview, isFirst) }
    refuseMistakes(interview, { account })
    context.terminal.progress('trying the key')
    const { found, ...groups } = await trial.account({ redis, account })
    report(interview, found)
    return { account, groups }
  })
}

async function readApiKey(interview: Interview, isFirst: boolean): Promise<string> {
  const { context, options } = interview
  const file = isFirst ? options.apiKeyFile : undefined
  const variable = context.env[keyVariable] ?? ''
  if (isFirst && file === undefined && variable !== '') return variable
  return askSecretFor(interview, { text: 'API key (not shown):', file })
}

export async function askForGroup(
  interview: Interview,
  { groups, hasMore }: FoundGroups,
): Promise<Draft['group']> {
  const { context, options } = interview
  const { terminal } = context
  const listed = typeof groups === 'string' ? [] : groups
  if (options.group === undefined) {
    if (typeof groups === 'string') {
      terminal.printError(`The groups of identifiers could not be listed: ${sanitize(groups)}`)
    }
    const rows = listed.map(({ id, name }, at) => [`  ${at + 1}`, String(id), sanitize(name, 60)])
    if (rows.length > 0) rows.unshift(['  NO', 'ID', 'GROUP'])
    for (const line of formatTable(rows)) terminal.printError(line)
  }
  const text =
    listed.length === 0
      ? 'Id of the identifier group to watch:'
      : 'Group of identifiers to watch, by its number here or its id:'
  return settle(interview, async (isFirst) => {
    const given = isFirst ? options.group : undefined
    const answer = await askFor(interview, { text, given })
    const number = /^\d{1,15}$/.test(answer) ? Number(answer) : 0
    if (number === 0) throw new WrongAnswer('not the id of a group; write its number')
    const byId = listed.find(({ id }) => id === number)
    const byNumber = given === undefined ? listed[number - 1] : undefined
    const group = byId ?? byNumber
    if (group !== undefined) return group
    if (hasMore) return { id: number, name: '' }
    const known = listed.map(({ id, name }) => `${id} (${sanitize(name, 60)})`).join(', ')
    throw new WrongAnswer(`no group "${number}" of the key's tenant; known: ${known}`)
  })
}
