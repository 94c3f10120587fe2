/** A target that hangs on an "h" and ends its process on an "e". */
export function fuzz(data: Uint8Array): void {
  const text = Buffer.from(data).toString('latin1')
  if (text.startsWith('h')) for (;;);
  if (text.startsWith('e')) process.exit(7)
}
