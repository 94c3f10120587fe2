import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What was found, once for each way to fail. */
export interface Finding {
  target: string
  /** `throws`, or what ended the process. */
  kind: 'throws' | 'hangs' | 'crashes'
  message: string
  file: string
}

/** Two inputs that fail with the same key fail in the same way. */
export function keyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error).slice(0, 80)
  const frame = /(\w[\w-]*\.ts):\d+/.exec(error.stack?.split('\n').slice(1).join('\n') ?? '')?.[0]
  const words = error.message.split(/[:\n]/)[0]?.replaceAll(/\d+/g, '#').slice(0, 80)
  return `${error.name} ${words} ${frame}`
}

export function contentName(input: Uint8Array): string {
  return createHash('sha256').update(input).digest('hex').slice(0, 12)
}

/** Where the input is kept; the name says the target and the content. */
export function keep(folder: string, target: string, input: Uint8Array): string {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${target}-${contentName(input)}`)
  writeFileSync(file, input)
  return file
}
