/** The `assets` commands, and how assets are printed. */

import { Command } from 'commander'
import { fullMask } from '../../masking/mask-secret.ts'
import { maskSecrets, maskText } from '../../masking/masking.ts'
import { findTreatment } from '../../masking/secret-names.ts'
import { assetCreation, assetReplacement, type WireAsset } from '../../upstream/resources/assets.ts'
import { assetTypes, createSearchTypes } from '../../upstream/resources/enumerations.ts'
import { checkRequest } from '../../upstream/resources/operation.ts'
import { requireConfirmation, type Context, inputName } from '../context.ts'
import { parseList, parseText, wordsOption } from '../options.ts'
import { CommandError, pluralize, sanitize, jsonText } from '../terminal.ts'
import {
  addServiceOptions,
  type ApiContext,
  appendId,
  parseIdList,
  type JsonObject,
  nameFailure,
  nameFailureOrMissing,
  readJsonObject,
  readSecret,
  type ServiceOptions,
  parseId,
  withClient,
} from './api-command.ts'
import { assetsListCommand } from './identifiers.ts'
import {
  addRevealOption,
  changeEach,
  formatList,
  type Listing,
  type RevealOption,
} from './listing.ts'
import { printOne } from './pages.ts'

export function assetsCommand(context: Context): Command {
  return new Command('assets')
    .addCommand(assetsListCommand(context))
    .addCommand(getCommand(context))
    .addCommand(createCommand(context))
    .addCommand(replaceCommand(context))
    .addCommand(toggleCommand(context, 'enable'))
    .addCommand(toggleCommand(context, 'disable'))
    .addCommand(deleteCommand(context))
}

function getCommand(context: Context): Command {
  return addAssetOptions(new Command('get'))
    .description('one asset')
    .argument('<id>', 'id of the asset', parseId)
    .action((id: number, options: AssetOptions) => getAsset(context, id, options))
}

function deleteCommand(context: Context): Command {
  return addServiceOptions(new Command('delete'))
    .description('delete assets, perhaps with what was found for them; disable keeps that')
    .argument('<ids...>', 'ids of assets', appendId)
    .option('--yes', 'do not ask')
    .action((ids: number[], options: DeleteOptions) => deleteAssets(context, ids, options))
}

function createCommand(context: Context): Command {
  return addAssetOptions(new Command('create'))
    .description(
      'begin to watch something, e.g. create example.com --type domain --search-types all',
    )
    .argument(
      '[value]',
      'what is watched, of a type whose data is one field; a secret is asked for',
    )
    .addOption(
      wordsOption('--type <type>', 'what it is', assetTypes, parseText).makeOptionMandatory(),
    )
    .requiredOption(
      '--search-types <types>',
      'where to look, such as leak,paste; or all',
      parseList,
    )
    .option('--name <text>', 'what it is called (default: the value)')
    .option('--data <key=value>', 'one field of its data; once for each', appendText)
    .option('--data-file <file>', 'its data as a JSON object; - for standard input')
    .option('--risks <numbers>', 'only these severities, 1 (info) to 5 (critical)', parseIdList)
    .option('--experimental-search-types <types>', 'further places to look', parseList)
    .option('--group <id>', 'the assets group that it shall be in', parseId)
    .action((value: string | undefined, options: CreateAssetOptions) =>
      createAsset(context, value, options),
    )
}

function replaceCommand(context: Context): Command {
  return addAssetOptions(new Command('replace'))
    .description(
      'put a whole asset in the place of another; what the file leaves out is gone on older servers',
    )
    .argument('<id>', 'id of the asset', parseId)
    .requiredOption(
      '--file <file>',
      'the asset in JSON, name, type, search_types and data at least; - for standard input',
    )
    .action((id: number, options: ReplaceOptions) => replaceAsset(context, id, options))
}

function toggleCommand(context: Context, verb: 'enable' | 'disable'): Command {
  return addAssetOptions(new Command(verb))
    .description(verb === 'enable' ? 'watch assets again' : 'watch assets no longer')
    .argument('<ids...>', 'ids of assets', appendId)
    .action((ids: number[], options: ReplaceOptions) =>
      toggleAssets(context, ids, { ...options, isDisabled: verb === 'disable' }),
    )
}

function addAssetOptions(command: Command): Command {
  return addServiceOptions(addRevealOption(command, 'show secrets as they are'))
}

function appendText(text: string, before: readonly string[] = []): string[] {
  return [...before, text]
}

export interface CreateAssetOptions extends AssetOptions {
  type: string
  searchTypes: string[]
  name?: string
  data?: string[]
  dataFile?: string
  risks?: number[]
  experimentalSearchTypes?: string[]
  group?: number
}

