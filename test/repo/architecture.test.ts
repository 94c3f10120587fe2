import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

const source = join(import.meta.dirname, '../../src')

/** Who may import whom: the folders of `src/` a folder's files may name. Itself always; `*`: all. */
const mayImport: Record<string, string[]> = {
  runtime: [],
  events: [],
  redis: ['runtime'],
  'redis/embedded': ['redis', 'runtime'],
  service: ['service/*', 'runtime', 'redis'],
  'service/wire': [],
  'service/operations': [
    'service',
    'service/wire',
    'service/transport',
    'service/pacing',
    'redis',
    'runtime',
  ],
  'service/transport': ['service', 'runtime'],
  'service/pacing': ['service', 'runtime', 'redis'],
  'service/tokens': ['service', 'service/transport', 'runtime', 'redis'],
  messages: ['events', 'runtime/time-zone.ts'],
  routing: ['events', 'runtime'],
  store: ['redis', 'runtime'],
  ledger: ['store', 'events', 'redis', 'runtime'],
  proof: ['store', 'ledger', 'digest/seal.ts', 'redis', 'runtime'],
  notices: ['ledger', 'intake', 'events', 'redis', 'runtime'],
  digest: ['ledger', 'messages', 'events', 'redis', 'runtime'],
  intake: ['ledger', 'events', 'redis', 'runtime'],
  audit: ['feeds', 'intake', 'ledger', 'service', 'service/pacing', 'redis', 'runtime'],
  feeds: [
    'service',
    'service/wire',
    'service/operations',
    'service/pacing',
    'intake',
    'ledger',
    'events',
    'redis',
    'runtime',
  ],
  'sinks/slack': ['sinks', 'messages', 'events', 'runtime'],
  'sinks/email': ['sinks', 'messages', 'events', 'runtime'],
  'sinks/webhook': ['sinks', 'messages', 'events', 'runtime'],
  sinks: ['events', 'messages', 'runtime'],
  delivery: [
    'delivery/relief',
    'sinks',
    'digest',
    'messages',
    'ledger',
    'store/first-look.ts',
    'events',
    'redis',
    'runtime',
  ],
  'delivery/relief': ['delivery', 'digest', 'store', 'ledger', 'events', 'runtime'],
  http: ['runtime'],
  ops: ['ledger', 'runtime'],
  sandbox: ['sandbox/*', 'runtime'],
  'sandbox/api': [
    'sandbox',
    'sandbox/history',
    'sandbox/credentials',
    'sandbox/monitoring',
    'sandbox/reports',
    'sandbox/search',
    'sandbox/state',
    'sandbox/tenants',
    'service/wire',
    'runtime',
  ],
  'sandbox/reports': ['sandbox', 'sandbox/api', 'sandbox/history', 'sandbox/state', 'service/wire'],
  'sandbox/tenants': ['sandbox', 'sandbox/api', 'sandbox/state', 'service/wire'],
  'sandbox/state': ['sandbox/history', 'sandbox/credentials', 'runtime'],
  'sandbox/credentials': [
    'sandbox',
    'sandbox/api',
    'sandbox/history',
    'sandbox/state/keepable.ts',
    'service/wire',
    'runtime',
  ],
  'sandbox/history': ['sandbox', 'runtime'],
  'sandbox/catchers': ['sandbox', 'runtime'],
  'sandbox/matching': ['sandbox/monitoring', 'sandbox/api', 'sandbox/search', 'sandbox/history'],
  'sandbox/search': [
    'sandbox',
    'sandbox/api',
    'sandbox/history',
    'sandbox/legacy',
    'sandbox/matching',
    'service/wire',
  ],
  'sandbox/legacy': [
    'sandbox',
    'sandbox/api',
    'sandbox/history',
    'sandbox/matching',
    'sandbox/search',
    'service/wire',
    'runtime',
  ],
  'sandbox/monitoring': [
    'sandbox',
    'sandbox/api',
    'sandbox/history',
    'sandbox/matching',
    'sandbox/search',
    'service/wire',
  ],
  config: [
    'events',
    'runtime',
    '*/config.ts',
    'feeds/feed-config-parts.ts',
    'feeds/next-feed.ts',
    'feeds/rescan-plan.ts',
    'service/pacing/organizations.ts',
    'routing/matcher.ts',
    'routing/silences.ts',
    'routing/inhibition.ts',
    'routing/time-intervals.ts',
    'service/service-links.ts',
    'messages/families.ts',
    'sinks/*/config.ts',
    'sinks/relief-config.ts',
  ],
  cli: ['*'],
  'cli/query': ['*'],
  'cli/query/assets': ['*'],
  'cli/query/credentials': ['*'],
  'cli/query/events': ['*'],
  'cli/query/policies': ['*'],
  'cli/query/reports': ['*'],
  'cli/monitoring': ['*'],
  'cli/demo': ['*'],
  'app.ts': ['*'],
  app: ['*'],
  'main.ts': ['cli', 'runtime'],
}

