/**
 * Which test files reach which block of the rooms, learned by running each once on an unchanged copy whose
 * blocks note that they run. Kept between runs: a test file is asked again when it has changed, and all are
 * when the rooms have other files. Of a source that has changed since, only the file counts and not the block;
 * so it is of one that runs a script.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, matchesGlob } from 'node:path'
import { z } from 'zod'
import { blockAround, blocksOf, instrument, type Block } from './blocks.ts'
import type { Mutant } from './mutant.ts'
import { createTestRunner } from './test-runner.ts'
import type { Tree } from './tree.ts'

const reached = z.object({
  /** Of the test file, and of the names of the files in the rooms. */
  digest: z.string(),
  tookMs: z.number(),
  isPassing: z.boolean(),
  /** Digests of the sources whose blocks it reached. */
  sources: z.record(z.string(), z.string()),
  /** `<file>:<offset of the block>` */
  hits: z.array(z.string()),
})

type Reached = z.infer<typeof reached>

/** Test files that may judge a mutant: those of the lower layers, which run within this process. */
const judges = {
  files: ['test/{unit,integration,security}/**/*.test.ts', 'test/fuzz/properties.test.ts'],
  but: ['test/unit/{cli,sandbox}/**', 'test/integration/{sandbox,deploy}/**'],
  /** Of the commands only these read what the rooms hold. */
  commands: /cli\/(?:accounts|deliveries|digests|feeds|ledger|quarantine|routes|silences)-/,
}

export interface Coverage {
  /** Nearest first. */
  testsFor(mutant: Mutant): TestFile[]
  /** A test file that fails without any change judges nothing. */
  dismiss(file: string): void
  readonly dismissed: readonly string[]
}

export interface TestFile {
  file: string
  tookMs: number
}

export interface Learning {
  /** Copies of one project, that learn side by side. Changed meanwhile, and as they were afterwards. */
  trees: readonly [Tree, ...Tree[]]
  /** Files of the rooms. */
  sources: readonly string[]
  /** Where what was learned is kept. */
  cacheFile: string
  /** Hears about each test file that has to be asked. */
  tell: (line: string) => void
}

/** Takes minutes the first time. */
export async function learnCoverage(learning: Learning): Promise<Coverage> {
  const { trees, sources, cacheFile } = learning
  const known = currentOf(learning, readCache(cacheFile))
  const missing = testFilesOf(trees[0]).filter((file) => !known.has(file))
  const waiting = [...missing.entries()]
  if (missing.length > 0) {
    const tell = (index: number, rest: string): void =>
      learning.tell(`coverage ${index + 1} of ${missing.length}: ${rest}`)
    await Promise.all(trees.map((tree) => ask(tree, known, waiting, { ...learning, tell })))
  }
  return coverageOf(trees[0], sources, known)
}

function readCache(file: string): Map<string, Reached> {
  try {
    const text: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return new Map(Object.entries(z.record(z.string(), reached).parse(text)))
  } catch {
    return new Map()
  }
}

function writeCache(file: string, reachedBy: ReadonlyMap<string, Reached>): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, JSON.stringify(Object.fromEntries(reachedBy)))
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

/** What is known of test files that are still the same. */
function currentOf(
  { trees: [tree], sources }: Learning,
  known: ReadonlyMap<string, Reached>,
): Map<string, Reached> {
  const files = new Set(testFilesOf(tree))
  return new Map(
    [...known].filter(
      ([file, { digest, isPassing }]) =>
        isPassing &&
        files.has(file) &&
        digestOf([tree.read(file), ...sources].join('\n')) === digest,
    ),
  )
}

function testFilesOf(tree: Tree): string[] {
  return readdirSync(join(tree.root, 'test'), { recursive: true, encoding: 'utf8' })
    .map((file) => `test/${file.replaceAll('\\', '/')}`)
    .filter((file) => judges.files.some((glob) => matchesGlob(file, glob)))
    .filter((file) => !judges.but.some((glob) => matchesGlob(file, glob)))
    .filter((file) => !file.includes('/cli/') || judges.commands.test(file))
    .toSorted()
}

const scriptsFolder = 'src/redis/scripts'

