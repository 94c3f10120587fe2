/** The file of `assets apply`: its schema, its parser, and the desired state that it describes. */

import { basename } from 'node:path'
import { z } from 'zod'
import { ConfigError, type Environment, formatMistake, type Mistake } from '../../config/config.ts'
import {
  toList,
  type ParsedFile,
  parseFile,
  readFileText,
  toSection,
} from '../../config/parse-file.ts'
import { canonicalJson } from '../../feed-types/field-reader.ts'
import {
  type Finding,
  flag,
  isSection,
  list,
  name,
  namedEntries,
  type Rule,
  section,
  text,
  wholeNumber,
  word,
  wrongKind,
} from '../../lib/config-fields.ts'
import { findNearest, suggestion } from '../../lib/errors.ts'
import { maskSecrets } from '../../masking/masking.ts'
import type { AssetCreation } from '../../upstream/resources/assets.ts'
import {
  type AssetType,
  assetTypes,
  createSearchTypes,
} from '../../upstream/resources/enumerations.ts'
import type { PolicyCreation } from '../../upstream/resources/policies.ts'
import { CommandError, pluralize } from '../terminal.ts'

/**
 * Fields that the data of an asset must hold, by type (docs/api-notes.md, Assets); it may hold
 * more.
 */
const fieldsByType: Record<AssetType, readonly string[]> = {
  domain: ['fqdn'],
  name: ['first_name', 'last_name'],
  keyword: ['keyword'],
  github_repository: ['repo_owner', 'repo_name'],
  username: ['username'],
  email: ['email'],
  search_query: ['search_query'],
  bin: ['bin'],
  ip: ['ip'],
  secret: ['secret'],
  azure_tenant: ['tenant_id'],
  identity: ['attributes'],
  ransomleak: ['source', 'id'],
  external_id: ['source', 'id'],
  address_data: ['street', 'city', 'country', 'state'],
  birth_year: ['year'],
  role: ['role'],
  phone_number: ['phone_number'],
}

/**
 * Checks that the fields required by the asset's type are texts; `attributes` of an identity is a
 * list.
 */
const assetDataRule: Rule = ({ type, data }) => {
  const known = assetTypes.find((word) => word === type)
  if (known === undefined || !isSection(data)) return []
  const fields = fieldsByType[known]
  return fields.flatMap((field) =>
    field === 'attributes' ? checkAttributes(data) : checkTextField(field, data, fields),
  )
}

type Data = Readonly<Record<string, unknown>>

function checkTextField(field: string, data: Data, fields: readonly string[]): Finding[] {
  const value = data[field]
  if (typeof value === 'string' && value.trim() !== '') return []
  if (field === 'year' && Number.isInteger(value)) return []
  if (value !== undefined) {
    const problem = value === null || value === '' ? 'has no value' : 'not a text'
    return [{ path: ['data', field], problem, remedy: 'write a text, in quotes' }]
  }
  const others = Object.keys(data).filter((key) => !fields.includes(key))
  const meant = findNearest(field, others)
  const at = meant === undefined ? ['data'] : ['data', meant]
  const remedy = meant === undefined ? `write ${field} into it` : `did you mean "${field}"?`
  return [{ path: at, problem: `${field} is missing`, remedy }]
}

function checkAttributes({ attributes }: Data): Finding[] {
  if (Array.isArray(attributes) && attributes.length > 0) return []
  const remedy = 'write a list of what identifies it, such as [{type: email, email: a@example.com}]'
  const problem = attributes === undefined ? 'attributes is missing' : 'not a list of attributes'
  return [{ path: attributes === undefined ? ['data'] : ['data', 'attributes'], problem, remedy }]
}

const keywordsRemedy = 'write words, such as [leak, dump]'

const policyKinds = ['included_keywords', 'excluded_keywords', 'query', 'cookies'] as const

const oneKindRule: Rule = (policy) => {
  const [first, second] = policyKinds.filter((kind) => policy[kind] !== undefined)
  if (first === undefined) {
    const remedy = `write ${policyKinds.join(' or ')}`
    return [{ path: [], problem: 'does not say what it lets through', remedy }]
  }
  if (second === undefined) return []
  return [{ path: [second], problem: `given beside ${first}`, remedy: 'keep one of the two' }]
}