/** Creates an asset and prints it as the API returned it. */
export async function createAsset(
  context: Context,
  value: string | undefined,
  options: CreateAssetOptions,
): Promise<void> {
  const { type, searchTypes, risks, experimentalSearchTypes, group, name = value } = options
  const asset = checkRequest(assetCreation, {
    name,
    type,
    search_types: searchTypes.join() === 'all' ? [...createSearchTypes] : searchTypes,
    data: withStrictness(type, await readAssetData(context, value, options)),
    ...(experimentalSearchTypes && { experimental_search_types: experimentalSearchTypes }),
    ...(risks && { risks }),
    ...(group !== undefined && { assets_group_id: group }),
  })
  const created = await withClient(context, options, ({ client, callOptions }) =>
    nameFailure(describeTarget(asset.name, group), client.createAsset({ asset, ...callOptions() })),
  )
  printOne(context, options, assetListing(options.reveal === true), created)
}

function describeTarget(name: string, group: number | undefined): string {
  return group === undefined ? `asset "${name}"` : `asset "${name}" of assets group ${group}`
}

/** The key of `data` for the types that have only one (docs/api-notes.md, Assets). */
const fieldOfSingleFieldType: Readonly<Record<string, string>> = {
  domain: 'fqdn',
  keyword: 'keyword',
  email: 'email',
  username: 'username',
  search_query: 'search_query',
  bin: 'bin',
  ip: 'ip',
  azure_tenant: 'tenant_id',
  role: 'role',
  phone_number: 'phone_number',
}

/** Adds `is_strict` to a name: the v4 API requires it (docs/api-notes.md, Assets). */
function withStrictness(type: string, data: JsonObject | undefined): JsonObject | undefined {
  return type === 'name' && data ? { is_strict: false, ...data } : data
}

async function readAssetData(
  context: Context,
  value: string | undefined,
  { type, data, dataFile }: CreateAssetOptions,
): Promise<JsonObject | undefined> {
  if ([value, data, dataFile].filter((given) => given !== undefined).length > 1) {
    throw new CommandError('mistake', 'give the value, or --data, or --data-file, and only one')
  }
  if (dataFile !== undefined) return readDataFile(context, dataFile)
  if (data !== undefined) return Object.fromEntries(data.map(parseField))
  if (type === 'secret') {
    if (value === undefined) return { secret: await readSecret(context, 'secret to watch for') }
    throw new CommandError('mistake', `${secretRemedy}, or leave the value out and type it`)
  }
  return value === undefined ? undefined : toAssetData(type, value)
}

const secretRemedy =
  'a secret does not belong on the command line, where others can read it; use --data-file'

async function readDataFile(context: Context, file: string): Promise<JsonObject> {
  const data = await readJsonObject(context, file)
  if (!holdsMask(data)) return data
  throw new CommandError('mistake', `${inputName(file)}: holds a masked secret; write it whole`)
}

/** Parses `first_name=Ada`. Fields named `is_…` take true or false. Throws CommandError. */
function parseField(text: string): [string, string | boolean] {
  const [, key, value] = /^([^=]+)=(.+)$/s.exec(text) ?? []
  if (key === undefined || value === undefined) {
    throw new CommandError('mistake', '--data: write key=value, such as first_name=Ada')
  }
  if (findTreatment(key) !== 'shown') throw new CommandError('mistake', secretRemedy)
  const isBoolean = key.startsWith('is_') && (value === 'true' || value === 'false')
  return [key, isBoolean ? value === 'true' : value]
}

/** Returns {} for an unknown type, so that the type alone is reported as the mistake. */
function toAssetData(type: string, value: string): JsonObject {
  const [, owner, repository] = /^([^/]+)\/([^/]+)$/.exec(value) ?? []
  if (type === 'github_repository' && owner !== undefined) {
    return { repo_owner: owner, repo_name: repository }
  }
  const field = fieldOfSingleFieldType[type]
  if (field !== undefined) return { [field]: value }
  if (!assetTypes.some((known) => known === type)) return {}
  throw new CommandError(
    'mistake',
    `--type ${type}: ${manyFieldsRemedies[type] ?? manyFieldsRemedy}`,
  )
}

const manyFieldsRemedy = 'one value does not tell its data; give each field with --data'
const manyFieldsRemedies: Readonly<Record<string, string>> = {
  github_repository: 'write the value as owner/name',
  name: 'give --data first_name=… --data last_name=…, and --name for what it is called',
  identity: 'give its attributes with --data-file',
}

/**
 * `assets replace`, `enable` and `disable`. The API replaces an asset whole; no command changes one
 * field.
 */

export interface AssetOptions extends ServiceOptions, RevealOption {}

export interface ReplaceOptions extends AssetOptions {
  file: string
}

export async function replaceAsset(
  context: Context,
  id: number,
  options: ReplaceOptions,
): Promise<void> {
  const written = await readJsonObject(context, options.file)
  refuseMismatch(id, written, inputName(options.file))
  const asset = checkRequest(assetReplacement, written)
  const replaced = await withClient(context, options, ({ client, callOptions }) =>
    nameFailure(`asset ${id}`, client.replaceAsset({ id, asset, ...callOptions() })),
  )
  const lost = Object.keys(asset).filter((field) => !(field in replaced))
  if (lost.length > 0) {
    context.terminal.printError(`the service has no place for: ${sanitize(lost.join(', '), 600)}`)
  }
  printOne(context, options, assetListing(options.reveal === true), replaced)
}

