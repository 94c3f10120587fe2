/** The schema of the configuration file, as zod and as JSON Schema. */
import { z } from 'zod'
import { feedConfig } from '../feeds/types/config.ts'
import { messagesConfig } from '../messages/config.ts'
import { httpConfig } from '../page/http/config.ts'
import { ledgerSections } from '../store/account-ledger.ts'
import { canaryConfig, selfAlertsConfig } from '../operator/alerts/config.ts'
import { redisConfig } from '../redis/config.ts'
import { routeConfig } from '../routing/config.ts'
import { inhibitRulesConfig } from '../routing/inhibition.ts'
import { silencesConfig } from '../routing/silences.ts'
import { timeIntervalsConfig } from '../routing/time-intervals.ts'
import { isSection, namedEntries, section } from '../lib/config/config-fields.ts'
import { accountConfig } from '../upstream/config.ts'
import { sinkConfig } from '../sinks/sink-types.ts'

/** The whole file, each section by its own part. */
export const configFile = section(
  {
    redis: redisConfig.prefault({}),
    http: httpConfig.prefault({}),
    accounts: namedEntries(accountConfig, { describe: 'API keys, by name.', thing: 'account' }),
    feeds: namedEntries(feedConfig, { describe: 'What is polled, by name.', thing: 'feed' }),
    sinks: namedEntries(sinkConfig, { describe: 'Where messages go, by name.', thing: 'sink' }),
    route: routeConfig,
    ...ledgerSections,
    time_intervals: timeIntervalsConfig.optional(),
    inhibit_rules: inhibitRulesConfig.prefault([]),
    silences: silencesConfig.prefault([]),
    self_alerts: selfAlertsConfig.optional(),
    canary: canaryConfig.optional(),
    messages: messagesConfig.prefault({}),
  },
  { describe: 'Configuration of Tocsin.' },
)

type JsonSchema = Record<string, unknown>

/** The JSON Schema of the file as written, for editors. */
export function configSchema(): JsonSchema {
  const schema = z.toJSONSchema(configFile, { io: 'input', target: 'draft-07' })
  return { title: 'tocsin.yaml', ...(schema as JsonSchema) }
}

/** Every key of the file, e.g. `feeds.<name>.filters.severity`, `route.routes[].sinks`; sorted. */
export function configKeys(): string[] {
  const schema = configSchema()
  const keys = new Set<string>()
  collectKeys({ schema, definitions: schema['definitions'], seen: [] }, '', keys)
  return [...keys].toSorted()
}

interface SchemaNode {
  schema: unknown
  definitions: unknown
  /** References followed on the way here: a recursive section is entered once. */
  seen: string[]
}

function collectKeys(node: SchemaNode, path: string, keys: Set<string>): void {
  const { schema, definitions, seen } = node
  if (!isSection(schema)) return
  const enter = (inner: unknown, place: string): void =>
    collectKeys({ ...node, schema: inner }, place, keys)
  for (const [key, value] of Object.entries(asSection(schema['properties']))) {
    const place = path === '' ? key : `${path}.${key}`
    keys.add(place)
    enter(value, place)
  }
  enter(schema['additionalProperties'], `${path}.<name>`)
  enter(schema['items'], `${path}[]`)
  for (const part of ['anyOf', 'oneOf', 'allOf'].flatMap((word) => asList(schema[word]))) {
    enter(part, path)
  }
  const reference = schema['$ref']
  if (typeof reference !== 'string' || seen.includes(reference)) return
  const target = asSection(definitions)[reference.split('/').at(-1) ?? '']
  collectKeys({ schema: target, definitions, seen: [...seen, reference] }, path, keys)
}

function asSection(value: unknown): Readonly<Record<string, unknown>> {
  return isSection(value) ? value : {}
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
