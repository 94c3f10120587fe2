/** One wrong thing that somebody or something may hand to Tocsin. */
export interface BadInput<Content = string> {
  name: string
  content: Content
}

/** Of each part: what was tried, and by name what went wrong. */
export interface Tally {
  tried: number
  /** After it the process was gone, hung, or no longer did its work. */
  crashed: string[]
  /** It was refused without a place or a remedy, or with a stack. */
  unclear: string[]
}

export function emptyTally(): Tally {
  return { tried: 0, crashed: [], unclear: [] }
}

export function sumOf(tallies: readonly Tally[]): Tally {
  return {
    tried: tallies.reduce((sum, { tried }) => sum + tried, 0),
    crashed: tallies.flatMap(({ crashed }) => crashed),
    unclear: tallies.flatMap(({ unclear }) => unclear),
  }
}
