/** A target with a defect that chance alone does not find: four bytes, each behind the one before it. */
export function fuzz(data: Uint8Array): void {
  if (data[0] !== 0xb5) return
  if (data[1] !== 0x17) return
  if (data[2] !== 0xee) return
  if (data[3] !== 0x42) return
  throw new Error('the planted defect')
}
