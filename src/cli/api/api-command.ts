/** What the commands that ask the service share: their options, the account, its client, the turn. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Config } from '../../config/config.ts'
import { systemClock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/errors.ts'
import { isUnknownPath } from '../../upstream/capabilities.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { UpstreamError, type UpstreamReason } from '../../upstream/error.ts'
import type { CallOptions } from '../../upstream/resources/operation.ts'
import { type Context, loadConfigFile, readText } from '../context.ts'
import { type OpenStore, withStore } from '../open-store.ts'
import { withUpstream } from '../open-upstream.ts'
import { parseList } from '../options.ts'
import { CommandError, findNamed, formatDuration } from '../terminal.ts'

export interface ServiceOptions {
  config?: string
  account?: string
  output: OutputForm
}

/** `text`: a table for people; the others for machines, all of them with every field. */
export type OutputForm = 'text' | 'json' | 'ndjson' | 'csv'

export function addServiceOptions(
  command: Command,
  forms: readonly OutputForm[] = ['text', 'json', 'ndjson', 'csv'],
): Command {
  return command
    .option('--config <file>', 'the configuration (default: config/tocsin.yaml, then tocsin.yaml)')
    .option('--account <name>', 'whose key is used; may be left out where there is only one')
    .addOption(
      new Option('--output <form>', 'for people or for machines').choices(forms).default('text'),
    )
}

export interface ApiContext {
  config: Config
  store: OpenStore
  /** The name of the one whose key is used. */
  account: string
  client: UpstreamClient
  /** In whose name the next request takes its turn: after the feeds, or one slot in ten. */
  callOptions: () => CallOptions
}

/**
 * Under the same limits as the running daemon's requests, which Redis keeps. Throws ConfigError,
 * CommandError, StoreError, and whatever `work` throws.
 */
export async function withClient<Result>(
  context: Context,
  options: Pick<ServiceOptions, 'config' | 'account'>,
  use: (upstream: ApiContext) => Promise<Result>,
): Promise<Result> {
  const { config } = loadConfigFile(context, options.config)
  const account = chooseAccount(config, options.account)
  const callOptions = (): CallOptions => ({
    slot: { kind: 'command', name: 'command', dueSinceMs: systemClock.now() },
    signal: context.stop,
  })
  return withStore(config, (store) =>
    withUpstream(config, store, (upstream) =>
      use({ config, store, account, client: upstream.client(account), callOptions }),
    ),
  )
}

function chooseAccount({ accounts }: Config, named: string | undefined): string {
  if (named !== undefined) return findNamed(accounts, named, 'account').name
  const [only, ...others] = accounts
  if (only !== undefined && others.length === 0) return only.name
  const names = accounts.map(({ name }) => name).join(', ')
  throw new CommandError('mistake', `say whose key to use, with --account: there are ${names}`)
}

/** The service speaks of what it was asked for, not of the key, the way there or its own state. */
const requestFaultStatuses = new Set([400, 403, 404, 409, 410, 422])

/** Puts the thing asked for in front of a refusal: `identifier group 99: …`. */
export async function nameFailure<Result>(
  thing: string,
  request: Promise<Result>,
): Promise<Result> {
  try {
    return await request
  } catch (error) {
    const isAboutIt = error instanceof UpstreamError && requestFaultStatuses.has(error.status ?? 0)
    throw isAboutIt ? new UpstreamError(error.reason, `${thing}: ${error.message}`, error) : error
  }
}

interface OptionalOperation {
  /** Under which name it is remembered whether it is there. */
  capability: string
  operation: string
  /** Which permission of the key's user it takes. */
  permission: string
  /** What to do where it is not to be had. */
  instead: string
}

/**
 * Asks for what not every server has and not every key may, whatever is remembered; what comes of it is
 * remembered. A refusal says which permission or server it takes, and what to do instead.
 */
export async function callOptional<Result>(
  { capabilities }: Pick<UpstreamClient, 'capabilities'>,
  { capability, operation, permission, instead }: OptionalOperation,
  request: Promise<Result>,
): Promise<Result> {
  try {
    const result = await request
    await capabilities.note(capability, true)
    return result
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    const isUnknown = isUnknownPath(error) || error.status === 405
    if (!isUnknown && error.status !== 403) throw error
    await capabilities.note(capability, false)
    const why = isUnknown
      ? `this server does not have ${operation}, which servers of 2026 have`
      : `${operation} takes the permission ${permission}, which the key's user lacks; ask an administrator`
    throw new UpstreamError(error.reason, `${why}; ${instead}`, error)
  }
}

/** Failures that may be over when the same is asked again. */

