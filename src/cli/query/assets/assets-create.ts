import { treatmentOf } from '../../../feeds/secret-names.ts'
import { checkRequest } from '../../../service/operations/check-request.ts'
import { assetCreation } from '../../../service/wire/assets.ts'
import { assetTypes, createSearchTypes } from '../../../service/wire/enumerations.ts'
import { CommandError } from '../../command-error.ts'
import type { Context } from '../../context.ts'
import { assetListing, holdsMask } from './asset-listing.ts'
import type { AssetOptions } from './assets-change.ts'
import { placeOf, readJsonObject, type JsonObject } from '../json-input.ts'
import { nameFailure } from '../name-failure.ts'
import { printOne } from '../print-one.ts'
import { readSecret } from '../secret-input.ts'
import { withClient } from '../service-command.ts'

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

/** The field of `data` in the types that have but one (facts.md 5). */
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

/** The service of today requires it of a person's name (OpenAPI v4, NameData). */
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
