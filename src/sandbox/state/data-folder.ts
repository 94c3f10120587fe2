/**
 * The folder in which the sandbox keeps what a restart shall not lose: `history.jsonl` grows by what
 * comes and changes; `state.json`, what clients made, is replaced before they get their answer;
 * `walks.json`, how far they have read, every few seconds. A killed process loses nothing of the
 * first two; a power cut may. One sandbox at a time.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from '../../runtime/logger.ts'
import { createLoop } from '../../runtime/loop.ts'
import { DataFolderError } from './data-folder-error.ts'
import { openHistoryFile, type HistoryFile } from './history-file.ts'
import type { Keepable } from './keepable.ts'
import { openStateFile } from './state-file.ts'

export interface DataFolder {
  history: HistoryFile
  /** Puts the parts back as they were, and from now on saves them now and then. */
  keep(parts: KeptParts, logger: Logger): void
  /** Saves what clients made. */
  save: () => void
  /** Saves everything. */
  close(): Promise<void>
}

export interface KeptParts {
  /** What clients made, in the order in which it is put back. */
  made: Record<string, Keepable>
  /** How far they have read. */
  walks: Record<string, Keepable>
}

const everyMs = 2_000

/** Throws DataFolderError where the folder holds something else, or something damaged. */
export async function openDataFolder(folder: string): Promise<DataFolder> {
  const at = (name: string): string => join(folder, name)
  const history = await openOrExplain(folder, at)
  let save = (): void => {}
  let saveAll = (): void => {}
  let stop = (): Promise<void> => Promise.resolve()

  return {
    history,
    keep(parts, logger) {
      const made = openStateFile(at('state.json'), parts.made)
      const walks = openStateFile(at('walks.json'), parts.walks)
      made.restore()
      walks.restore()
      save = () => made.save()
      saveAll = () => {
        made.save()
        walks.save()
      }
      saveAll()
      const tick = (): Promise<void> => Promise.resolve(saveAll())
      const loop = createLoop({ name: 'sandbox state', everyMs, logger, tick })
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

async function openOrExplain(folder: string, at: (name: string) => string): Promise<HistoryFile> {
  const file = at('history.jsonl')
  try {
    mkdirSync(folder, { recursive: true })
    if (!existsSync(file) && existsSync(at('state.json'))) {
      throw new DataFolderError(file, 'it is missing beside state.json')
    }
    return await openHistoryFile(file)
  } catch (cause) {
    if (cause instanceof DataFolderError) throw cause
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
    throw new DataFolderError(folder, `it cannot be read and written (${code})`, cause)
  }
}
