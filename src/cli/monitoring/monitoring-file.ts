/** The file of `assets apply`: which assets and policies there shall be; or every mistake in it at once. */
import { basename } from 'node:path'
import { z } from 'zod'
import { ConfigError, formatMistake, type Mistake } from '../../config/config-error.ts'
import type { Environment } from '../../config/environment.ts'
import { listOf, sectionOf } from '../../config/file-parts.ts'
import { parseFile, readFileText, type ParsedFile } from '../../config/parse-file.ts'
import {
  flag,
  list,
  name,
  text,
  wholeNumber,
  word,
  wrongKind,
} from '../../runtime/config-fields.ts'
import { named, section, type Finding, type Rule } from '../../runtime/config-section.ts'
import { suggestion } from '../../runtime/nearest.ts'
import { assetTypes, createSearchTypes } from '../../service/wire/enumerations.ts'
import { CommandError } from '../command-error.ts'
import { counted } from '../words.ts'
import { assetDataRule } from './asset-data.ts'

const keywords = 'write words, such as [leak, dump]'

const kinds = ['included_keywords', 'excluded_keywords', 'query', 'cookies'] as const

const oneKind: Rule = (policy) => {
  const [first, second] = kinds.filter((kind) => policy[kind] !== undefined)
  if (first === undefined) {
    const remedy = `write ${kinds.join(' or ')}`
    return [{ path: [], problem: 'does not say what it lets through', remedy }]
  }
  if (second === undefined) return []
  return [{ path: [second], problem: `given beside ${first}`, remedy: 'keep one of the two' }]
}

const onlyOfCookies: Rule = ({ match_subdomains: given, cookies }) =>
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
    included_keywords: list(text('Word.'), 'One of these must occur.', keywords).optional(),
    excluded_keywords: list(text('Word.'), 'None of these may occur.', keywords).optional(),
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
    rules: [oneKind, onlyOfCookies],
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
    assets: named(asset, { describe: 'Monitored assets, by name.', thing: 'asset' }).optional(),
    policies: named(policy, { describe: 'Policies, by name.', thing: 'policy' }).optional(),
    clean_past_events: flag(
      'A policy that is assigned also takes away what matched before and it does not let through.',
    ).prefault(false),
  },
  { describe: 'What is monitored: assets, their policies, and which has which.' },
)

export type MonitoringContent = z.output<typeof monitoringFile>
export type WrittenPolicy = z.output<typeof policy>

/** Throws CommandError. */
export function loadMonitoringFile(path: string, env: Environment): ParsedFile<MonitoringContent> {
  const text = naming(path, () => readFileText(path, 'name the monitoring file with --file'))
  return parseMonitoring(text, path, env)
}

/** `place` names the text in messages. Throws CommandError. */
export function parseMonitoring(
  text: string,
  place: string,
  env: Environment,
): ParsedFile<MonitoringContent> {
  const source = { file: place, env, sections: 'assets, policies' }
  const shape = { schema: monitoringFile, references: policyReferences }
  return naming(place, () => parseFile(text, source, shape))
}

/** The same mistakes as of another file than the configuration. */
function naming<Result>(place: string, read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    throw error instanceof ConfigError ? mistakesIn(place, error.mistakes) : error
  }
}

export function mistakesIn(place: string, mistakes: readonly Mistake[]): CommandError {
  const [only] = mistakes
  const isOfFile = mistakes.length === 1 && only !== undefined && only.line === 0
  if (isOfFile) return new CommandError('mistake', formatMistake(only))
  const lines = mistakes.map((mistake) => `  ${formatMistake(mistake)}`)
  const head = `${basename(place)} has ${counted(mistakes.length, 'mistake')}:`
  return new CommandError('mistake', [head, ...lines].join('\n'))
}

function policyReferences(file: unknown): Finding[] {
  const sections = sectionOf(file)
  const known = Object.keys(sectionOf(sections['policies']))
  return Object.entries(sectionOf(sections['assets'])).flatMap(([key, content]) =>
    listOf(sectionOf(content)['policies']).flatMap((policyName, index) => {
      if (typeof policyName !== 'string' || policyName === '') return []
      if (known.includes(policyName)) return []
      const path = ['assets', key, 'policies', index]
      const remedy =
        known.length === 0 ? 'write it under policies' : suggestion(policyName, known, 'there are')
      return [{ path, problem: 'no such policy', remedy }]
    }),
  )
}

/** The JSON Schema of the file as it is written, for editors. */
export function monitoringSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(monitoringFile, { io: 'input', target: 'draft-07' })
  return { title: 'monitoring.yaml', ...schema }
}
