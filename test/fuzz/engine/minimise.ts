/** The shortest input found that fails in the same way: halves, quarters … are left out while it does. */
export async function minimise(
  input: Uint8Array,
  failsStill: (smaller: Uint8Array) => Promise<boolean>,
  mostTries: number,
): Promise<Uint8Array> {
  let smallest = Buffer.from(input)
  let tries = 0
  for (let size = Math.ceil(smallest.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < smallest.length && tries < mostTries;) {
      const smaller = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + size)])
      tries += 1
      if (await failsStill(smaller)) smallest = smaller
      else at += size
    }
  }
  return smallest
}
