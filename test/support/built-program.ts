/** The program as `npm run build` makes it, in a folder of its own. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface BuiltProgram {
  /** Holds `dist/` and `package.json`. */
  folder: string
  /** `dist/main.js`. */
  main: string
  remove(): void
}

const root = join(import.meta.dirname, '../..')

export function buildProgram(): BuiltProgram {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-build-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  try {
    const dist = join(folder, 'dist')
    copyFileSync(join(root, 'package.json'), join(folder, 'package.json'))
    for (const step of ['bundle', 'sbom']) {
      execFileSync(process.execPath, [`.ci/${step}.mjs`, dist], { cwd: root })
    }
    return { folder, main: join(dist, 'main.js'), remove }
  } catch (error) {
    remove()
    throw error
  }
}
