import { spawnSync } from 'node:child_process'
import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../store-error.ts'

/** Debian's redis-tools carries the server as redis-check-rdb: it goes by the name it is called by. */
const binaries = ['redis-server', 'valkey-server', 'redis-check-rdb']

export const linkName = 'redis-server'

/** Puts the server into the folder under its own name; throws StoreError where there is none. */
export function linkServer(folder: string): void {
  const found = findFirst(binaries)
  if (found === undefined) throw new StoreError('unreachable', `no redis-server: ${installLine()}`)
  const link = join(folder, linkName)
  rmSync(link, { force: true })
  symlinkSync(found, link)
}

const installers = [
  ['apt-get', 'sudo apt-get install -y redis-tools'],
  ['dnf', 'sudo dnf install -y redis'],
  ['apk', 'sudo apk add redis'],
  ['brew', 'brew install redis'],
] as const

function installLine(): string {
  const known = installers.find(([name]) => findFirst([name]) !== undefined)
  const line = known?.[1] ?? 'install Redis 7 or Valkey with your package manager'
  return `run this once, then try again: ${line}`
}

/** The path of the first of the programs that there is. */
function findFirst(names: readonly string[]): string | undefined {
  const search = names.map((name) => `command -v ${name}`).join(' || ')
  const found = spawnSync('/bin/sh', ['-c', search], { encoding: 'utf8' }).stdout?.trim()
  return found === '' ? undefined : found
}