function refuseMismatch(id: number, written: JsonObject, place: string): void {
  const fileId = written['id']
  if (fileId !== undefined && fileId !== id) {
    throw new CommandError('mistake', `${place}: holds another asset than ${id}; see its "id"`)
  }
  if (holdsMask(written)) {
    const remedy = 'write the secret itself, as --reveal shows it'
    throw new CommandError('mistake', `${place}: holds a masked secret; ${remedy}`)
  }
}

export async function toggleAssets(
  context: Context,
  ids: readonly number[],
  options: AssetOptions & { isDisabled: boolean },
): Promise<void> {
  const { isDisabled } = options
  await withClient(context, options, ({ client, callOptions }) =>
    changeEach(context, options, ids, {
      listing: assetListing(options.reveal === true),
      done: isDisabled ? 'disabled' : 'enabled',
      change: (id) =>
        nameFailure(`asset ${id}`, client.toggleAsset({ id, isDisabled, ...callOptions() })),
    }),
  )
}

async function getAsset(context: Context, id: number, options: AssetOptions): Promise<void> {
  const asset = await withClient(context, options, (api) => readAsset(api, id))
  printOne(context, options, assetListing(options.reveal === true), asset)
}

function readAsset({ client, callOptions }: ApiContext, id: number): Promise<WireAsset> {
  const request = client.getAsset({ id, ...callOptions() })
  return nameFailureOrMissing(`asset ${id}`, request, noAssetRemedy)
}

const noAssetRemedy =
  'this server shows no single asset; "tocsin assets list" shows all, and the web application deletes them'

interface DeleteOptions extends ServiceOptions {
  yes?: true
}

/** Finds all assets before it deletes the first. */
async function deleteAssets(
  context: Context,
  ids: readonly number[],
  options: DeleteOptions,
): Promise<void> {
  await withClient(context, options, async (api) => {
    const found = new Map<number, WireAsset>()
    for (const id of new Set(ids)) found.set(id, await readAsset(api, id))
    if (!options.yes) await requireConfirmation(context, deletionQuestion([...found.values()]))
    await changeEach(context, options, ids, {
      listing: deletedListing,
      done: 'deleted',
      async change(id) {
        const { client, callOptions } = api
        await nameFailure(`asset ${id}`, client.deleteAsset({ id, ...callOptions() }))
        return { id, name: maskText(found.get(id)?.name ?? '') }
      },
    })
  })
}

function deletionQuestion(assets: readonly WireAsset[]): string[] {
  const names = assets.map(({ id, name }) => `${id} (${sanitize(maskText(name))})`)
  const count = pluralize(assets.length, 'asset')
  const risk = 'the service may delete what it found for them, too'
  return [`${count} will be deleted: ${names.join(', ')}; ${risk}.`]
}

interface DeletedAsset {
  id: number
  name: string
}

const deletedListing: Listing<DeletedAsset> = {
  columns: [
    { title: 'DELETED', width: 14, text: ({ id }) => String(id) },
    { title: 'NAME', width: 40, text: ({ name }) => name },
  ],
  json: ({ id, name }) => ({ id, name, deleted: true }),
  csv: ['id', 'name', 'deleted'],
}

/**
 * Every field as the API returns it; secrets in `data`, which may be what the asset watches for,
 * are masked unless `reveal`.
 */
export function assetListing(reveal: boolean): Listing<WireAsset> {
  const shownData = (asset: WireAsset): unknown => (reveal ? asset.data : maskSecrets(asset.data))
  return {
    columns: [
      { title: 'ID', width: 14, text: ({ id }) => String(id) },
      { title: 'TYPE', width: 17, text: ({ type }) => type },
      {
        title: 'STATE',
        width: 8,
        text: ({ is_disabled: isDisabled }) => (isDisabled === true ? 'disabled' : 'enabled'),
        style: ({ is_disabled: isDisabled }) => (isDisabled === true ? 'yellow' : 'green'),
      },
      { title: 'NAME', width: 40, text: ({ name }) => name },
    ],
    below: (asset) => [
      `data: ${reveal ? jsonText(asset.data ?? {}) : sanitize(jsonText(shownData(asset) ?? {}), 1_000)}`,
      `search types: ${sanitize(formatList(asset.search_types), 1_000)}`,
      ...(asset.experimental_search_types?.length
        ? [`experimental: ${sanitize(formatList(asset.experimental_search_types), 1_000)}`]
        : []),
      `risks: ${formatList(asset.risks)}`,
    ],
    json: (asset) => ({ ...asset, ...('data' in asset && { data: shownData(asset) }) }),
    csv: assetKeys,
  }
}

/** In the order of the API description. */
const assetKeys = [
  'id',
  'name',
  'type',
  'search_types',
  'data',
  'experimental_search_types',
  'risks',
  'tenant_id',
  'feed_id',
  'v3_refs',
  'fetching_progress',
  'count',
  'urn',
  'is_disabled',
  'source',
  'data_updated_at',
]

/** Whether a value holds a mask, which must never be written back in place of the secret. */
export function holdsMask(value: unknown): boolean {
  return JSON.stringify(value).includes(fullMask)
}
