import { CommandError } from '../command-error.ts'
import type { Context } from '../context.ts'
import { readText } from '../read-text.ts'

export type JsonObject = Record<string, unknown>

/**
 * The JSON object in a file, or on standard input for `-`. Throws CommandError that names the file and
 * where in it the mistake is; nothing of the text is quoted, since it may hold a secret.
 */
export async function readJsonObject(context: Context, file: string): Promise<JsonObject> {
  const place = placeOf(file)
  const text = await readText(context, file)
  const value = parseJson(text.replace(/^\uFEFF/, ''), place)
  if (isObject(value)) return value
  throw new CommandError('mistake', `${place}: not a JSON object; write {"…": …}`)
}

export function placeOf(file: string): string {
  return file === '-' ? 'standard input' : file
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parseJson(text: string, place: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    const before = text.slice(0, mistakeIn(text)).split('\n')
    const at = `${before.length}:${(before.at(-1) ?? '').length + 1}`
    throw new CommandError('mistake', `${place}:${at}: not JSON`)
  }
}

/** The offset of the first character that no JSON has there; the parser does not always tell. */
function mistakeIn(text: string): number {
  let [good, bad] = [0, text.length + 1]
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2)
    if (mayGoOn(text.slice(0, middle))) good = middle
    else bad = middle
  }
  return good
}

/** Whether a text is the beginning of some JSON: all that is wrong with it is that it ends. */
function mayGoOn(start: string): boolean {
  try {
    JSON.parse(start)
    return true
  } catch (error) {
    const said = error instanceof Error ? error.message : ''
    const position = /at position (\d+)/.exec(said)?.[1]
    return /end of JSON input/.test(said) || Number(position) >= start.length
  }
}
