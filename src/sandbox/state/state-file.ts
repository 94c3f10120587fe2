import { existsSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { DataFolderError } from './data-folder-error.ts'
import type { Keepable } from './keepable.ts'
import { replacePrivateFile } from '../../runtime/private-folder.ts'

/** The state of several parts in one file of JSON, which is either the old one or the new one. */
export interface StateFile {
  /** Hands each part what the file has of it; a part that it does not know stays as it is. */
  restore(): void
  /** Writes, where something changed since the last time. */
  save(): void
}

const format = 'tocsin sandbox state'
const version = 1
const content = z.object({ parts: z.record(z.string(), z.unknown()) })
const heading = z.object({ format: z.literal(format), version: z.number() })

/** In the order of `parts`, which restore one after the other. */
export function openStateFile(file: string, parts: Record<string, Keepable>): StateFile {
  let saved = ''

  return {
    restore() {
      if (!existsSync(file)) return
      const kept = partsIn(file)
      for (const [name, part] of Object.entries(parts)) {
        if (kept[name] === undefined) continue
        try {
          part.restore(kept[name])
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

function partsIn(file: string): Record<string, unknown> {
  const json = jsonIn(file)
  const head = heading.safeParse(json)
  if (!head.success) throw new DataFolderError(file, 'no sandbox wrote it')
  if (head.data.version !== version) {
    throw new DataFolderError(file, `it has format ${head.data.version}, this is ${version}`)
  }
  const parsed = content.safeParse(json)
  if (!parsed.success) throw new DataFolderError(file, 'it has no parts')
  return parsed.data.parts
}

function jsonIn(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as unknown
  } catch (cause) {
    throw new DataFolderError(file, 'it is not whole JSON', cause)
  }
}
