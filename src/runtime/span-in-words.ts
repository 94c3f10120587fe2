const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** The two largest units: `2 d 3 h`, `45 s`, `0 s`. */
export function spanInWords(ms: number): string {
  const first = units.findIndex(([, unitMs]) => ms >= unitMs)
  if (first === -1) return '0 s'
  let restMs = ms
  const parts = units.slice(first, first + 2).map(([unit, unitMs]) => {
    const count = Math.floor(restMs / unitMs)
    restMs -= count * unitMs
    return { unit, count }
  })
  return parts
    .filter(({ count }) => count > 0)
    .map(({ unit, count }) => `${count} ${unit}`)
    .join(' ')
}