const matchSubdomainsRule: Rule = ({ match_subdomains: given, cookies }) =>
  given === undefined || cookies !== undefined
    ? []
    : [
        {
          path: ['match_subdomains'],
          problem: 'means nothing without cookies',
          remedy: 'remove the line',
        },
      ]

const policy = section(
  {
    name: text('Its name at the service. Default: the name it stands under.').optional(),
    included_keywords: list(text('Word.'), 'One of these must occur.', keywordsRemedy).optional(),
    excluded_keywords: list(text('Word.'), 'None of these may occur.', keywordsRemedy).optional(),
    query: text('A Lucene query that must match.').optional(),
    cookies: list(
      text('Name of a cookie.'),
      'Cookies that must have leaked.',
      'write names of cookies, such as [session]',
    ).optional(),
    match_subdomains: flag('Of cookies: those of subdomains count as well.').optional(),
  },
  {
    describe: 'A matching policy: which events match the assets that have it.',
    rules: [oneKindRule, matchSubdomainsRule],
  },
)

const asset = section(
  {
    name: text('Its name at the service. Default: the name it stands under.').optional(),
    type: word(assetTypes, 'What it is.'),
    data: z
      .record(
        z.string(),
        z.unknown(),
        wrongKind('a section', 'write what it watches for, such as {fqdn: example.com}'),
      )
      .meta({ description: 'What it watches for; its keys depend on the type.' }),
    search_types: list(
      word(createSearchTypes, 'Search type.'),
      'Where it is looked for.',
      'write search types, such as [illicit_networks, leaks]',
    ),
    risks: z
      .array(
        wholeNumber({ describe: 'From 1, info, to 5, critical.', min: 1, max: 5 }),
        wrongKind('a list', 'write severities from 1 to 5, such as [3, 4, 5]'),
      )
      .meta({ description: 'Severities that count. Left out: as the service has it.' })
      .optional(),
    experimental_search_types: z
      .array(text('Search type.'), wrongKind('a list', 'write search types'))
      .meta({ description: 'Further search types. Left out: as the service has it.' })
      .optional(),
    group: wholeNumber({
      describe: 'Id of the assets group in which it is created; it cannot be moved later.',
      min: 1,
    }).optional(),
    enabled: flag(
      'Whether it is watched for. Left out: enabled at its creation, and not touched after that.',
    ).optional(),
    policies: z
      .array(text('Name of a policy.'), wrongKind('a list', 'write names of policies'))
      .meta({ description: 'Policies of this file that it has.' })
      .prefault([]),
  },
  { describe: 'A monitored asset (identifier).', rules: [assetDataRule] },
)

export const monitoringFile = section(
  {
    account: name('Account of the configuration whose key is used.').optional(),
    assets: namedEntries(asset, {
      describe: 'Monitored assets, by name.',
      thing: 'asset',
    }).optional(),
    policies: namedEntries(policy, { describe: 'Policies, by name.', thing: 'policy' }).optional(),
    clean_past_events: flag(
      'A policy that is assigned also takes away what matched before and it does not let through.',
    ).prefault(false),
  },
  { describe: 'What is monitored: assets, their policies, and which has which.' },
)

export type MonitoringContent = z.output<typeof monitoringFile>
type WrittenPolicy = z.output<typeof policy>

/** Throws CommandError with every mistake in the file. */
export function loadMonitoringFile(path: string, env: Environment): ParsedFile<MonitoringContent> {
  const text = rethrowMistakes(path, () =>
    readFileText(path, 'name the monitoring file with --file'),
  )
  return parseMonitoring(text, path, env)
}

/** `place` names the text in messages. Throws CommandError with every mistake. */
export function parseMonitoring(
  text: string,
  place: string,
  env: Environment,
): ParsedFile<MonitoringContent> {
  const source = { file: place, env, sections: 'assets, policies' }
  const shape = { schema: monitoringFile, references: checkPolicyReferences }
  return rethrowMistakes(place, () => parseFile(text, source, shape))
}

/** Reports mistakes as those of the monitoring file, not of the configuration. */
function rethrowMistakes<Result>(place: string, read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    throw error instanceof ConfigError ? mistakesError(place, error.mistakes) : error
  }
}

