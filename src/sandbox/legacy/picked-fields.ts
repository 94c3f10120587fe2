/** What of `item` lies at the dotted paths or below them; without paths, all of it. */
export function pickedFields(item: unknown, paths: readonly string[]): unknown {
  if (paths.length === 0) return item
  return pick(
    item,
    paths.map((path) => path.split('.')),
  )
}

function pick(value: unknown, paths: readonly string[][]): unknown {
  if (Array.isArray(value)) return value.map((entry) => pick(entry, paths))
  if (paths.some(({ length }) => length === 0)) return value
  if (typeof value !== 'object' || value === null) return undefined
  const kept = Object.entries(value).flatMap(([key, inner]) => {
    const below = paths.filter(([first]) => first === key).map(([, ...rest]) => rest)
    return below.length === 0 ? [] : [[key, pick(inner, below)] as const]
  })
  return Object.fromEntries(kept)
}
