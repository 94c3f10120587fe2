/** Programs beyond Node and Redis that some tests want. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * Whether the program is on this machine. Where it is not, this says loudly what is left untested, or
 * throws where nothing may be left out (TOCSIN_TEST_ALL=1, as `.ci/run` sets it).
 */
export function isInstalled(program: string, remedy = installByApt(program)): boolean {
  if (pathOf(program) !== undefined) return true
  const what = `${program} is missing, so what needs it is NOT tested; ${remedy}`
  if (process.env['TOCSIN_TEST_ALL'] === '1') throw new Error(`${what} (TOCSIN_TEST_ALL is set)`)
  process.stderr.write(`\n!! ${what}\n\n`)
  return false
}

export function installByApt(debianPackage: string): string {
  return `on Debian: apt-get install --no-install-recommends ${debianPackage}`
}

function pathOf(program: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.map((folder) => join(folder, program)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
