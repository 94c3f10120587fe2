import { Command } from 'commander'
import { fullMask } from '../../masking/mask-secret.ts'
import { maskSecrets } from '../../masking/masking.ts'
import { treatmentOf } from '../../masking/secret-names.ts'
import { assetCreation, assetReplacement, type WireAsset } from '../../upstream/resources/assets.ts'
import { assetTypes, createSearchTypes } from '../../upstream/resources/enumerations.ts'
import { checkRequest } from '../../upstream/resources/operation.ts'
import type { Context } from '../context.ts'
import { assetsApplyCommand } from '../monitoring/apply.ts'
import { listValue } from '../options.ts'
import { CommandError, harmless, jsonText } from '../terminal.ts'
import {
  addServiceOptions,
  anotherId,
  idList,
  type JsonObject,
  nameFailure,
  placeOf,
  readJsonObject,
  readSecret,
  type ServiceOptions,
  wholeId,
  withClient,
} from './api-command.ts'
import { addRevealOption, changeEach, type Listing, type RevealOption } from './listing.ts'
import { printOne } from './pages.ts'

export function assetsCommand(context: Context): Command {
  return new Command('assets')
    .addCommand(createCommand(context))
    .addCommand(replaceCommand(context))
    .addCommand(toggleCommand(context, 'enable'))
    .addCommand(toggleCommand(context, 'disable'))
    .addCommand(assetsApplyCommand(context))
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
    .requiredOption('--type <type>', 'domain, keyword, email, ip and so on')
    .requiredOption(
      '--search-types <types>',
      'where to look, such as leak,paste; or all',
      listValue,
    )
    .option('--name <text>', 'what it is called (default: the value)')
    .option('--data <key=value>', 'one field of its data; once for each', another)
    .option('--data-file <file>', 'its data as a JSON object; - for standard input')
    .option('--risks <numbers>', 'only these severities, 1 (info) to 5 (critical)', idList)
    .option('--experimental-search-types <types>', 'further places to look', listValue)
    .option('--group <id>', 'the assets group that it shall be in', wholeId)
    .action((value: string | undefined, options: CreateAssetOptions) =>
      createAsset(context, value, options),
    )
}

function replaceCommand(context: Context): Command {
  return addAssetOptions(new Command('replace'))
    .description('put a whole asset in the place of another; what the file leaves out is gone')
    .argument('<id>', 'id of the asset', wholeId)
    .requiredOption(
      '--file <file>',
      'the asset in JSON, name, type, search_types and data at least; - for standard input',
    )
    .action((id: number, options: ReplaceOptions) => replaceAsset(context, id, options))
}

function toggleCommand(context: Context, verb: 'enable' | 'disable'): Command {
  return addAssetOptions(new Command(verb))
    .description(verb === 'enable' ? 'watch assets again' : 'watch assets no longer')
    .argument('<ids...>', 'ids of assets', anotherId)
    .action((ids: number[], options: ReplaceOptions) =>
      toggleAssets(context, ids, { ...options, isDisabled: verb === 'disable' }),
    )
}

function addAssetOptions(command: Command): Command {
  return addServiceOptions(addRevealOption(command, 'show secrets as they are'))
}

function another(text: string, before: readonly string[] = []): string[] {
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

/** Prints the asset as the service made it. */
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
    data: withStrictness(type, await dataOf(context, value, options)),
    ...(experimentalSearchTypes && { experimental_search_types: experimentalSearchTypes }),
    ...(risks && { risks }),
    ...(group !== undefined && { assets_group_id: group }),
  })
  const created = await withClient(context, options, ({ client, asked }) =>
    nameFailure(thingOf(asset.name, group), client.createAsset({ asset, ...asked() })),
  )
  printOne(context, options, assetListing(options.reveal === true), created)
}

function thingOf(name: string, group: number | undefined): string {
  return group === undefined ? `asset "${name}"` : `asset "${name}" of assets group ${group}`
}

