/**
 * `tocsin api`: every operation of the API as a command, made from its row. What changes something is
 * asked for and recorded; answers are masked unless revealed.
 */
import { Command } from 'commander'
import { z } from 'zod'
import {
  buildRequest,
  type Fields,
  type Operation,
  type SearchPage,
} from '../../upstream/resources/operation.ts'
import { operations } from '../../upstream/resources/operations.ts'
import { type Context, inputName, print, requireConfirmation } from '../context.ts'
import { addByOption, type ByOption, ledgerFor, operatorName } from '../open/open-store.ts'
import { CommandError, findNamed, formatTable, jsonText, sanitize } from '../terminal.ts'
import {
  addServiceOptions,
  type ApiContext,
  callRow,
  parseJsonObject,
  readJsonObject,
  type ServiceOptions,
  withClient,
} from './api-command.ts'
import {
  addFieldOptions,
  describeBody,
  holdsSecret,
  namesTargets,
  pageSizeOf,
  readOptions,
} from './fields.ts'
import {
  addRevealOption,
  fieldLines,
  parseRows,
  type RevealOption,
  rowListing,
  valueAt,
} from './listing.ts'
import { holdsMask, maskAllSecrets, maskAnswer } from './masks.ts'
import { type FetchedRows, listCommand, type ListOptions, type ListRequest } from './pages.ts'
import { recordServiceAct } from '../../operator/acts/service-acts.ts'

export function apiCommand(context: Context): Command {
  const command = new Command('api')
    .configureHelp({ subcommandTerm: (inner) => inner.name() })
    .argument('[operation]', 'the operation to call; without it, all are listed')
    .allowUnknownOption() // options of an operation that there is not
    .allowExcessArguments()
    .action((name: string = '-') =>
      name.startsWith('-') ? listOperations(context) : refuseOperation(name),
    )
  for (const row of operations.filter(({ onlyBy }) => onlyBy === undefined)) {
    command.addCommand(row.item ? rowsCommand(context, row) : callCommand(context, row))
  }
  return command
}

function listOperations({ terminal }: Context): void {
  const rows = operations.map(
    ({ name, method, path, tier = 'basic', changes, summary, onlyBy }) => [
      name,
      `${method} ${path}`,
      tier,
      changes ? 'writes' : '',
      onlyBy === undefined ? summary : `${summary}: "tocsin ${onlyBy}"`,
    ],
  )
  const lines = formatTable([['OPERATION', 'REQUEST', 'TIER', '', 'SUMMARY'], ...rows])
  terminal.print(lines.join('\n'))
}

function refuseOperation(name: string): never {
  const known = findNamed(operations, name, 'operation')
  throw new CommandError('mistake', `api does not call ${name}; use: tocsin ${known.onlyBy}`)
}

interface RequestOptions extends Record<string, unknown> {
  body?: string
}

function addRequestOptions(command: Command, row: Operation): Command {
  addFieldOptions(command, row)
  if (row.body) {
    const says = 'the request as JSON, or a file with it, or - for standard input'
    command.option('--body <json>', `${says}; options add to it`)
  }
  const bodyHelp = describeBody(row)
  const call = `${row.method} ${row.path}`
  return command.addHelpText('after', `\n${[call, bodyHelp].filter(Boolean).join('\n')}`)
}

/** Reads the fields of body and options and checks them. Throws CommandError or UpstreamError. */
async function readRequest(
  context: Context,
  row: Operation,
  options: RequestOptions,
): Promise<Fields> {
  const body = await readBody(context, row, options.body)
  const request = { ...body, ...readOptions(row, options) }
  if (row.paging && (body['from'] !== undefined || body['size'] !== undefined)) {
    throw new CommandError('mistake', '--body: leave out from and size; use --from and --limit')
  }
  if (row.changes && holdsMask(request)) {
    throw new CommandError('mistake', 'the request holds a masked secret; write the secret itself')
  }
  buildRequest(row, request)
  return request
}

async function readBody(
  context: Context,
  row: Operation,
  body: string | undefined,
): Promise<Fields> {
  if (body === undefined) return {}
  if (!body.trim().startsWith('{')) return readJsonObject(context, body)
  const given = parseJsonObject(body, '--body')
  if (!holdsSecret(row, given)) return given
  const remedy = `give it in a file, or on ${inputName('-')} by --body -`
  throw new CommandError('mistake', `--body: others can read a secret on a command line; ${remedy}`)
}