function sourcesOf(tree: Tree): string[] {
  return readdirSync(join(tree.root, 'src'), { recursive: true, encoding: 'utf8' })
    .map((file) => `src/${file.replaceAll('\\', '/')}`)
    .toSorted()
}

/** Sources that name a script of Redis: a test that reaches the name reaches the script. */
function callersOf(tree: Tree): string[] {
  const names = sourcesOf(tree).filter((file) => file.endsWith('.lua'))
  const quoted = names.map((file) => `'${basename(file, '.lua')}'`)
  return sourcesOf(tree)
    .filter((file) => file.endsWith('.ts'))
    .filter((file) => {
      const text = tree.read(file)
      return quoted.some((name) => text.includes(name))
    })
}

/** Sources whose blocks are asked after: those of the rooms, and those that run their scripts. */
function trackedOf(tree: Tree, sources: readonly string[]): string[] {
  const inRooms = sources.filter((file) => file.endsWith('.ts'))
  return [...new Set([...inRooms, ...callersOf(tree)])]
}

/** Takes test files from `waiting`, adds what they reach to `known`, and keeps it after each of them. */
async function ask(
  tree: Tree,
  known: Map<string, Reached>,
  waiting: [index: number, file: string][],
  {
    sources,
    cacheFile,
    tell,
  }: Omit<Learning, 'tell'> & { tell: (index: number, rest: string) => void },
): Promise<void> {
  const originals = new Map(trackedOf(tree, sources).map((file) => [file, tree.read(file)]))
  for (const [file, text] of originals) {
    const mark = ({ start }: Block): string => `globalThis.tocsinHit?.add('${file}:${start}')`
    tree.write(file, instrument(file, text, mark))
  }
  const hitsFolder = join(tree.temporary, 'hits')
  const setup = join(import.meta.dirname, 'record-hits.ts')
  const runner = createTestRunner({ ...tree, setup, hitsFolder })
  try {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [index, file] = next
      rmSync(hitsFolder, { recursive: true, force: true })
      mkdirSync(hitsFolder)
      const verdict = await runner.run({ changed: [], files: [file] }, askLimitMs)
      const hits = readHits(hitsFolder)
      const reachedFiles = new Set(hits.map((hit) => hit.slice(0, hit.lastIndexOf(':'))))
      const digests = [...reachedFiles].map((one) => [one, digestOf(originals.get(one) ?? '')])
      known.set(file, {
        digest: digestOf([tree.read(file), ...sources].join('\n')),
        tookMs: verdict?.took[file] ?? askLimitMs,
        isPassing: verdict !== undefined && verdict.failed === undefined,
        sources: Object.fromEntries(digests) as Record<string, string>,
        hits,
      })
      writeCache(cacheFile, known)
      const outcome = verdict?.failed === undefined ? '' : `: fails (${verdict.test})`
      tell(index, `${file}${outcome}`)
    }
  } finally {
    runner.stop()
    for (const [file, text] of originals) tree.write(file, text)
  }
}

const askLimitMs = 300_000

function readHits(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const { hits } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { hits: string[] }
    return hits
  })
}

/** At most so many test files and so much of their time are spent on one mutant. */
const mostFiles = 16
const mostMs = 45_000

