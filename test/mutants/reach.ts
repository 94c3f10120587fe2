/** Which tests are likeliest to notice a change to a file: those that are nearest to it by imports. */
import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

export interface Reach {
  /** At most so many test files, the nearest first. */
  testsFor(file: string, most: number): string[]
}

/** Of types nothing is left when tests run. */
const typeImport = /(?:import|export) type [^'"]*?from '[^']*'/g
const importPath = /(?:from|import\(?)\s*'(\.[^']*\.ts)'/g
/** A script is run by its name, and takes in others. */
const scriptName = /'([a-z][a-z-]*)'/g
const include = /^-- @include (\S+)/gm

export function readReach(root: string): Reach {
  const files = globSync(['src/**/*.{ts,lua}', 'test/**/*.ts'], { cwd: root }).toSorted()
  const known = new Set(files)
  const scripts = new Map(
    files.filter((file) => file.endsWith('.lua')).map((file) => [basename(file, '.lua'), file]),
  )
  const importers = new Map<string, string[]>()
  for (const file of files) {
    for (const needed of new Set(neededBy(file, readFileSync(join(root, file), 'utf8'), scripts))) {
      if (known.has(needed)) importers.set(needed, [...(importers.get(needed) ?? []), file])
    }
  }
  return {
    testsFor(file, most) {
      const distances = distancesFrom(file, importers)
      const origins = file.endsWith('.lua') ? runners(distances) : [file]
      const tests = [...distances].filter(
        ([one]) => one.endsWith('.test.ts') && !one.startsWith('test/faults/'),
      )
      return tests
        .map(([test, distance]) => ({ test, rank: distance - kinship(origins, test) }))
        .toSorted((one, other) => one.rank - other.rank)
        .slice(0, most)
        .map(({ test }) => test)
    },
  }
}

function neededBy(file: string, text: string, scripts: ReadonlyMap<string, string>): string[] {
  const all = (pattern: RegExp, source = text): string[] =>
    [...source.matchAll(pattern)].map(([, found = '']) => found)
  const ofScripts = (names: string[]): string[] =>
    names.flatMap((name) => scripts.get(basename(name, '.lua')) ?? [])
  if (file.endsWith('.lua')) return ofScripts(all(include))
  const paths = all(importPath, text.replaceAll(typeImport, ''))
  return [...paths.map((path) => join(dirname(file), path)), ...ofScripts(all(scriptName))]
}

function distancesFrom(
  file: string,
  importers: ReadonlyMap<string, string[]>,
): Map<string, number> {
  const distances = new Map([[file, 0]])
  // a Map is walked in the order of insertion, what is added meanwhile included
  for (const [reached, distance] of distances) {
    for (const importer of importers.get(reached) ?? []) {
      if (!distances.has(importer)) distances.set(importer, distance + 1)
    }
  }
  return distances
}

/** The sources that run a script, or what includes it. */
function runners(distances: ReadonlyMap<string, number>): string[] {
  const sources = [...distances].filter(([one]) => /^src\/.*\.ts$/.test(one))
  const nearest = Math.min(...sources.map(([, distance]) => distance))
  return sources.filter(([, distance]) => distance === nearest).map(([one]) => one)
}

/** A test of the same room, or of the same name, is nearer than its imports say; a whole daemon is not. */
function kinship(origins: readonly string[], test: string): number {
  const isOfRoom = origins.some((file) => test.includes(`/${basename(dirname(file))}/`))
  const isNamesake = origins.some((file) => basename(test).includes(basename(file, '.ts')))
  const isWhole = test.startsWith('test/e2e/')
  return (isOfRoom ? 1.5 : 0) + (isNamesake ? 2 : 0) - (isWhole ? 2 : 0)
}
