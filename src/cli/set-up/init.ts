/**
 * The `init` command: writes a configuration. It asks for what it needs and tries each answer by the
 * probes of `doctor`; with `--sink` it asks nothing, and leaves gaps for variables of the environment.
 */
import { randomBytes } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Command } from 'commander'
import { type Config, formatMistake } from '../../config/config.ts'
import { loadConfig } from '../../config/load.ts'
import { systemClock } from '../../lib/clock.ts'
import { errorCode, quoteForShell, suggestion } from '../../lib/errors.ts'
import { checkPrivateFolder, createPrivateFile } from '../../lib/config/private-files.ts'
import type { Redis } from '../../redis/client.ts'
import { StoreError } from '../../redis/health.ts'
import { createKeys } from '../../redis/keys.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { eventOperations } from '../../upstream/resources/events.ts'
import { calledAs, type Context } from '../context.ts'
import { withRedis } from '../open/open-store.ts'
import { withUpstream } from '../open/open-upstream.ts'
import { wordsOption } from '../options.ts'
import { CommandError, pluralize, sanitize } from '../terminal.ts'
import {
  type Draft,
  type Gap,
  gaps,
  nameSink,
  renderWithFiles,
  renderWithVariables,
  secretsFolder,
  type SinkKind,
  sinkKinds,
  tryDraft,
} from './init-draft.ts'
import { type AccountNeeds, accountTimeoutMs } from './account-probes.ts'
import {
  type Finding,
  formatFinding,
  isProblem,
  type Probe,
  runProbes,
} from '../../operator/probes/probe.ts'
import { probes } from './probes.ts'

interface InitOptions {
  sink?: SinkKind['type'][]
  allowPrivate?: true
}

const sinkTypes = sinkKinds.map(({ type }) => type)

export function initCommand(context: Context): Command {
  return new Command('init')
    .argument('[file]', 'the configuration to write', 'tocsin.yaml')
    .addOption(
      wordsOption('--sink <types>', 'ask nothing; write a draft with these sinks', sinkTypes),
    )
    .option('--allow-private', 'sinks may have private addresses, over http too')
    .action((file: string, options: InitOptions) => init(context, file, options))
}

/** Throws Interruption, CommandError. */
async function init(context: Context, file: string, options: InitOptions): Promise<void> {
  refuseUnwritable(file)
  const { sink: types, allowPrivate = false } = options
  if (types !== undefined) return writeWithVariables(context, file, { types, allowPrivate })
  if (!context.terminal.canAsk) {
    const remedy = `--sink ${sinkTypes.slice(0, 2).join(',')} writes a draft without questions`
    throw new CommandError('mistake', `nobody is there to ask; ${remedy}`)
  }
  const draft = await interview(context, file, allowPrivate)
  context.stop.throwIfAborted()
  const { text, secrets } = renderWithFiles(draft, file)
  writeFiles(file, text, secrets)
  const { terminal, env } = context
  const count = pluralize(secrets.length, 'secret')
  terminal.print(`${file} is written, and ${count} beside it, for you alone`)
  for (const warning of loadConfig({ path: file, env }).warnings) {
    terminal.printError(`warning ${formatMistake(warning)}`)
  }
  printNext(context, file)
}

/** Before the first question: nobody answers them all for nothing. Throws CommandError. */
function refuseUnwritable(file: string): void {
  const folder = dirname(file)
  const secrets = join(folder, secretsFolder)
  if (file === '-') throw new CommandError('mistake', '-: write the name of a file')
  if (existsSync(file)) {
    throw new CommandError('mistake', `${file}: there already; move it away, or name another file`)
  }
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    const problem = `nothing can be written to ${folder} (${errorCode(error)})`
    throw new CommandError('mistake', `${problem}; name a file elsewhere`)
  }
  // whoever may change the folder of secrets may put others in their place
  const exposure = existsSync(secrets) ? checkPrivateFolder(secrets) : undefined
  if (exposure !== undefined) throw new CommandError('mistake', `${secrets}: ${exposure}`)
}

function writeWithVariables(
  context: Context,
  file: string,
  { types, allowPrivate }: { types: readonly string[]; allowPrivate: boolean },
): void {
  const kinds = sinkKinds.filter(({ type }) => types.includes(type))
  const sinks = kinds.map((kind) => ({ name: kind.name, kind, values: {} }))
  const { text, variables } = renderWithVariables({ sinks, allowPrivate })
  writeFiles(file, text, [])
  context.terminal.print(
    `${file} is written; it takes from the environment: ${variables.join(' ')}`,
  )
  printNext(context, file)
}