function coverageOf(
  tree: Tree,
  sources: readonly string[],
  reachedBy: ReadonlyMap<string, Reached>,
): Coverage {
  const dismissed = new Set(
    [...reachedBy].filter(([, one]) => !one.isPassing).map(([file]) => file),
  )
  const hitsOf = new Map([...reachedBy].map(([file, { hits }]) => [file, new Set(hits)]))
  const placesOfScript = readPlacesOfScripts(tree)
  const testTexts = new Map<string, string>()
  const texts = new Map(trackedOf(tree, sources).map((file) => [file, tree.read(file)]))
  const blocks = new Map([...texts].map(([file, text]) => [file, blocksOf(file, text)]))
  const digests = new Map([...texts].map(([file, text]) => [file, digestOf(text)]))

  function placesOf({ file, start }: Mutant): string[] {
    if (file.endsWith('.lua')) return placesOfScript.get(file) ?? []
    return [`${file}:${blockAround(blocks.get(file) ?? [], start).start}`]
  }

  /** Scripts that a test may run by itself; it names them as the sources do. */
  function namesOf({ file }: Mutant): string[] {
    return file.endsWith('.lua') ? [`'${basename(file, '.lua')}'`] : []
  }

  function textOf(test: string): string {
    const text = testTexts.get(test) ?? tree.read(test)
    testTexts.set(test, text)
    return text
  }

  /** Its own, and of a script those that run it. */
  function filesOf(mutant: Mutant): string[] {
    const callers = placesOf(mutant).map((place) => place.slice(0, place.lastIndexOf(':')))
    return [...new Set([mutant.file, ...callers])]
  }

  function reaches(test: string, mutant: Mutant): boolean {
    const before = reachedBy.get(test)?.sources ?? {}
    const hasChanged = (file: string): boolean =>
      before[file] !== undefined && before[file] !== digests.get(file)
    if (filesOf(mutant).some(hasChanged)) return true
    if (placesOf(mutant).some((place) => hitsOf.get(test)?.has(place))) return true
    return namesOf(mutant).some((name) => textOf(test).includes(name))
  }

  function distance(test: TestFile, mutant: Mutant): number {
    return Math.min(...filesOf(mutant).map((file) => distanceTo(test, file)))
  }

  return {
    testsFor(mutant) {
      const near = [...reachedBy]
        .filter(([file]) => !dismissed.has(file))
        .filter(([file]) => reaches(file, mutant))
        .map(([file, { tookMs }]) => ({ file, tookMs }))
        .toSorted((one, other) => distance(one, mutant) - distance(other, mutant))
      return withinBounds(near)
    },
    dismiss: (file) => void dismissed.add(file),
    get dismissed() {
      return [...dismissed].toSorted()
    },
  }
}

function withinBounds(files: TestFile[]): TestFile[] {
  let spentMs = 0
  return files.slice(0, mostFiles).filter(({ tookMs }, index) => {
    spentMs += tookMs
    return index === 0 || spentMs <= mostMs
  })
}

/** Quick ones first; a test of the same room counts as four times as quick, one of a like name as 16 times. */
function distanceTo({ file, tookMs }: TestFile, source: string): number {
  const room = dirname(source).split('/').at(-1) ?? ''
  const isSameRoom = file.split('/').includes(room)
  const words = basename(source)
    .replace(/\.\w+$/, '')
    .split('-')
  const isNamesake = words.some(
    (word) => word.length > 3 && basename(file).includes(word.slice(0, 4)),
  )
  return (tookMs + 300) / ((isSameRoom ? 4 : 1) * (isNamesake ? 16 : 1))
}

/** Blocks that name a script, or one that includes it. */
function readPlacesOfScripts(tree: Tree): Map<string, string[]> {
  const files = sourcesOf(tree)
  const scripts = files.filter((file) => file.endsWith('.lua'))
  const places = new Map<string, string[]>(scripts.map((file) => [file, []]))
  for (const file of files.filter((one) => one.endsWith('.ts'))) {
    const text = tree.read(file)
    for (const script of scripts) {
      const at = offsetsOf(text, `'${basename(script, '.lua')}'`)
      if (at.length === 0) continue
      const blocks = blocksOf(file, text)
      places.get(script)?.push(...at.map((one) => `${file}:${blockAround(blocks, one).start}`))
    }
  }
  const includedBy = new Map(scripts.map((file) => [file, includesOf(tree, file)]))
  for (const [script, included] of includedBy) {
    for (const library of included) places.get(library)?.push(...(places.get(script) ?? []))
  }
  return places
}

function offsetsOf(text: string, wanted: string): number[] {
  return text
    .split(wanted)
    .slice(0, -1)
    .reduce<number[]>((found, part) => {
      const from = found.length === 0 ? 0 : (found.at(-1) ?? 0) + wanted.length
      return [...found, from + part.length]
    }, [])
}

function includesOf(tree: Tree, script: string): string[] {
  const found = [...tree.read(script).matchAll(/^-- @include (\S+)$/gm)]
  return found
    .map(([, path = '']) => `${scriptsFolder}/${path}`)
    .flatMap((path) => [path, ...includesOf(tree, path)])
}
