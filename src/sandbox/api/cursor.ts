import { z } from 'zod'
import type { Position } from '../history/history.ts'

const positionSchema = z.tuple([z.number(), z.string()])

/**
 * As the service's example decodes: the last item's creation in milliseconds and its uid, JSON, base64,
 * then quoted for a URL, although it travels in a JSON body.
 */
export function encodeCursor(position: Position): string {
  return encodeURIComponent(Buffer.from(JSON.stringify(position)).toString('base64'))
}

/** null: not a cursor of this service. */
export function decodeCursor(cursor: string): Position | null {
  try {
    const text = Buffer.from(decodeURIComponent(cursor), 'base64').toString('utf8')
    return positionSchema.parse(JSON.parse(text))
  } catch {
    return null
  }
}
