/**
 * The questions of `init` about Redis and the account, each with the option that answers it and the
 * trial of the answer; and how any question is asked.
 */
import type { Environment } from '../../config/config.ts'
import { secretLimits } from '../../lib/private-files.ts'
import { isLoopback } from '../../lib/web-address.ts'
import { linksOnlyToBase } from '../../upstream/links.ts'
import { type Context, readText } from '../context.ts'
import { CommandError, formatTable, sanitize } from '../terminal.ts'
import { type Draft, type DraftAccount, type DraftRedis, findMistake } from './init-draft.ts'
import { type AccountTrial, type Trial, WrongAnswer } from './init-trial.ts'

export interface InitOptions {
  baseUrl?: string
  apiKeyFile?: string
  linkHost?: string
  group?: number
  redisFolder?: string
  redisUrlFile?: string
  slackUrlFile?: string
  teamsUrlFile?: string
  pagerdutyKeyFile?: string
  pagerdutyUrl?: string
  webhookUrlFile?: string
  webhookSecretFile?: string
  smtpUrlFile?: string
  mailFrom?: string
  mailTo?: string[]
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

export const sinkFiles = [
  ['slack', 'slackUrlFile', '--slack-url-file'],
  ['email', 'smtpUrlFile', '--smtp-url-file'],
  ['teams', 'teamsUrlFile', '--teams-url-file'],
  ['pagerduty', 'pagerdutyKeyFile', '--pagerduty-key-file'],
  ['webhook', 'webhookUrlFile', '--webhook-url-file'],
] as const

/** The options that are missing where nobody can be asked. */
export function missingOptions(options: InitOptions, env: Environment): string[] {
  const hasSink = sinkFiles.some(([, key]) => options[key] !== undefined)
  const needsMail = options.smtpUrlFile !== undefined
  return [
    ...(options.baseUrl === undefined ? ['--base-url <url>'] : []),
    ...(options.apiKeyFile === undefined && !env[keyVariable]
      ? [`--api-key-file <file> (or the variable ${keyVariable})`]
      : []),
    ...(options.group === undefined ? ['--group <id>'] : []),
    ...(hasSink ? [] : [`one of ${sinkFiles.map(([, , flag]) => flag).join(', ')}`]),
    ...(needsMail && options.mailFrom === undefined ? ['--mail-from <address>'] : []),
    ...(needsMail && options.mailTo === undefined ? ['--mail-to <addresses>'] : []),
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

/** Asks a question of one line, checked by the rules of the configuration. */
export async function askFor(
  { context: { terminal }, file }: Interview,
  question: { text: string; usual?: string; given: string | undefined },
  check: (answer: string) => Partial<Draft> = () => ({}),
): Promise<string> {
  const { text, usual, given } = question
  const answer = given ?? (await terminal.ask(text, usual)) ?? usual ?? ''
  return accept(answer, check, file)
}

export async function askSecretFor(
  { context, file }: Interview,
  question: { text: string; file: string | undefined },
  check: (answer: string) => Partial<Draft>,
): Promise<string> {
  const answer =
    question.file === undefined
      ? await context.terminal.askSecret(question.text)
      : await readText(context, question.file, secretLimits)
  return accept((answer ?? '').trim(), check, file)
}

export function accept(
  answer: string,
  check: (answer: string) => Partial<Draft>,
  file: string,
): string {
  if (answer === '') throw new WrongAnswer('nothing was given')
  const mistake = findMistake(check(answer), file)
  if (mistake !== undefined) throw new WrongAnswer(mistake)
  return answer
}

/** The first question: whatever is tried later needs a Redis, for the limits and the token. */
export async function askForRedis(interview: Interview): Promise<DraftRedis> {
  const { context, options, trial } = interview
  const { terminal } = context
  return settle(interview, async (isFirst) => {
    const redis = await readRedisAnswer(interview, isFirst ? options : {})
    terminal.progress('trying Redis')
    const name = await trial.redis(redis)
    terminal.progress('')
    terminal.printError(`Redis works: ${name}`)
    return redis
  })
}

const defaultFolder = './data'

async function readRedisAnswer(
  interview: Interview,
  { redisFolder, redisUrlFile }: InitOptions,
): Promise<DraftRedis> {
  const toUrl = (url: string): Partial<Draft> => ({ redis: { url } })
  if (redisUrlFile !== undefined) {
    return { url: await askSecretFor(interview, { text: '', file: redisUrlFile }, toUrl) }
  }
  const text = 'Redis: a folder for a private one, or "url" for one of yours:'
  const folder = await askFor(
    interview,
    { text, usual: defaultFolder, given: redisFolder },
    (answer) => (answer === 'url' ? {} : { redis: { folder: answer } }),
  )
  if (folder !== 'url') return { folder }
  const asked = 'Its URL, such as redis://user:password@host:6379 (not shown):'
  return { url: await askSecretFor(interview, { text: asked, file: undefined }, toUrl) }
}

export async function askForAccount(
  interview: Interview,
  redis: DraftRedis,
): Promise<{ account: DraftAccount; found: AccountTrial }> {
  const { context, options, trial } = interview
  const { terminal } = context
  let usual: string | undefined
  return settle(interview, async (isFirst) => {
    const baseUrl = await askFor(
      interview,
      {
        text: "Address of the service's API, such as https://api.example.com:",
        ...(usual !== undefined && { usual }),
        given: isFirst ? options.baseUrl : undefined,
      },
      (answer) => ({ account: { baseUrl: answer, apiKey: 'x', linkHost: undefined } }),
    )
    await trial.reach(baseUrl)
    usual = baseUrl
    const apiKey = await readApiKey(interview, isFirst)
    const linkHost = await askForLinkHost(interview, baseUrl)
    const account = { baseUrl, apiKey, linkHost }
    terminal.progress('trying the key')
    const found = await trial.account({ redis, account })
    terminal.progress('')
    for (const fact of found.facts) terminal.printError(sanitize(fact))
    return { account, found }
  })
}

async function readApiKey(interview: Interview, isFirst: boolean): Promise<string> {
  const { context, options } = interview
  const toAccount = (apiKey: string): Partial<Draft> => ({
    account: { baseUrl: 'https://api.example.com', apiKey, linkHost: undefined },
  })
  const variable = context.env[keyVariable] ?? ''
  const isGiven = isFirst && options.apiKeyFile === undefined && variable !== ''
  if (isGiven) return accept(variable, toAccount, interview.file)
  const file = isFirst ? options.apiKeyFile : undefined
  return askSecretFor(interview, { text: 'API key (not shown):', file }, toAccount)
}

/** Asked only where links would otherwise be shown as text. */
async function askForLinkHost(interview: Interview, baseUrl: string): Promise<string | undefined> {
  const { linkHost: given } = interview.options
  const { hostname } = new URL(baseUrl)
  const isClear = isLoopback(hostname) || !linksOnlyToBase({ name: '', baseUrl, linkHosts: [] })
  if (given === undefined && isClear) return undefined
  const text = "Host of the service's web application, where links of events lead:"
  return askFor(interview, { text, usual: hostname, given }, (linkHost) => ({
    account: { baseUrl, apiKey: 'x', linkHost },
  }))
}

export async function askForGroup(
  interview: Interview,
  { groups, hasMore }: AccountTrial,
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
    const given = isFirst ? options.group?.toString() : undefined
    const answer = await askFor(interview, { text, given })
    const number = /^\d{1,15}$/.test(answer) ? Number(answer) : 0
    if (number === 0) throw new WrongAnswer('not the id of a group; write its number')
    const byId = listed.find(({ id }) => id === number)
    const byNumber = given === undefined ? listed[number - 1] : undefined
    const group = byId ?? byNumber
    if (group !== undefined) return group
    if (hasMore) return { id: number, name: '' }
    throw new WrongAnswer(`the key's tenant has no group ${number}; take one of the list`)
  })
}
