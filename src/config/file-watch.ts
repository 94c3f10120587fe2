/**
 * Notices that the configuration or a file it names has changed. It looks instead of being told:
 * file events get lost with network mounts, with editors that replace by rename, and with
 * ConfigMaps, whose files are links through a folder that is swapped.
 */
import { realpathSync, statSync } from 'node:fs'

export interface FileWatch {
  /**
   * Whether the files differ from when this last said so, or from the first look, and have been at
   * rest for a whole look: a file that is being written is left alone.
   */
  lookOnce(files: readonly string[]): boolean
}

export function createFileWatch(files: readonly string[]): FileWatch {
  let known = describeFiles(files)
  let last = known
  return {
    lookOnce(watched) {
      const seen = describeFiles(watched)
      const isAtRest = [...seen].every(([file, state]) => last.get(file) === state)
      const isChanged = [...seen].some(([file, state]) => (known.get(file) ?? state) !== state)
      last = seen
      if (!isChanged) known = new Map([...seen, ...known])
      else if (isAtRest) known = seen
      return isChanged && isAtRest
    },
  }
}

function describeFiles(files: readonly string[]): Map<string, string> {
  return new Map(files.map((file) => [file, describeFile(file)]))
}

/** Follows links. A pipe or a device says nothing, since reading it twice says something else. */
function describeFile(file: string): string {
  try {
    const path = realpathSync(file)
    const stat = statSync(path, { bigint: true })
    const { dev, ino, size, mtimeNs, ctimeNs } = stat
    return stat.isFile() ? [path, dev, ino, size, mtimeNs, ctimeNs].join(' ') : 'special'
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  }
}
