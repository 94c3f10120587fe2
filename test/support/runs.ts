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

/**
 * The cases that are drawn are always the same, so that no change is refused for what it did not touch. With
 * TOCSIN_TEST_SEED, a number or `any`, they are others.
 */
export function seeded(): { seed?: number } {
  const asked = process.env['TOCSIN_TEST_SEED'] ?? '31'
  return asked === 'any' ? {} : { seed: Number(asked) }
}
