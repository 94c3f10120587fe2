/** The Dockerfile and what its build may read, as the files say it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

export interface Copy {
  /** Another stage, or undefined: the repository. */
  from: string | undefined
  sources: string[]
  target: string
}

export interface Stage {
  name: string | undefined
  /** Instruction and the rest of its line, continued lines joined. */
  instructions: [instruction: string, rest: string][]
  copies: Copy[]
}

/** Stages in their order; the last one is the image. */
export function readStages(): Stage[] {
  const stages: Stage[] = []
  for (const line of linesOf(readFileSync(join(root, 'deploy/Dockerfile'), 'utf8'))) {
    const [instruction = '', ...words] = line.split(/\s+/)
    if (instruction === 'FROM') stages.push({ name: words[2], instructions: [], copies: [] })
    stages.at(-1)?.instructions.push([instruction, words.join(' ')])
    if (instruction === 'COPY') stages.at(-1)?.copies.push(copyOf(words))
  }
  return stages
}

function linesOf(text: string): string[] {
  const joined = text.replaceAll(/^\s*#.*\n/gm, '').replaceAll(/\\\n\s*/g, ' ')
  return joined.split('\n').filter((line) => line.trim() !== '')
}

function copyOf(words: string[]): Copy {
  const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length)
  const paths = words.filter((word) => !word.startsWith('--'))
  return { from, sources: paths.slice(0, -1), target: paths.at(-1) ?? '' }
}
