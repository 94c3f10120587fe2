/** JSON for people who read a recording: what fits stands on one line, and a block on one whatever it holds. */

interface Shape {
  /** A value this deep stands on one line. The whole is at 0. */
  depth?: number
  /** What fits into as many columns stands on one line, too. */
  width?: number
}

export function jsonLines(value: unknown, { depth = Infinity, width = 100 }: Shape = {}): string {
  return linesOf(value, 0, { depth, width })
}

function linesOf(value: unknown, level: number, shape: Required<Shape>): string {
  const line = oneLine(value)
  if (level >= shape.depth || level + line.length <= shape.width) return line
  if (typeof value !== 'object' || value === null) return line
  const inner = (one: unknown): string => linesOf(one, level + 1, shape)
  const parts = Array.isArray(value)
    ? value.map(inner)
    : present(value).map(([key, one]) => `${JSON.stringify(key)}: ${inner(one)}`)
  const indent = ' '.repeat(level)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${parts.map((part) => `${indent} ${part}`).join(',\n')}\n${indent}${close}`
}

/** With the blanks that make a line readable. */
function oneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const parts = present(value).map(([key, one]) => `${JSON.stringify(key)}: ${oneLine(one)}`)
  return parts.length === 0 ? '{}' : `{ ${parts.join(', ')} }`
}

/** As JSON has them. */
function present(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, one]) => one !== undefined)
}