function printNext(context: Context, file: string): void {
  const [program, path] = [calledAs(context), quoteForShell(file)]
  const commands = ['doctor', 'run'].map((name) => `  ${program} ${name} --config ${path}`)
  context.terminal.print(['Next:', ...commands].join('\n'))
}

/** The configuration comes last: what it names is there. What was new goes again if one fails. */
function writeFiles(
  file: string,
  text: string,
  secrets: readonly { fileName: string; value: string }[],
): void {
  const folder = dirname(file)
  const files = [
    ...secrets.map(({ fileName, value }) => [join(folder, fileName), `${value}\n`] as const),
    [file, text] as const,
  ]
  const created: string[] = []
  try {
    for (const [path, content] of files) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      createPrivateFile(path, content)
      created.push(path)
    }
  } catch (cause) {
    for (const path of created) rmSync(path, { force: true })
    const at = files[created.length]?.[0] ?? file
    const problem = `${at} could not be written (${errorCode(cause)})`
    throw new CommandError('refused', `${problem}; nothing was written`, { cause })
  }
}

/** An answer that does not work; the message says why, and what to answer instead. */
class WrongAnswer extends CommandError {
  constructor(message: string) {
    super('refused', message)
  }
}

interface Interview {
  context: Context
  file: string
  /** Where a private Redis is tried: nothing is left where `init` is broken off. */
  folder: string
}

async function interview(context: Context, file: string, allowPrivate: boolean): Promise<Draft> {
  const { terminal, stop } = context
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-init-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  stop.addEventListener('abort', remove, { once: true })
  const talk = { context, file, folder }
  try {
    let draft: Draft = { sinks: [], allowPrivate }
    draft = await settle(talk, () => askForRedis(talk, draft))
    draft = await settle(talk, async () => {
      draft = await askForAddress(talk, draft) // stands when the key does not work
      return askForKey(talk, draft)
    })
    draft = await settle(talk, () => askForGroup(talk, draft))
    do {
      draft = await settle(talk, () => askForSink(talk, draft))
    } while (await terminal.confirm('Another destination?'))
    return draft
  } finally {
    remove()
  }
}

/** How often a question is asked: at the end of its input nobody answers any more. */
const mostTries = 5

/** Asks until an answer works, and says why one does not. */
async function settle<Value>(
  { context: { terminal } }: Interview,
  attempt: () => Promise<Value>,
): Promise<Value> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof WrongAnswer)) throw error
      terminal.progress('')
      const message = sanitize(error.message, 1_000).replace(
        'set allow_private: true',
        'start again with --allow-private',
      )
      if (tries === mostTries) throw new CommandError('refused', `${message}; nothing was written`)
      terminal.printError(message)
    }
  }
}

async function ask({ context: { terminal } }: Interview, gap: Gap, usual = ''): Promise<string> {
  const text = `${gap.asks.charAt(0).toUpperCase()}${gap.asks.slice(1)}`
  const answer = gap.isSecret
    ? await terminal.askSecret(`${text} (not shown):`)
    : await terminal.ask(`${text}:`, usual)
  return (answer ?? '').trim()
}

async function askForRedis(talk: Interview, draft: Draft): Promise<Draft> {
  const answered = { ...draft, redisUrl: (await ask(talk, gaps.redisUrl)) || undefined }
  await tryWithRedis(talk, answered, (redis, config) =>
    runProbes(probes.redisServer, { redis, config }, talk.context.stop),
  )
  return answered
}

async function askForAddress(talk: Interview, draft: Draft): Promise<Draft> {
  const { env, stop } = talk.context
  const answered = { ...draft, baseUrl: await ask(talk, gaps.baseUrl, draft.baseUrl) }
  for (const account of configOf(talk, answered).accounts) {
    requireWell(talk, await runProbes(probes.reach, { account, env }, stop))
  }
  return answered
}

const tenant: Gap = {
  key: 'tenant_id',
  variable: '',
  asks: "id of the tenant; empty: the default of the key's user",
}

async function askForKey(talk: Interview, draft: Draft): Promise<Draft> {
  const apiKey = await ask(talk, gaps.apiKey)
  const answered = { ...draft, apiKey, tenantId: (await ask(talk, tenant)) || undefined }
  await tryAccount(talk, answered, probes.key)
  return answered
}

