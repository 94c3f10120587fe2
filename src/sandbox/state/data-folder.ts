/**
 * The folder with the state that survives a restart of the sandbox. `history.jsonl` is appended to
 * with everything that arrives or changes. `state.json`, what clients created, is replaced before
 * they get their answer. `walks.json`, how far clients have read, is replaced every few seconds. A
 * killed process loses nothing of the first two; a power cut may. One sandbox at a time uses the
 * folder.
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { errorCode } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { createLoop } from '../../lib/loop.ts'
import { replacePrivateFile } from '../../lib/private-files.ts'
import { DataFolderError, type HistoryFile, openHistoryFile } from './history-file.ts'

export interface DataFolder {
  history: HistoryFile
  /** Restores the parts, and saves them regularly from now on. */
  attach(parts: PersistentParts, logger: Logger): void
  /** Saves what clients created. */
  save: () => void
  /** Saves everything. */
  close(): Promise<void>
}

export interface PersistentParts {
  /** What clients created, in the order in which it is restored. */
  created: Record<string, Persistent>
  /** How far clients have read. */
  progress: Record<string, Persistent>
}

const saveEveryMs = 2_000

/** Opens the folder. Throws DataFolderError if it holds something else, or is damaged. */
export async function openDataFolder(folder: string): Promise<DataFolder> {
  const at = (name: string): string => join(folder, name)
  const history = await openHistory(folder, at)
  let save = (): void => {}
  let saveAll = (): void => {}
  let stop = (): Promise<void> => Promise.resolve()

  return {
    history,
    attach(parts, logger) {
      const created = openStateFile(at('state.json'), parts.created)
      const progress = openStateFile(at('walks.json'), parts.progress)
      created.restore()
      progress.restore()
      save = () => created.save()
      saveAll = () => {
        created.save()
        progress.save()
      }
      saveAll()
      const tick = (): Promise<void> => Promise.resolve(saveAll())
      const loop = createLoop({ name: 'sandbox state', everyMs: saveEveryMs, logger, tick })
      loop.start()
      stop = () => loop.stop()
    },
    save: () => save(),
    async close() {
      await stop()
      try {
        saveAll()
      } finally {
        history.close()
      }
    },
  }
}

async function openHistory(folder: string, at: (name: string) => string): Promise<HistoryFile> {
  const file = at('history.jsonl')
  try {
    mkdirSync(folder, { recursive: true })
    if (!existsSync(file) && existsSync(at('state.json'))) {
      throw new DataFolderError(file, 'it is missing beside state.json')
    }
    return await openHistoryFile(file)
  } catch (cause) {
    if (cause instanceof DataFolderError) throw cause
    const code = errorCode(cause)
    throw new DataFolderError(folder, `it cannot be read and written (${code})`, cause)
  }
}

/** The state of several parts in one JSON file, which is replaced atomically. */
interface StateFile {
  /** Restores each part from the file. A part that the file does not have stays as it is. */
  restore(): void
  /** Writes the file if anything changed since the last time. */
  save(): void
}

const format = 'tocsin sandbox state'
const version = 1
const content = z.object({ parts: z.record(z.string(), z.unknown()) })
const heading = z.object({ format: z.literal(format), version: z.number() })

/** Opens a state file; `parts` are restored in their order. */
function openStateFile(file: string, parts: Record<string, Persistent>): StateFile {
  let saved = ''

  return {
    restore() {
      if (!existsSync(file)) return
      const stored = readParts(file)
      for (const [name, part] of Object.entries(parts)) {
        if (stored[name] === undefined) continue
        try {
          part.restore(stored[name])
        } catch (cause) {
          throw new DataFolderError(file, `its part "${name}" is not what a sandbox writes`, cause)
        }
      }
    },
    save() {
      const snapshots = Object.entries(parts).map(([name, part]) => [name, part.snapshot()])
      const text = JSON.stringify({ format, version, parts: Object.fromEntries(snapshots) })
      if (text === saved) return
      replacePrivateFile(file, `${text}\n`)
      saved = text
    },
  }
}

function readParts(file: string): Record<string, unknown> {
  const json = readJson(file)
  const head = heading.safeParse(json)
  if (!head.success) throw new DataFolderError(file, 'no sandbox wrote it')
  if (head.data.version !== version) {
    throw new DataFolderError(file, `it has format ${head.data.version}, this is ${version}`)
  }
  const parsed = content.safeParse(json)
  if (!parsed.success) throw new DataFolderError(file, 'it has no parts')
  return parsed.data.parts
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as unknown
  } catch (cause) {
    throw new DataFolderError(file, 'it is not whole JSON', cause)
  }
}

/** A part whose state survives a restart, as plain JSON. */
export interface Persistent {
  snapshot(): unknown
  /** Replaces the part's state. Throws if `kept` is not a snapshot of it. */
  restore(kept: unknown): void
}
