export function secondsInWords(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

/** As `11.0 s (median), at most 13.6 s`. */
export function spreadInWords({ median, most }: { median: number; most: number }): string {
  return `${secondsInWords(median)} (median), at most ${secondsInWords(most)}`
}

export function mebibytesInWords(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`
}
