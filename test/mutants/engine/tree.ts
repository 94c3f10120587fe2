/** A copy of the project in which files are changed, so that nobody's work tree ever is. */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export interface Tree {
  root: string
  /** Temporary files of the tests, gone with the tree. */
  temporary: string
  read(file: string): string
  write(file: string, text: string): void
  remove(): void
}

/** Every file that git knows or would take, as it is on disk; `node_modules` is linked. */
export function copyTree(project: string): Tree {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-mutants-'))
  const [root, temporary] = [join(folder, 'tree'), join(folder, 'tmp')]
  mkdirSync(temporary, { recursive: true })
  for (const file of filesOf(project)) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    cpSync(join(project, file), join(root, file))
  }
  symlinkSync(join(project, 'node_modules'), join(root, 'node_modules'))
  return {
    root,
    temporary,
    read: (file) => readFileSync(join(root, file), 'utf8'),
    write: (file, text) => writeFileSync(join(root, file), text),
    remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }),
  }
}

function filesOf(project: string): string[] {
  const listing = ['ls-files', '--cached', '--others', '--exclude-standard', '-z']
  const printed = execFileSync('git', listing, { cwd: project, encoding: 'utf8' })
  return printed.split('\0').filter((file) => file !== '' && existsSync(join(project, file)))
}
