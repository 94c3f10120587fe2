/** Takes any bytes; throws only where it found a defect. */
export type Target = (data: Uint8Array) => void | Promise<void>

/** What every module of a target exports. */
export interface TargetModule {
  fuzz: Target
  /** Words that the grammar knows, beside those that stand in the source. */
  dictionary?: readonly string[]
}

/** The defect that a target names, as an error. */
function defect(what: string, about?: unknown): Error {
  const shown = about === undefined ? '' : `: ${JSON.stringify(about)?.slice(0, 400)}`
  return new Error(`${what}${shown}`)
}

export function assertThat(holds: boolean, what: string, about?: unknown): asserts holds {
  if (!holds) throw defect(what, about)
}
