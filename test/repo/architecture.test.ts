import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

const source = join(import.meta.dirname, '../../src')

/** A folder for each type of sink; the table of types alone knows them by name. */
const sinkFolders = readdirSync(join(source, 'sinks'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'templates')
  .map(({ name }) => `sinks/${name}`)

/**
 * Who may import whom, from the top of the house to the bottom: a room is a folder of `src/` with the folders in
 * it, or a file. A row names rooms, or single files of them, that stand below it, so that no arrow runs back up.
 * Itself always; `*`: all.
 */
const mayImport: readonly (readonly [room: string, others: readonly string[]])[] = [
  ['main.ts', ['cli']],
  [
    'cli',
    [
      'config',
      'store',
      'upstream',
      'messages',
      'page/http',
      'redis',
      'event.ts',
      'lib',
      // the contract and the table of types: `sinks test` and `render` make one
      'sinks',
      'sinks/sink-types.ts',
      // `run` and `demo` start it
      'daemon/daemon.ts',
      'daemon/for-commands',
      // what operators ask, as the page asks it
      'operator',
      // what operators read and do of what is sent
      ...[
        'circuit',
        'send/delivery-member',
        'item-acts',
        'send/member-options',
        'silences',
        'sink-address',
      ].map((file) => `delivery/${file}.ts`),
      // `routes explain`, `silences` and `check` show whom a rule reaches
      'routing',
      // remedies are those of the self-alerts
      'operator/alerts',
      // what feeds read, and how an item reads as an event
      'feeds/types',
      'masking',
      // `sandbox` and `demo`
      'sandbox',
    ],
  ],
  ['daemon/for-commands', ['*']],
  ['daemon', ['*']],
  [
    'page',
    [
      // questions and acts are those of the commands
      'operator',
      'delivery/item-acts.ts',
      'config',
      'page/access',
      'page/http',
      'messages',
      'sinks/sink-types.ts',
      'routing',
      'store',
      'upstream',
      'redis',
      'event.ts',
      'lib',
    ],
  ],
  [
    'operator',
    [
      'config',
      'operator/alerts',
      'delivery',
      'sinks',
      'sinks/create-sink.ts',
      'sinks/sink-types.ts',
      'grouping',
      'feeds',
      'feeds/types',
      'masking',
      'messages',
      'routing',
      'store',
      'upstream',
      'redis',
      'event.ts',
      'lib',
    ],
  ],
  [
    'config',
    [
      'operator/alerts',
      'page/http',
      'sinks',
      'sinks/sink-types.ts',
      'feeds',
      'feeds/types',
      'messages',
      'routing',
      'store',
      'upstream',
      'redis',
      'event.ts',
      'lib',
    ],
  ],
  ['operator/alerts', ['store', 'redis', 'event.ts', 'lib']],
  ['page/access', ['page/http', 'redis', 'lib']],
  ['page/http', ['lib']],
  [
    'delivery',
    [
      'sinks',
      'sinks/sink-types.ts',
      'grouping',
      'messages',
      'masking',
      'routing',
      'store',
      'upstream',
      'redis',
      'event.ts',
      'lib',
    ],
  ],
  ['sinks/create-sink.ts', ['sinks', 'sinks/sink-types.ts', ...sinkFolders]],
  ['sinks/sink-types.ts', ['sinks', ...sinkFolders, 'lib']],
  ...sinkFolders.map((folder): [string, string[]] => [
    folder,
    ['sinks', 'messages', 'event.ts', 'lib'],
  ]),
  ['sinks', ['messages', 'event.ts', 'lib']],
  ['grouping', ['messages', 'routing', 'store', 'redis', 'event.ts', 'lib']],
  ['feeds', ['feeds/types', 'masking', 'store', 'upstream', 'redis', 'event.ts', 'lib']],
  ['feeds/types', ['masking', 'store', 'upstream', 'event.ts', 'lib']],
  ['messages', ['masking', 'event.ts', 'lib']],
  ['masking', ['event.ts']],
  ['routing', ['event.ts', 'lib']],
  ['store', ['redis', 'event.ts', 'lib']],
  ['sandbox', ['upstream/resources', 'lib']],
  ['upstream', ['redis', 'lib']],
  ['redis', ['lib']],
  ['event.ts', []],
  ['lib', []],
]

/** One door per dependency: only these rooms may name the package or the global. */
const doorTo: Record<string, string[]> = {
  bullmq: ['feeds'],
  ioredis: ['redis'],
  undici: ['upstream', 'sinks'],
  liquidjs: ['page', 'sinks'],
  nodemailer: ['sinks/email'],
  'smtp-server': ['sandbox'],
  fastify: ['page', 'page/access', 'page/http', 'sandbox'],
  '@fastify/cookie': ['page/access'],
  '@fastify/formbody': ['page/access'],
  yaml: ['config'],
  commander: ['cli'],
  pino: ['lib'],
  'pino-pretty': ['lib'],
  'prom-client': ['lib'],
  re2js: ['routing'],
  croner: ['lib'],
  'node:child_process': ['redis'],
}

const globalDoors: [RegExp, string[]][] = [
  // config reads settings from it; a child is given a few variables of it
  [/\bprocess\.env\b/, ['config', 'redis/embedded-redis.ts']],
  [/\bDate\.now\(|\bsetTimeout\(|\bsetInterval\(/, ['lib']],
  [/\bprocess\.(exit|on|once|exitCode)\b/, ['main.ts']],
]

const rooms = mayImport.map(([room]) => room)
const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ file: normalize(file), text: readFileSync(join(source, file), 'utf8') }))

/** The row that speaks of a file: the longest that begins its path. */
function roomOf(file: string): string | undefined {
  return rooms
    .filter((room) => file === room || file.startsWith(`${room}/`))
    .toSorted((left, right) => right.length - left.length)[0]
}

function importsOf(text: string): string[] {
  return [...text.matchAll(/^(?:import|export)[^'"]*?from '([^']+)'|^import '([^']+)'/gms)].map(
    (match) => match[1] ?? match[2] ?? '',
  )
}

/** Loaded when they are needed. */
function lateImportsOf(text: string): string[] {
  return [
    ...text.matchAll(/(?:createRequire\(import\.meta\.url\)|await import)\('([^'.][^']*)'\)/g),
  ].map(([, specifier = '']) => specifier)
}

const imports = files.flatMap(({ file, text }) =>
  [...importsOf(text), ...lateImportsOf(text)].map((specifier) => ({ file, specifier })),
)
const arrows = imports
  .filter(({ specifier }) => specifier.startsWith('.'))
  .map(({ file, specifier }) => ({
    file,
    target: relative(source, join(source, dirname(file), specifier)),
  }))

/** A room without the rooms in it, which have rows of their own; or a part of a room. */
function fits(target: string, other: string): boolean {
  if (other === '*' || target === other) return true
  return rooms.includes(other) ? roomOf(target) === other : target.startsWith(`${other}/`)
}

test('every file is in a room, and every room has files', () => {
  expect(files.filter(({ file }) => roomOf(file) === undefined)).toEqual([])
  expect(rooms.filter((room) => !files.some(({ file }) => roomOf(file) === room))).toEqual([])
})

test('a row names what stands below it', () => {
  const back = mayImport.flatMap(([room, others], at) =>
    others
      .filter((other) => other !== '*' && rooms.indexOf(roomOf(other) ?? '') <= at)
      .map((other) => `${room} -> ${other}`),
  )
  expect(back).toEqual([])
})

test('every import stays within the row of its room', () => {
  const breaches = arrows.filter(({ file, target }) => {
    const [from, to] = [roomOf(file), roomOf(target)]
    const row = mayImport.find(([room]) => room === from)?.[1] ?? []
    return from !== to && !row.some((other) => fits(target, other))
  })
  expect(breaches).toEqual([])
})

test('no file needs itself by way of others, types included', () => {
  const next = Map.groupBy(arrows, ({ file }) => file)
  const settled = new Set<string>()
  const cycles: string[] = []
  function walk(file: string, path: readonly string[]): void {
    if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(' -> '))
    if (path.includes(file) || settled.has(file)) return
    for (const { target } of next.get(file) ?? []) walk(target, [...path, file])
    settled.add(file)
  }
  for (const { file } of files) walk(file, [])
  expect(cycles).toEqual([])
})

describe('one door per dependency', () => {
  test('every package that src names has one, so that no tool of development gets into a build', () => {
    const names = imports
      .filter(({ specifier }) => !/^(?:\.|node:)/.test(specifier))
      .map(({ specifier }) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier)
    const doorless = new Set(names.filter((name) => !Object.hasOwn(doorTo, name)))
    expect([...doorless]).toEqual(['zod']) // any room may read what comes from outside
  })

  test.each(Object.entries(doorTo))('%s is named only by %s', (name, doors) => {
    const breaches = imports
      .filter(({ specifier }) => specifier === name || specifier.startsWith(`${name}/`))
      .filter(({ file }) => !doors.includes(roomOf(file) ?? ''))
    expect(breaches).toEqual([])
  })

  test.each(globalDoors)('%s stands only in %s', (pattern, doors) => {
    const breaches = files.filter(
      ({ file, text }) =>
        pattern.test(text) && !doors.some((door) => door === file || door === roomOf(file)),
    )
    expect(breaches.map(({ file }) => file)).toEqual([])
  })
})