const group: Gap = {
  key: 'identifier_group',
  variable: '',
  asks: 'id of an identifier group; empty: all that the tenant watches for',
}

/** Not every server can search a whole tenant. */
async function askForGroup(talk: Interview, draft: Draft): Promise<Draft> {
  const answered = { ...draft, groupId: (await ask(talk, group)) || undefined }
  await tryAccount(talk, answered, [feedProbe])
  return answered
}

/** One search of the only feed. */
const feedProbe: Probe<AccountNeeds> = {
  name: 'feed',
  timeoutMs: accountTimeoutMs,
  subject: ({ config }) => config.feeds[0]?.type ?? '',
  async find({ config, client }, subject, signal) {
    const [feed] = config.feeds
    const slot = { kind: 'command', name: 'init', dueSinceMs: systemClock.now() } as const
    const asked = { slot, signal }
    try {
      if (feed?.type !== 'events' || feed.identifierGroup === undefined)
        await client.call(eventOperations.searchTenant, { size: 1 }, asked)
      else {
        const request = { identifier_group_id: feed.identifierGroup, size: 1 }
        await client.call(eventOperations.searchGroup, request, asked)
      }
      return [subject.good('can be read')]
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      const remedy = 'give the id of an identifier group: the page of the service shows it'
      return [subject.bad('problem', error.message, remedy)]
    }
  },
}

async function askForSink(talk: Interview, draft: Draft): Promise<Draft> {
  const { terminal, env, stop } = talk.context
  const wanted = await terminal.ask(`Where messages go (${sinkTypes.join(', ')}):`, 'slack')
  const kind = sinkKinds.find(({ type }) => type === wanted?.toLowerCase())
  if (!kind)
    throw new WrongAnswer(`no kind of sink; ${suggestion(wanted ?? '', sinkTypes, 'known')}`)
  const values: Record<string, string> = {}
  for (const gap of kind.gaps) {
    const answer = await ask(talk, gap)
    values[gap.key] = gap.isMade && answer === '' ? makeSigningSecret() : answer
  }
  const sinks = [...draft.sinks, { name: nameSink(kind, draft), kind, values }]
  const config = configOf(talk, { ...draft, sinks })
  const sends = await terminal.confirm('Send it one message marked TEST now?')
  const [sink] = config.sinks.slice(-1)
  const asked = sends ? probes.sinkSend : probes.sinkReach
  try {
    requireWell(talk, sink ? await runProbes(asked, { sink, config, env }, stop) : [])
  } catch (error) {
    if (!(error instanceof WrongAnswer)) throw error
    terminal.printError(sanitize(error.message, 1_000))
    if (!(await terminal.confirm('Keep it all the same?'))) throw new WrongAnswer('then once more')
  }
  return { ...draft, sinks }
}

/** Standard Webhooks: 24 to 64 random bytes. */
function makeSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** Throws WrongAnswer for what the configuration would refuse. */
function configOf({ file, folder }: Interview, draft: Draft): Config {
  const config = tryDraft(draft, file, folder)
  if (typeof config === 'string') throw new WrongAnswer(config)
  return config
}

function tryAccount(
  talk: Interview,
  draft: Draft,
  asked: readonly Probe<AccountNeeds>[],
): Promise<void> {
  return tryWithRedis(talk, draft, (redis, config) => {
    const store = { redis, keys: createKeys(config.redis.prefix), ledgers: [] }
    return withUpstream(config, store, (upstream) =>
      runProbes(asked, { config, store, client: upstream.client('main') }, talk.context.stop),
    )
  })
}

async function tryWithRedis(
  talk: Interview,
  draft: Draft,
  look: (redis: Redis, config: Config) => Promise<Finding[]>,
): Promise<void> {
  const config = configOf(talk, draft)
  talk.context.terminal.progress('trying it')
  try {
    requireWell(talk, await withRedis(config.redis, (redis) => look(redis, config)))
  } catch (error) {
    throw error instanceof StoreError ? new WrongAnswer(error.message) : error
  }
}

/** Prints what was found. Throws WrongAnswer for a problem. */
function requireWell({ context: { terminal } }: Interview, findings: readonly Finding[]): void {
  terminal.progress('')
  const wrong = findings.filter(isProblem)
  if (wrong.length > 0) throw new WrongAnswer(wrong.map(formatFinding).join('. '))
  for (const finding of findings) terminal.printError(sanitize(formatFinding(finding), 1_000))
}