const transientReasons: ReadonlySet<UpstreamReason> = new Set([
  'unavailable',
  'timeout',
  'rate_limited',
])

export function isTransient(error: unknown): error is UpstreamError {
  return error instanceof UpstreamError && transientReasons.has(error.reason)
}

const maxRetries = 3
const firstWaitMs = 5_000
/** A service that asks for more is better asked another day. */
const maxWaitMs = 300_000

/** What changes nothing, asked again a few times where the failure may pass. Throws what `ask` threw last. */
export async function withRetries<Answer>(
  { terminal, clock, stop }: Context,
  request: () => Promise<Answer>,
): Promise<Answer> {
  for (let retries = 0; ; retries += 1) {
    try {
      return await request()
    } catch (error) {
      const waitMs = isTransient(error) ? retryWaitMs(error, retries) : Infinity
      if (retries === maxRetries || waitMs > maxWaitMs || stop.aborted) throw error
      terminal.progress(`${errorMessage(error)}; asking again in ${formatDuration(waitMs)}`)
      await clock.sleep(waitMs, AbortSignal.any([stop, terminal.outputClosed]))
    }
  }
}

function retryWaitMs({ retryAfterMs }: UpstreamError, retries: number): number {
  return retryAfterMs ?? firstWaitMs * 2 ** retries
}

/** Ids as arguments and options take them, alone and several; each refuses anything else. */

/** Of a thing at the service: a whole number from 1 on, below 2^53. */
export function parseId(text: string): number {
  const id = /^\d{1,16}$/.test(text) ? Number(text) : 0
  if (id >= 1 && Number.isSafeInteger(id)) return id
  throw new InvalidArgumentError('Write the id, a whole number of at least 1.')
}

/** One of several arguments. */
export function appendId(text: string, before: readonly number[] = []): number[] {
  return [...before, parseId(text)]
}

/** `77,78`. */
export function parseIdList(text: string): number[] {
  return parseList(text).map(parseId)
}

export function parseUuid(text: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text.toLowerCase()
  throw new InvalidArgumentError('Write a UUID, such as 7e5f1c70-0000-4000-8000-000000000001.')
}

/** Of a report that is being made. Its form is not described: servers of today give UUIDs. */
export function parseRequestId(text: string): string {
  if (/^[\w.-]{1,100}$/.test(text)) return text
  throw new InvalidArgumentError('Write the id of the request as the service gave it.')
}

/** One of several arguments. */
export function appendUuid(text: string, before: readonly string[] = []): string[] {
  return [...before, parseUuid(text)]
}

export type JsonObject = Record<string, unknown>

/**
 * The JSON object in a file, or on standard input for `-`. Throws CommandError that names the file and
 * where in it the mistake is; nothing of the text is quoted, since it may hold a secret.
 */
export async function readJsonObject(context: Context, file: string): Promise<JsonObject> {
  const place = inputName(file)
  const text = await readText(context, file)
  const value = parseJson(text.replace(/^\uFEFF/, ''), place)
  if (isObject(value)) return value
  throw new CommandError('mistake', `${place}: not a JSON object; write {"…": …}`)
}

export function inputName(file: string): string {
  return file === '-' ? 'standard input' : file
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parseJson(text: string, place: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    const before = text.slice(0, findJsonError(text)).split('\n')
    const at = `${before.length}:${(before.at(-1) ?? '').length + 1}`
    throw new CommandError('mistake', `${place}:${at}: not JSON`)
  }
}

/** The offset of the first character that no JSON has there; the parser does not always tell. */
function findJsonError(text: string): number {
  let [good, bad] = [0, text.length + 1]
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2)
    if (isJsonPrefix(text.slice(0, middle))) good = middle
    else bad = middle
  }
  return good
}

/** Whether a text is the beginning of some JSON: all that is wrong with it is that it ends. */
function isJsonPrefix(start: string): boolean {
  try {
    JSON.parse(start)
    return true
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    const position = /at position (\d+)/.exec(message)?.[1]
    return /end of JSON input/.test(message) || Number(position) >= start.length
  }
}

/**
 * A secret to search for: typed unseen, or all of standard input without its last line break. Never from
 * the command line, where every user of the machine could read it. Throws CommandError where there is none.
 */
export async function readSecret({ terminal }: Context, what: string): Promise<string> {
  const typed = await terminal.askSecret(`${what}:`)
  const secret = typed ?? (await terminal.readInput()).replace(/\r?\n$/, '')
  if (secret !== '') return secret
  throw new CommandError('mistake', `no ${what} was given; type it, or give it on standard input`)
}