/** The command of an operation that answers with a list, whole or page by page. */
export function rowsCommand(context: Context, row: Operation, name = `api ${row.name}`): Command {
  return listCommand(context, {
    name,
    description: row.summary,
    options: (command) => addRequestOptions(command, row),
    ...(row.paging && { pageSize: pageSizeOf(row) }),
    reveal: true,
    ask: (options: ListOptions & RequestOptions) => readRequest(context, row, options),
    listing: () => rowListing(row),
    fetch: (asking) => fetchRows(asking, row, asking.asked),
  })
}

/** Asks for one page of an operation, or for its whole list; items are masked unless revealed. */
export async function fetchRows<Item>(
  { context, options, position, ...api }: ListRequest<ListOptions, unknown>,
  row: Operation,
  request: Fields,
): Promise<FetchedRows<Item>> {
  const sized = row.paging ? { ...request, size: position.size, from: position.cursor } : request
  const answer = await callRow(api, row as Operation<Fields>, sized)
  const { page, searchesRemaining }: Pick<SearchPage, 'page' | 'searchesRemaining'> = row.paging
    ? (answer as SearchPage)
    : { page: { items: answer as unknown[], next: null } }
  const asked = { request, secrets: buildRequest(row, request).secrets }
  const items = parseRows<unknown>(context, row.item ?? z.unknown(), page.items)
  const rows = options.reveal ? items : items.map((item) => maskAnswer(row, item, asked))
  return { rows: rows as Item[], next: page.next, searchesRemaining }
}

interface CallCommandOptions extends ServiceOptions, RevealOption, ByOption, RequestOptions {
  output: 'text' | 'json'
  yes?: true
}

function callCommand(context: Context, row: Operation): Command {
  const command = addRequestOptions(new Command(row.name).description(row.summary), row)
  addRevealOption(command)
  if (row.changes) command.option('--yes', 'do not ask')
  if (row.changes && namesTargets(row)) addByOption(command)
  return addServiceOptions(command, ['text', 'json']).action((options: CallCommandOptions) =>
    callOnce(context, row, options),
  )
}

async function callOnce(
  context: Context,
  row: Operation,
  options: CallCommandOptions,
): Promise<void> {
  const request = await readRequest(context, row, options)
  const answer = await withClient(context, options, (api) =>
    row.changes
      ? writeOnce(context, api, row, { request, options })
      : callRow(api, row as Operation<Fields>, request),
  )
  const asked = { request, secrets: buildRequest(row, request).secrets }
  const whole = answer ?? { done: true }
  const shown = options.reveal ? whole : maskAnswer(row, whole, asked)
  print(context, options, { json: shown, lines: () => fieldLines(shown) })
}

/**
 * Asks, then sends. What is done to events and credentials is recorded before it is sent, and what
 * came of it.
 */
async function writeOnce(
  context: Context,
  api: ApiContext,
  row: Operation,
  { request, options }: { request: Fields; options: CallCommandOptions },
): Promise<unknown> {
  if (!options.yes) await requireConfirmation(context, describeWrite(row, api.account, request))
  const send = (): Promise<unknown> => callRow(api, row as Operation<Fields>, request)
  const targets = findTargets(request)
  if (targets.length === 0) return send()
  const type = valueAt(request, 'action.type')
  const action = typeof type === 'string' ? `${row.name} ${type}` : row.name
  const by = operatorName(context, options) ?? 'an operator'
  return recordServiceAct(ledgerFor(api.store, api.account), { by, action, targets }, send)
}

function describeWrite(row: Operation, account: string, request: Fields): string[] {
  const { method, path, body, secrets } = buildRequest(row, request)
  const content = body === undefined ? '' : ` with ${jsonText(maskAllSecrets(body, secrets))}`
  return [
    `${row.name} (${row.summary}), by account ${account}:`,
    sanitize(`${method} ${path}${content}`, 4_000),
  ]
}

/** The uids and hashes that a request names. */
function findTargets(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    (name === 'uid' || name === 'credential_hash') && typeof inner === 'string'
      ? [inner]
      : findTargets(inner),
  )
}