export function mistakesError(place: string, mistakes: readonly Mistake[]): CommandError {
  const [only] = mistakes
  const isAboutFile = mistakes.length === 1 && only !== undefined && only.line === 0
  if (isAboutFile) return new CommandError('mistake', formatMistake(only))
  const lines = mistakes.map((mistake) => `  ${formatMistake(mistake)}`)
  const head = `${basename(place)} has ${pluralize(mistakes.length, 'mistake')}:`
  return new CommandError('mistake', [head, ...lines].join('\n'))
}

function checkPolicyReferences(file: unknown): Finding[] {
  const sections = toSection(file)
  const known = Object.keys(toSection(sections['policies']))
  return Object.entries(toSection(sections['assets'])).flatMap(([key, content]) =>
    toList(toSection(content)['policies']).flatMap((policyName, index) => {
      if (typeof policyName !== 'string' || policyName === '') return []
      if (known.includes(policyName)) return []
      const path = ['assets', key, 'policies', index]
      const remedy =
        known.length === 0 ? 'write it under policies' : suggestion(policyName, known, 'there are')
      return [{ path, problem: 'no such policy', remedy }]
    }),
  )
}

/** The JSON Schema of the file, for editors. */
export function monitoringSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(monitoringFile, { io: 'input', target: 'draft-07' })
  return { title: 'monitoring.yaml', ...schema }
}

/** What the monitoring file asks for, in the API's terms. */

export interface DesiredState {
  assets: DesiredAsset[]
  policies: DesiredPolicy[]
  cleanPastEvents: boolean
}

export interface DesiredAsset {
  /** Key in the file. */
  key: string
  body: AssetCreation
  /** `body` as the state remembers it: lists sorted, a secret in `data` as its digest. */
  written: Record<string, unknown>
  /** undefined: the file does not say. */
  enabled: boolean | undefined
  /** Keys of policies. */
  policies: string[]
}

export interface DesiredPolicy {
  key: string
  body: PolicyCreation
}

/** `digest` replaces a secret by a keyed digest; without the key nobody can test a guess. */
export function toDesiredState(
  content: MonitoringContent,
  digest: (parts: readonly string[]) => string,
): DesiredState {
  return {
    assets: Object.entries(content.assets ?? {}).map(([key, asset]) => {
      const body = toAssetBody(key, asset)
      const { enabled, policies } = asset
      const written = { ...body, search_types: body.search_types.toSorted() }
      const data = holdsSecret(body.data) ? digest([canonicalJson(body.data)]) : body.data
      return { key, body, written: { ...written, data }, enabled, policies: [...new Set(policies)] }
    }),
    policies: Object.entries(content.policies ?? {}).map(([key, policy]) => ({
      key,
      body: toPolicyBody(policy.name ?? key, policy),
    })),
    cleanPastEvents: content.clean_past_events,
  }
}

type WrittenAsset = NonNullable<MonitoringContent['assets']>[string]

/** Omits what the file leaves out, so that the API chooses its default. */
function toAssetBody(key: string, asset: WrittenAsset): AssetCreation {
  const { type, data, search_types, risks, experimental_search_types, group } = asset
  return {
    name: asset.name ?? key,
    type,
    data,
    search_types,
    ...(risks === undefined ? {} : { risks }),
    ...(experimental_search_types === undefined ? {} : { experimental_search_types }),
    ...(group === undefined ? {} : { assets_group_id: group }),
  }
}

function holdsSecret(data: Record<string, unknown>): boolean {
  return canonicalJson(maskSecrets(data)) !== canonicalJson(data)
}

function toPolicyBody(name: string, policy: WrittenPolicy): PolicyCreation {
  const { included_keywords: included, excluded_keywords: excluded, query, cookies } = policy
  if (included) return { name, type: 'INCLUDED_KEYWORDS', value: { keywords: included } }
  if (excluded) return { name, type: 'EXCLUDED_KEYWORDS', value: { keywords: excluded } }
  if (query !== undefined) return { name, type: 'LUCENE_QUERY', value: { query } }
  const value = { cookie_names: cookies ?? [], match_subdomains: policy.match_subdomains ?? false }
  return { name, type: 'ASTP_COOKIES', value }
}
