import { readFileSync } from 'node:fs'

interface PackageFile {
  version: string
  engines: { node: string }
}

function readPackageFile(): PackageFile {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return JSON.parse(text) as PackageFile
}

/** The version in this package's package.json. */
export function readVersion(): string {
  return readPackageFile().version
}

/**
 * Why the Node that runs this is refused; undefined: it is new enough. An older one fails anyway, in the
 * middle of a command and in words of its own.
 */
export function findNodeMistake(running = process.versions.node): string | undefined {
  const needed = readPackageFile().engines.node.replace('>=', '')
  const [major = 0, minor = 0] = running.split('.').map(Number)
  const [neededMajor = 0, neededMinor = 0] = needed.split('.').map(Number)
  const isEnough = major === neededMajor ? minor >= neededMinor : major > neededMajor
  if (isEnough) return undefined
  return `tocsin needs Node ${needed} or newer, and this is Node ${running} (${process.execPath})`
}
