export interface Bounds {
  /** Per string, in code points. */
  maxCharacters: number
  /** Per array and object. */
  maxEntries: number
}

/** The same JSON value with every string, array and object cut to the bounds, at any depth. */
export function shorten<T>(value: T, bounds: Bounds): T {
  return shortenAny(value, bounds) as T
}

function shortenAny(value: unknown, bounds: Bounds): unknown {
  if (typeof value === 'string') return shortenText(value, bounds.maxCharacters)
  if (Array.isArray(value)) {
    return value.slice(0, bounds.maxEntries).map((entry) => shortenAny(entry, bounds))
  }
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).slice(0, bounds.maxEntries)
  return Object.fromEntries(
    kept.map(([key, entry]) => [shortenText(key, bounds.maxCharacters), shortenAny(entry, bounds)]),
  )
}

/** Cut between code points, so that no half of a surrogate pair is left. */
function shortenText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text
  const characters = Array.from(text.slice(0, 2 * maxCharacters))
  return characters.length <= maxCharacters && text.length <= 2 * maxCharacters
    ? text
    : `${characters.slice(0, maxCharacters).join('')}…`
}
