/** What the commands that call the API share: options, the account, its client, the API slot, input. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Config } from '../../config/config.ts'
import { systemClock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/errors.ts'
import { secretLimits } from '../../lib/config/private-files.ts'
import type { CallOptions } from '../../upstream/call.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { type Fields, type Operation, parameterNames } from '../../upstream/resources/operation.ts'
import { type Context, inputName, loadConfigFile, readText } from '../context.ts'
import { type OpenStore, withStore } from '../open/open-store.ts'
import { withUpstream } from '../open/open-upstream.ts'
import { CommandError, findNamed, sanitize } from '../terminal.ts'
import { requestFaultStatuses } from '../../operator/acts/service-acts.ts'

export interface ServiceOptions {
  config?: string
  account?: string
  output: OutputForm
}

/** `text` is a table for people; the other forms are for programs and hold every field. */
export type OutputForm = 'text' | 'json' | 'ndjson'

export function addServiceOptions(
  command: Command,
  forms: readonly OutputForm[] = ['text', 'json'],
): Command {
  return command
    .option('--config <file>', 'the configuration (default: tocsin.yaml, then config/tocsin.yaml)')
    .option('--account <name>', 'whose key is used; may be left out where there is only one')
    .addOption(
      new Option('--output <form>', 'for people or for machines').choices(forms).default('text'),
    )
}

export interface ApiContext {
  config: Config
  store: OpenStore
  /** Name of the account whose key is used. */
  account: string
  client: UpstreamClient
  /** Asks for the next call's API slot as a command: after the feeds, or one slot in ten. */
  callOptions: () => CallOptions
}

/**
 * Runs `use` with the account's client, under the rate limits that the daemon shares through Redis.
 * Throws ConfigError, CommandError, StoreError, and whatever `use` throws.
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

/** Prefixes a refusal with the requested thing: `identifier group 99: …`. */
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

/** Sends an operation for a command; a refusal names the permission or the server that it takes. */
export async function callRow<Request, Result>(
  { client, callOptions }: Pick<ApiContext, 'client' | 'callOptions'>,
  row: Operation<Request, Result>,
  request: Request,
): Promise<Result> {
  const things = thingsIn(row, request as Fields)
  const result = client.call(row, request, callOptions())
  const named = things.length === 0 ? result : nameFailure(sanitize(things.join(', ')), result)
  return explainRefusal(row, named)
}

/** What a request names that may be missing or another's: `identifier_id 77`. */
function thingsIn(row: Pick<Operation, 'path'>, request: Fields): string[] {
  return [...parameterNames(row), 'uid', 'group_id', 'parent_group_id'].flatMap((name) =>
    request[name] === undefined ? [] : [`${name} ${request[name] as string | number}`],
  )
}

/** Adds to a refusal which permission or server an operation takes, where that may be missing. */
export async function explainRefusal<Result>(
  { method, path, permission }: Pick<Operation, 'method' | 'path' | 'permission'>,
  result: Promise<Result>,
): Promise<Result> {
  if (permission === undefined) return result
  try {
    return await result
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    const isUnknown = isUnknownPath(error) || error.status === 405
    if (!isUnknown && error.status !== 403) throw error
    const why = isUnknown
      ? `this server may not have ${method} ${path}`
      : `it takes the permission ${permission}`
    throw new UpstreamError(error.reason, `${error.message}; ${why}`, error)
  }
}

/** Whether the error is a 404 for the path itself, not for something that the path names. */
function isUnknownPath({ status, fault, serviceCode, message }: UpstreamError): boolean {
  if (status !== 404) return false
  return fault === 'html' || (serviceCode === undefined && /: not found\.?$/i.test(message))
}

/** Parses an id of the API: a whole number from 1, below 2^53. Throws InvalidArgumentError. */
export function parseId(text: string): number {
  const id = /^\d{1,16}$/.test(text) ? Number(text) : 0
  if (id >= 1 && Number.isSafeInteger(id)) return id
  throw new InvalidArgumentError('Write the id, a whole number of at least 1.')
}

export type JsonObject = Record<string, unknown>

/**
 * Reads a JSON object from a file, or from standard input for `-`. Throws CommandError with the
 * file; the text is not quoted, since it may hold a secret.
 */
export async function readJsonObject(context: Context, file: string): Promise<JsonObject> {
  return parseJsonObject(await readText(context, file), inputName(file))
}

/** `place`: where the text is from. Throws CommandError. */
export function parseJsonObject(text: string, place: string): JsonObject {
  const value = parseJson(text, place)
  if (isObject(value)) return value
  throw new CommandError('mistake', `${place}: not a JSON object; write {"…": …}`)
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parseJson(text: string, place: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    const [, line, column] = /\(line (\d+) column (\d+)\)/.exec(errorMessage(error)) ?? []
    throw new CommandError('mistake', `${place}${line ? `:${line}:${column}` : ''}: not JSON`)
  }
}

/**
 * Asks for a secret without echo, or reads standard input without its last line break. A secret is
 * never an argument: every user of the machine could read it. Throws CommandError when none is
 * given.
 */
export async function readSecret(context: Context, what: string): Promise<string> {
  const typed = await context.terminal.askSecret(`${what}:`)
  const secret = typed ?? (await readText(context, '-', secretLimits)).replace(/\r?\n$/, '')
  if (secret !== '') return secret
  throw new CommandError('mistake', `no ${what} was given; type it, or give it on standard input`)
}
