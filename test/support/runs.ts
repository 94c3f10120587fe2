/** How much a test that draws many cases tries: a little in `npm test`, all in `npm run test:faults`. */

/** Set by the project `faults` of vitest.config.ts. */
export const isLongRun = process.env['TOCSIN_LONG_RUNS'] === '1'

export function runs({ short, long }: { short: number; long: number }): number {
  return isLongRun ? long : short
}

/** Every case in `npm run test:faults`, and in `npm test` the given few of them. */
export function allOr<Case>(all: readonly Case[], few: readonly Case[]): readonly Case[] {
  return isLongRun ? all : few
}

/** The cases that `npm test` draws are always the same; `npm run test:faults` draws others each time. */
export function seeded(): { seed?: number } {
  return isLongRun ? {} : { seed: 31 }
}
