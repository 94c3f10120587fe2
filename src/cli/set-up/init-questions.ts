/** The questions of `init`, each with the option that answers it and the trial of the answer. */
import { randomBytes } from 'node:crypto'
import type { Environment } from '../../config/config.ts'
import { isLoopback } from '../../lib/web-address.ts'
import { linksOnlyToBase } from '../../upstream/links.ts'
import { type Context, readText } from '../context.ts'
import { CommandError, formatTable, pluralize, sanitize } from '../terminal.ts'
import {
  type Draft,
  type DraftAccount,
  type DraftRedis,
  type DraftSink,
  type DraftSinkType,
  findMistake,
} from './init-draft.ts'
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

const sinkFiles = [
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

/** Asks for all that the file needs and tries each answer. Throws Interruption, CommandError. */
export async function askForDraft(interview: Interview): Promise<Draft> {
  const redis = await askForRedis(interview)
  const { account, found } = await askForAccount(interview, redis)
  const group = await askForGroup(interview, found)
  const sinks = await askForSinks(interview, account)
  return { redis, account, group, sinks }
}

/** How often a question is asked: at the end of its input nobody answers any more. */
const mostTries = 5

/**
 * Asks until an answer works, and says why one does not. What an option says is tried once where
 * nobody can be asked.
 */
async function settle<Value>(
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
async function askFor(
  { context: { terminal }, file }: Interview,
  question: { text: string; usual?: string; given: string | undefined },
  check: (answer: string) => Partial<Draft> = () => ({}),
): Promise<string> {
  const { text, usual, given } = question
  const answer = given ?? (await terminal.ask(text, usual)) ?? usual ?? ''
  return accept(answer, check, file)
}

async function askSecretFor(
  { context, file }: Interview,
  question: { text: string; file: string | undefined },
  check: (answer: string) => Partial<Draft>,
): Promise<string> {
  const answer =
    question.file === undefined
      ? await context.terminal.askSecret(question.text)
      : await readText(context, question.file)
  return accept((answer ?? '').trim(), check, file)
}

function accept(answer: string, check: (answer: string) => Partial<Draft>, file: string): string {
  if (answer === '') throw new WrongAnswer('nothing was given')
  const mistake = findMistake(check(answer), file)
  if (mistake !== undefined) throw new WrongAnswer(mistake)
  return answer
}

/** The first question: whatever is tried later needs a Redis, for the limits and the token. */
async function askForRedis(interview: Interview): Promise<DraftRedis> {
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

async function askForAccount(
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

async function askForGroup(
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

async function askForSinks(interview: Interview, account: DraftAccount): Promise<DraftSink[]> {
  const { context, options } = interview
  const { terminal } = context
  const given = sinkFiles.filter(([, key]) => options[key] !== undefined)
  const sinks: DraftSink[] = []
  for (const [type] of given) sinks.push(await askForSink(interview, account, { type, sinks }))
  if (given.length > 0) return sinks
  do {
    const type = await askForType(interview)
    sinks.push(await askForSink(interview, account, { type, sinks }))
  } while (await terminal.confirm('Another destination?'))
  return sinks
}

const typeWords = sinkFiles.map(([type]) => type)

async function askForType(interview: Interview): Promise<DraftSinkType> {
  const text = `Where messages go (${typeWords.join(', ')}):`
  return settle(interview, async () => {
    const answer = await askFor(interview, { text, usual: 'slack', given: undefined })
    const type = typeWords.find((word) => word === answer.toLowerCase())
    if (type !== undefined) return type
    throw new WrongAnswer(`there is no "${answer}"; write one of ${typeWords.join(', ')}`)
  })
}

const usualNames: Record<DraftSinkType, string> = {
  slack: 'soc',
  email: 'oncall',
  teams: 'chat',
  pagerduty: 'duty',
  webhook: 'siem',
}

async function askForSink(
  interview: Interview,
  account: DraftAccount,
  { type, sinks }: { type: DraftSinkType; sinks: readonly DraftSink[] },
): Promise<DraftSink> {
  const { context, options, trial } = interview
  const { terminal } = context
  const same = sinks.filter((sink) => sink.type === type).length
  const name = `${usualNames[type]}${same === 0 ? '' : same + 1}`
  return settle(interview, async (isFirst) => {
    const given = isFirst && same === 0 ? options : {}
    const sink = { name, type, ...(await askForAddress(interview, { name, type }, given)) }
    const sends = await mayTest(interview, sink)
    terminal.progress(`trying ${name}`)
    try {
      const found = await trial.sink({ account, sink }, sends)
      terminal.progress('')
      for (const line of found) terminal.printError(`${name}: ${sanitize(line)}`)
    } catch (error) {
      if (!(error instanceof WrongAnswer) || !terminal.canAsk) throw error
      terminal.progress('')
      terminal.printError(`${name}: ${sanitize(error.message, 1_000)}`)
      if (!(await terminal.confirm('Keep it all the same?'))) {
        throw new WrongAnswer('then once more')
      }
    }
    return sink
  })
}

async function mayTest(
  { context: { terminal }, options }: Interview,
  sink: DraftSink,
): Promise<boolean> {
  if (sink.isSecretNew) return false
  if (options.send) return true
  const people = sink.keys['to']
  const to = Array.isArray(people) ? ` to ${pluralize(people.length, 'recipient')}` : ''
  return (await terminal.confirm(`Send one message marked TEST${to} now?`)) ?? false
}

type Address = Pick<DraftSink, 'secret' | 'keys' | 'signingSecret' | 'isSecretNew'>
type Named = Pick<DraftSink, 'name' | 'type'>

async function askForAddress(
  interview: Interview,
  sink: Named,
  given: InitOptions,
): Promise<Address> {
  const { allowPrivate } = interview.options
  const keys = allowPrivate ? { allow_private: true } : {}
  switch (sink.type) {
    case 'email':
      return askForMail(interview, sink, given)
    case 'webhook':
      return askForWebhook(interview, sink, given)
    case 'pagerduty':
      return askForPagerDuty(interview, sink, given)
    case 'slack':
    case 'teams': {
      const file = sink.type === 'teams' ? given.teamsUrlFile : given.slackUrlFile
      return { secret: await askForUrl(interview, { ...sink, keys }, file), keys }
    }
  }
}

async function askForUrl(
  interview: Interview,
  sink: Omit<DraftSink, 'secret'>,
  file: string | undefined,
): Promise<string> {
  const kind = sink.type === 'webhook' ? 'webhook' : `${sink.type} webhook`
  return askSecretFor(interview, { text: `URL of the ${kind} (not shown):`, file }, (secret) => ({
    sinks: [{ ...sink, secret }],
  }))
}

/** A receiver does not know a secret that is made here: nothing is sent to it yet. */
async function askForWebhook(
  interview: Interview,
  sink: Named,
  { webhookUrlFile, webhookSecretFile }: InitOptions,
): Promise<Address> {
  const { context, options, file } = interview
  const keys = options.allowPrivate ? { allow_private: true } : {}
  const secret = await askForUrl(interview, { ...sink, keys }, webhookUrlFile)
  const text = 'Signing secret that the receiver knows (not shown; empty: a new one is made):'
  const isAsked = webhookSecretFile === undefined && webhookUrlFile === undefined
  const known = isAsked
    ? await context.terminal.askSecret(text)
    : webhookSecretFile && (await readText(context, webhookSecretFile))
  if (!known) {
    const line = 'its signing secret is new; give the receiver what its file holds, then test it'
    context.terminal.printError(`${sink.name}: ${line}`)
  }
  const signingSecret = known ? known.trim() : makeSigningSecret()
  accept(signingSecret, () => ({ sinks: [{ ...sink, keys, secret, signingSecret }] }), file)
  return { secret, keys, signingSecret, isSecretNew: !known }
}

/** Standard Webhooks: 24 to 64 random bytes. */
function makeSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

const usualEventsApi = 'https://events.pagerduty.com'

async function askForPagerDuty(
  interview: Interview,
  sink: Named,
  { pagerdutyUrl, pagerdutyKeyFile: file }: InitOptions,
): Promise<Address> {
  const { allowPrivate } = interview.options
  const others = allowPrivate ? { allow_private: true } : {}
  const exampleKey = '0'.repeat(32)
  const url = await askFor(
    interview,
    {
      text: 'Address of the Events API (https://events.eu.pagerduty.com in the EU region):',
      usual: usualEventsApi,
      given: pagerdutyUrl ?? (file === undefined ? undefined : usualEventsApi),
    },
    (answer) => ({ sinks: [{ ...sink, secret: exampleKey, keys: { ...others, url: answer } }] }),
  )
  const keys = { ...others, url }
  const text = 'Integration key of an Events API v2 integration (not shown):'
  const secret = await askSecretFor(interview, { text, file }, (answer) => ({
    sinks: [{ ...sink, keys, secret: answer }],
  }))
  return { secret, keys }
}

async function askForMail(
  interview: Interview,
  sink: Named,
  { smtpUrlFile: file, mailFrom, mailTo }: InitOptions,
): Promise<Address> {
  const example = { from: 'tocsin@example.com', to: ['oncall@example.com'] }
  const toSink = (secret: string, keys: DraftSink['keys'] = example): Partial<Draft> => ({
    sinks: [{ ...sink, secret, keys }],
  })
  const secret =
    file === undefined
      ? await askForServer(interview, toSink)
      : await askSecretFor(interview, { text: '', file }, toSink)
  const from = await askFor(interview, { text: 'From which address:', given: mailFrom }, (answer) =>
    toSink(secret, { ...example, from: answer }),
  )
  const list = (text: string): string[] => text.split(',').map((address) => address.trim())
  const question = { text: 'To which addresses (a comma between each):', given: mailTo?.join() }
  const to = await askFor(interview, question, (answer) =>
    toSink(secret, { from, to: list(answer) }),
  )
  return { secret, keys: { from, to: list(to) } }
}

const implicitTlsPort = ':465'

async function askForServer(
  interview: Interview,
  toSink: (secret: string) => Partial<Draft>,
): Promise<string> {
  const { terminal } = interview.context
  const toUrl = (host: string, login = ''): string =>
    `${host.endsWith(implicitTlsPort) ? 'smtps' : 'smtp'}://${login}${host}`
  const text = 'Mail server, as host:port:'
  const host = await askFor(interview, { text, given: undefined }, (answer) =>
    toSink(toUrl(answer)),
  )
  const user = (await terminal.ask('User there (empty: none):')) ?? ''
  if (user === '') return toUrl(host)
  const password = (await terminal.askSecret('Password (not shown):')) ?? ''
  return toUrl(host, `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`)
}
