/** The program as `npm run build` makes it, in a folder of its own. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'

export interface BuiltProgram {
  /** Holds `dist/` and `package.json`. */
  folder: string
  /** `dist/main.js`. */
  main: string
  remove(): void
}

const root = join(import.meta.dirname, '../..')

/** Below node_modules, where the built files find their packages as an installed copy would. */
export function buildProgram(): BuiltProgram {
  const cache = join(root, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'build-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  try {
    const dist = join(folder, 'dist')
    copyFileSync(join(root, 'package.json'), join(folder, 'package.json'))
    // types are what `npm run check` looks at; it takes ten times as long
    const tsc = join(root, 'node_modules/.bin/tsc')
    execFileSync(tsc, ['-p', 'tsconfig.build.json', '--outDir', dist, '--noCheck'], { cwd: root })
    execFileSync(process.execPath, ['.ci/copy-assets.mjs', dist], { cwd: root })
    return { folder, main: join(dist, 'main.js'), remove }
  } catch (error) {
    remove()
    throw error
  }
}
