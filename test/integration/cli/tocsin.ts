/** The command line as a user has it: in a process of its own, or in this one where only its words count. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'

const temporary = mkdtempSync(join(tmpdir(), 'tocsin-tmp-'))
// Not after a file: several files of a worker share it.
process.once('exit', () => rmSync(temporary, { recursive: true, force: true }))

/** Nothing of the tester's own, but for what spares compiling it all again. */
export const environment = {
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
  /** Where daemons that are killed leave their token files. */
  TMPDIR: temporary,
}

export const main = join(import.meta.dirname, '../../../src/main.ts')

export interface Ended {
  code: number | null
  out: string
  err: string
}

/** In a process of its own, to its end. */
export async function tocsinProcess(...args: string[]): Promise<Ended> {
  const child = startTocsin(...args)
  return child.ended
}

export interface RunningTocsin {
  child: ChildProcess
  ended: Promise<Ended>
  /** Resolves when standard output holds `words`; rejects when the process ends without. */
  says: (words: string) => Promise<void>
  /** What it has printed. */
  soFar: () => string
}

export function startTocsin(...args: string[]): RunningTocsin {
  return startNode([main, ...args])
}

export function startNode(args: readonly string[]): RunningTocsin {
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment,
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let seen = ''
  child.stdout.on('data', (chunk) => (seen += String(chunk)))
  const exit = once(child, 'close') as Promise<[number | null]>
  const ended = Promise.all([exit, text(child.stderr)]).then(([[code], err]) => ({
    code,
    out: seen,
    err,
  }))
  async function says(words: string): Promise<void> {
    while (!seen.includes(words)) {
      const next = await Promise.race([once(child.stdout, 'data'), ended])
      if (!Array.isArray(next)) throw new Error(`it ended without "${words}": ${seen}${next.err}`)
    }
  }
  return { child, ended, says, soFar: () => seen }
}

/** In this process: the same words and codes, without the start of a Node. */
export async function tocsin(...args: string[]): Promise<Ended> {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const stop = new AbortController().signal
  const code = await runProgram(args, { input, output, errors, stop })
  output.end()
  errors.end()
  return { code, out: await text(output), err: await text(errors) }
}

/** A file with the text, gone after the test; its path. */
export function aFile(name: string, content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, name)
  writeFileSync(path, content, { mode: 0o600 })
  return path
}
