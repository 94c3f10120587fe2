import { readFile } from 'node:fs/promises'
import { CommandError } from './command-error.ts'
import type { Context } from './context.ts'

/** The text of a file, or of standard input for `-`. Throws CommandError that names the file. */
export async function readText({ terminal }: Context, file: string): Promise<string> {
  if (file === '-') return terminal.readInput()
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
    const problem = code === 'ENOENT' ? 'there is no such file' : `cannot be read (${code})`
    throw new CommandError('mistake', `${file}: ${problem}`, { cause })
  }
}