/** The field of `data`, for the types that have only one (docs/api-notes.md, Assets). */
const onlyField: Readonly<Record<string, string>> = {
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

/** Adds `is_strict` to a name: the v4 documents require it (docs/api-notes.md, Assets). */
function withStrictness(type: string, data: JsonObject | undefined): JsonObject | undefined {
  return type === 'name' && data ? { is_strict: false, ...data } : data
}

async function dataOf(
  context: Context,
  value: string | undefined,
  { type, data, dataFile }: CreateAssetOptions,
): Promise<JsonObject | undefined> {
  if ([value, data, dataFile].filter((given) => given !== undefined).length > 1) {
    throw new CommandError('mistake', 'give the value, or --data, or --data-file, and only one')
  }
  if (dataFile !== undefined) return dataInFile(context, dataFile)
  if (data !== undefined) return Object.fromEntries(data.map(fieldOf))
  if (type === 'secret') {
    if (value === undefined) return { secret: await readSecret(context, 'secret to watch for') }
    throw new CommandError('mistake', `${secretsElsewhere}, or leave the value out and type it`)
  }
  return value === undefined ? undefined : dataOfValue(type, value)
}

const secretsElsewhere =
  'a secret does not belong on the command line, where others can read it; use --data-file'

async function dataInFile(context: Context, file: string): Promise<JsonObject> {
  const data = await readJsonObject(context, file)
  if (!holdsMask(data)) return data
  throw new CommandError('mistake', `${placeOf(file)}: holds a masked secret; write it whole`)
}

/** `first_name=Ada`. The fields that take true or false are called `is_…`. */
function fieldOf(text: string): [string, string | boolean] {
  const [, key, value] = /^([^=]+)=(.+)$/s.exec(text) ?? []
  if (key === undefined || value === undefined) {
    throw new CommandError('mistake', '--data: write key=value, such as first_name=Ada')
  }
  if (treatmentOf(key) !== 'shown') throw new CommandError('mistake', secretsElsewhere)
  const isBoolean = key.startsWith('is_') && (value === 'true' || value === 'false')
  return [key, isBoolean ? value === 'true' : value]
}

/** Of a type that nobody knows nothing, so that the type alone is told as the mistake. */
function dataOfValue(type: string, value: string): JsonObject {
  const [, owner, repository] = /^([^/]+)\/([^/]+)$/.exec(value) ?? []
  if (type === 'github_repository' && owner !== undefined) {
    return { repo_owner: owner, repo_name: repository }
  }
  const field = onlyField[type]
  if (field !== undefined) return { [field]: value }
  if (!assetTypes.some((known) => known === type)) return {}
  throw new CommandError('mistake', `--type ${type}: ${severalFields[type] ?? unknownFields}`)
}

const unknownFields = 'one value does not tell its data; give each field with --data'
const severalFields: Readonly<Record<string, string>> = {
  github_repository: 'write the value as owner/name',
  name: 'give --data first_name=… --data last_name=…, and --name for what it is called',
  identity: 'give its attributes with --data-file',
}

/** `assets replace`, `enable` and `disable`. The service replaces an asset whole: no change of one field is guessed. */

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
  refuseAnother(id, written, placeOf(options.file))
  const asset = checkRequest(assetReplacement, written)
  const replaced = await withClient(context, options, ({ client, asked }) =>
    nameFailure(`asset ${id}`, client.replaceAsset({ id, asset, ...asked() })),
  )
  printOne(context, options, assetListing(options.reveal === true), replaced)
}

function refuseAnother(id: number, written: JsonObject, place: string): void {
  const own = written['id']
  if (own !== undefined && own !== id) {
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
  await withClient(context, options, ({ client, asked }) =>
    changeEach(context, options, ids, {
      listing: assetListing(options.reveal === true),
      done: isDisabled ? 'disabled' : 'enabled',
      change: (id) =>
        nameFailure(`asset ${id}`, client.toggleAsset({ id, isDisabled, ...asked() })),
    }),
  )
}

/** An asset as the commands show it; what it watches for may be a secret. */

/** Every field as the service gives it; secrets in `data` masked unless `reveal`. */
export function assetListing(reveal: boolean): Listing<WireAsset> {
  const dataOf = (asset: WireAsset): unknown => (reveal ? asset.data : maskSecrets(asset.data))
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
      `data: ${reveal ? jsonText(asset.data ?? {}) : harmless(jsonText(dataOf(asset) ?? {}), 1_000)}`,
      `search types: ${harmless(listInWords(asset.search_types), 1_000)}`,
      ...(asset.experimental_search_types?.length
        ? [`experimental: ${harmless(listInWords(asset.experimental_search_types), 1_000)}`]
        : []),
      `risks: ${listInWords(asset.risks)}`,
    ],
    json: (asset) => ({ ...asset, ...('data' in asset && { data: dataOf(asset) }) }),
    csv: assetKeys,
  }
}

/** As the description lists them. */
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

/** An empty list as such: what the service makes of it is not published. */
export function listInWords(list: readonly (string | number)[] | null | undefined): string {
  return list === undefined || list === null || list.length === 0 ? 'none given' : list.join(', ')
}

/** Whether an asset was printed with a mask, which must never be written back as if it were the secret. */
export function holdsMask(value: unknown): boolean {
  return JSON.stringify(value).includes(fullMask)
}