/** One door per dependency: only these folders (or files) may name the package or the global. */
const doorTo: Record<string, string[]> = {
  bullmq: ['delivery', 'feeds'],
  ioredis: ['redis'],
  undici: ['service/transport', 'sinks/webhook', 'sinks/slack'],
  nodemailer: ['sinks/email'],
  '@slack/webhook': ['sinks/slack'],
  'smtp-server': ['sandbox/catchers'],
  fastify: [
    'http',
    'sandbox',
    'sandbox/api',
    'sandbox/catchers',
    'sandbox/credentials',
    'sandbox/monitoring',
    'sandbox/reports',
    'sandbox/tenants',
    'sandbox/search',
    'sandbox/legacy',
  ],
  yaml: ['config'],
  commander: [
    'cli',
    'cli/query',
    'cli/query/assets',
    'cli/query/credentials',
    'cli/query/events',
    'cli/query/policies',
    'cli/query/reports',
    'cli/monitoring',
    'cli/demo',
  ],
  pino: ['runtime'],
  'pino-pretty': ['runtime'],
  'prom-client': ['runtime'],
  re2js: ['routing'],
  croner: ['runtime'],
  'node:child_process': ['redis/embedded'],
}

const globalDoors: [RegExp, string[]][] = [
  [/\bprocess\.env\b/, ['config']],
  [/\bDate\.now\(|\bsetTimeout\(|\bsetInterval\(/, ['runtime']],
  [/\bprocess\.(exit|on|once|exitCode)\b/, ['main.ts']],
]

const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ file: normalize(file), text: readFileSync(join(source, file), 'utf8') }))

function folderOf(file: string): string {
  const folder = dirname(file)
  return folder === '.' ? file : folder
}

function importsOf(text: string): string[] {
  return [...text.matchAll(/^(?:import|export)[^'"]*?from '([^']+)'|^import '([^']+)'/gms)].map(
    (match) => match[1] ?? match[2] ?? '',
  )
}

function fits(target: string, pattern: string): boolean {
  if (pattern === '*') return true
  if (!pattern.includes('.ts'))
    return new RegExp(`^${pattern.replace('*', '[^/]+')}$`).test(folderOf(target))
  return new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '[^/]+')}$`).test(target)
}

const imports = files.flatMap(({ file, text }) =>
  importsOf(text).map((specifier) => ({ file, specifier })),
)

test('the tables speak of every folder, and of no other', () => {
  const folders = new Set(files.map(({ file }) => folderOf(file)))
  expect(Object.keys(mayImport).toSorted()).toEqual([...folders].toSorted())
})

test('every import stays within the row of its folder', () => {
  const breaches = imports
    .filter(({ specifier }) => specifier.startsWith('.'))
    .map(({ file, specifier }) => ({
      file,
      target: relative(source, join(source, dirname(file), specifier)),
    }))
    .filter(({ file, target }) => folderOf(target) !== folderOf(file))
    .filter(({ file, target }) => {
      const row = mayImport[folderOf(file)] ?? []
      return !row.some((pattern) => fits(target, pattern))
    })
  expect(breaches).toEqual([])
})

describe('one door per dependency', () => {
  test.each(Object.entries(doorTo))('%s is named only by %s', (name, doors) => {
    const breaches = imports
      .filter(({ specifier }) => specifier === name || specifier.startsWith(`${name}/`))
      .filter(({ file }) => !doors.includes(folderOf(file)))
    expect(breaches).toEqual([])
  })

  test.each(globalDoors)('%s stands only in %s', (pattern, doors) => {
    const breaches = files.filter(
      ({ file, text }) => pattern.test(text) && !doors.includes(folderOf(file)),
    )
    expect(breaches.map(({ file }) => file)).toEqual([])
  })
})
