/** Appends, and lets the oldest go once `list` is a tenth over `keep`: memory stays bounded. */
export function appendBounded<T>(list: T[], entry: T, keep: number): void {
  list.push(entry)
  if (list.length > keep * 1.1) list.splice(0, list.length - keep)
}
