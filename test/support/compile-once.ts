/** Fills Node's compile cache before the first test: a process that is killed leaves nothing in it. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

export function setup(): void {
  if (existsSync(process.env['NODE_COMPILE_CACHE'] ?? '')) return
  spawnSync(process.execPath, [join(import.meta.dirname, '../../src/main.ts'), '--version'])
}
