/** The file of `monitoring`: its schema, its parser, and the desired state that it describes. */
import { basename } from 'node:path'
import { z } from 'zod'
import { ConfigError, type Environment, formatMistake, type Mistake } from '../../config/config.ts'
import { type ParsedFile, parseFile, toList, toSection } from '../../config/parse-file.ts'
import {
  type Finding,
  flag,
  isSection,
  list,
  name,
  namedEntries,
  refusal,
  type Rule,
  section,
  text,
  wholeNumber,
  word,
  wrongKind,
} from '../../lib/config/config-fields.ts'
import { suggestion } from '../../lib/errors.ts'
import type { AssetCreation } from '../../upstream/resources/assets.ts'
import { assetFields, assetTypes } from '../../upstream/resources/enumerations.ts'
import type { PolicyCreation } from '../../upstream/resources/policies.ts'
import { CommandError, pluralize } from '../terminal.ts'

/** Checks the fields that an asset of this type needs. */
const assetDataRule: Rule = ({ type, data }) => {
  const known = assetTypes.find((one) => one === type)
  if (known === undefined || !isSection(data)) return []
  return assetFields[known].flatMap((field) => {
    if (data[field] === undefined) {
      return [{ path: ['data'], ...refusal(`${field} is missing`, `write ${field} below data`) }]
    }
    const isEmpty = /^(null|\[\]|"\s*")$/.test(JSON.stringify(data[field]))
    return isEmpty
      ? [{ path: ['data', field], ...refusal('empty', 'write what it watches for') }]
      : []
  })
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
    rules: [oneKindRule],
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
      text('Search type.'),
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

/** `place` names the text in messages. Throws CommandError with every mistake. */
export function parseMonitoring(
  text: string,
  place: string,
  env: Environment,
): ParsedFile<MonitoringContent> {
  const source = { file: place, env, sections: 'assets, policies' }
  const references = (file: unknown): Finding[] => {
    return [...findUnknownPolicies(file), ...findTwins(file)]
  }
  try {
    return parseFile(text, source, { schema: monitoringFile, references })
  } catch (error) {
    throw error instanceof ConfigError ? mistakesError(place, error.mistakes) : error
  }
}

/** Reports mistakes as those of the monitoring file, not of the configuration. */
export function mistakesError(place: string, mistakes: readonly Mistake[]): CommandError {
  const lines = mistakes.map((mistake) => `  ${formatMistake(mistake)}`)
  const head = `${basename(place)} has ${pluralize(mistakes.length, 'mistake')}:`
  return new CommandError('mistake', [head, ...lines].join('\n'))
}

type Entry = [key: string, content: Readonly<Record<string, unknown>>]

function readEntries(file: unknown, sectionName: string): Entry[] {
  const entries = Object.entries(toSection(toSection(file)[sectionName]))
  return entries.map(([key, content]) => [key, toSection(content)])
}

function findUnknownPolicies(file: unknown): Finding[] {
  const known = readEntries(file, 'policies').map(([key]) => key)
  return readEntries(file, 'assets').flatMap(([key, { policies }]) =>
    toList(policies).flatMap((policyName, index) => {
      if (typeof policyName !== 'string' || policyName === '') return []
      if (known.includes(policyName)) return []
      const path = ['assets', key, 'policies', index]
      const remedy =
        known.length === 0 ? 'write it under policies' : suggestion(policyName, known, 'there are')
      return [{ path, problem: 'no such policy', remedy }]
    }),
  )
}

/** Finds entries that would be the same thing at the service. */
function findTwins(file: unknown): Finding[] {
  return ['assets', 'policies'].flatMap((sectionName) => {
    const first = new Map<string, string>()
    return readEntries(file, sectionName).flatMap(([key, content]) => {
      const kind = content['type'] ?? policyKinds.find((one) => one in content)
      const identity = JSON.stringify([kind, content['name'] ?? key])
      const twin = first.get(identity)
      if (twin === undefined) first.set(identity, key)
      const problem = `the same type and name as ${twin}`
      const remedy = 'write another name, or keep one of the two'
      return twin === undefined ? [] : [{ path: [sectionName, key], problem, remedy }]
    })
  })
}

/** The JSON Schema of the file, for editors. */
export function monitoringSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(monitoringFile, { io: 'input', target: 'draft-07' })
  return { title: 'monitoring.yaml', ...schema }
}

/** What the monitoring file asks for, in the API's terms. */
export interface DesiredState {
  assets: readonly DesiredAsset[]
  policies: readonly DesiredPolicy[]
  cleanPastEvents: boolean
}

export interface DesiredAsset {
  /** Key in the file. */
  key: string
  body: AssetCreation
  /** undefined: the file does not say. */
  enabled: boolean | undefined
  /** Keys of policies. */
  policies: readonly string[]
}

export interface DesiredPolicy {
  key: string
  body: PolicyCreation
}

export function toDesiredState(content: MonitoringContent): DesiredState {
  return {
    assets: Object.entries(content.assets ?? {}).map(
      ([key, { name: given = key, enabled, policies, group, ...same }]) => ({
        key,
        // Omits what the file leaves out, so that the API chooses its default.
        body: { name: given, ...same, ...(group !== undefined && { assets_group_id: group }) },
        enabled,
        policies,
      }),
    ),
    policies: Object.entries(content.policies ?? {}).map(([key, written]) => ({
      key,
      body: toPolicyBody(written.name ?? key, written),
    })),
    cleanPastEvents: content.clean_past_events,
  }
}

function toPolicyBody(name: string, written: z.output<typeof policy>): PolicyCreation {
  const { included_keywords: included, excluded_keywords: excluded, query, cookies } = written
  if (included) return { name, type: 'INCLUDED_KEYWORDS', value: { keywords: included } }
  if (excluded) return { name, type: 'EXCLUDED_KEYWORDS', value: { keywords: excluded } }
  if (query !== undefined) return { name, type: 'LUCENE_QUERY', value: { query } }
  const { match_subdomains } = written
  const value = {
    cookie_names: cookies ?? [],
    ...(match_subdomains !== undefined && { match_subdomains }),
  }
  return { name, type: 'ASTP_COOKIES', value }
}
