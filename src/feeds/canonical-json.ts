/** Deeper values are written as "…": what differs only there is taken for the same. */
const maxDepth = 64

/**
 * JSON with sorted keys and no space: equal values give equal text, whatever the order of their keys.
 * For hashing what the service sent. Never throws: what JSON cannot hold is written as null.
 */
export function canonicalJson(value: unknown, depth = 0): string {
  if (typeof value !== 'object' || value === null) return scalar(value)
  if (depth >= maxDepth) return '"…"'
  if (Array.isArray(value)) {
    return `[${value.map((element) => canonicalJson(element, depth + 1)).join(',')}]`
  }
  const members: Record<string, unknown> = { ...value }
  const texts = Object.keys(members)
    .toSorted() // by code unit, the same on every machine
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(members[key], depth + 1)}`)
  return `{${texts.join(',')}}`
}

function scalar(value: unknown): string {
  return typeof value === 'bigint' ? 'null' : (JSON.stringify(value) ?? 'null')
}
