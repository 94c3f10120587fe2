/** What the demo's sandbox told, on disk: a line of JSON each, written before it is shown. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { replacePrivateFile } from '../../runtime/private-folder.ts'

/** `number` is its place in the story, from 1. */
export interface StoryLine {
  number: number
}

export interface StoryFile<Line extends StoryLine> {
  /** Those of earlier runs that still stand, in the order in which they were told. */
  readonly kept: readonly Line[]
  /** The last number told, also where its line stands no more; 0: none yet. */
  readonly told: number
  append(line: Line): void
}

export interface StoryFileOptions<Line> {
  file: string
  /** How many of earlier runs stand again at most. */
  keep: number
  stands: (line: Line) => boolean
}

export function openStoryFile<Line extends StoryLine>(
  options: StoryFileOptions<Line>,
): StoryFile<Line> {
  const { file, keep, stands } = options
  const { lines, isTorn } = readLines<Line>(file)
  const kept = lines.slice(-keep).filter(stands)
  if (isTorn || kept.length < lines.length) rewrite(file, kept.length > 0 ? kept : lines.slice(-1))
  return {
    kept,
    told: lines.at(-1)?.number ?? 0,
    append: (line) => appendFileSync(file, textOf(line), { mode: 0o600 }),
  }
}

function readLines<Line>(file: string): { lines: Line[]; isTorn: boolean } {
  if (!existsSync(file)) return { lines: [], isTorn: false }
  const texts = readFileSync(file, 'utf8').split('\n')
  const torn = texts.pop() // what a crash cut off was never shown
  return { lines: texts.map((text) => JSON.parse(text) as Line), isTorn: torn !== '' }
}

function rewrite(file: string, lines: readonly StoryLine[]): void {
  replacePrivateFile(file, lines.map(textOf).join(''))
}

function textOf(line: StoryLine): string {
  return `${JSON.stringify(line)}\n`
}
