/**
 * Notices that the configuration or a file it names has changed. It looks instead of being told:
 * file events get lost with network mounts, with editors that replace by rename, and with
 * ConfigMaps, whose files are links through a folder that is swapped.
 */
import { stat } from 'node:fs/promises'
import { errorCode } from '../lib/errors.ts'
import { changedFiles, type FileContents, lookAtContents, special } from './file-contents.ts'

export interface FileWatch {
  /**
   * Whether a file holds something else than what was read or told last, and all have been at rest
   * for a whole look: a file that is being written is left alone.
   */
  lookOnce(): Promise<boolean>
  /** A configuration runs that was read from these. */
  taken(contents: FileContents): void
  /**
   * One that was read from these was refused. They are looked at beside those of the configuration
   * that runs, since either may be where the mistake is mended.
   */
  refused(contents: FileContents): void
}

/** Begins with the configuration that runs. */
export function createFileWatch(contents: FileContents): FileWatch {
  let running = [...contents.keys()]
  let known = contents
  let last: FileStates = new Map()
  /** The states in which the contents were compared. */
  let compared: FileStates | undefined

  function know(read: FileContents): void {
    const files = new Set([...running, ...read.keys()])
    const merged = new Map([...known, ...read])
    known = new Map([...merged].filter(([file]) => files.has(file)))
  }

  return {
    async lookOnce() {
      const files = [...known.keys()]
      const states = await describeFiles(files)
      const isAtRest = isSame(states, last)
      last = states
      if (!isAtRest || (compared && isSame(states, compared))) return false
      const before = known
      const contents = await lookAtContents(files)
      last = await describeFiles(files)
      if (known !== before || !isSame(states, last)) return false
      compared = states
      const isChanged = changedFiles(known, contents).length > 0
      if (isChanged) known = contents
      return isChanged
    },
    taken(read) {
      running = [...read.keys()]
      know(read)
    },
    refused: know,
  }
}

type FileStates = ReadonlyMap<string, string>

function isSame(left: FileStates, right: FileStates): boolean {
  return left.size === right.size && [...left].every(([file, state]) => right.get(file) === state)
}

async function describeFiles(files: readonly string[]): Promise<FileStates> {
  const states = new Map<string, string>()
  for (const file of files) states.set(file, await describeFile(file))
  return states
}

/** Follows links. One call for each file: a thousand accounts have a thousand files of keys. */
async function describeFile(file: string): Promise<string> {
  try {
    const status = await stat(file, { bigint: true })
    const { dev, ino, size, mtimeNs, ctimeNs } = status
    return status.isFile() ? [dev, ino, size, mtimeNs, ctimeNs].join(' ') : special
  } catch (error) {
    return errorCode(error)
  }
}
