export function secondsInWords(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

export function mebibytesInWords(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`
}
