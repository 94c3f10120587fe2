import type { SandboxSettings } from '../options.ts'
import { createRandom } from '../random.ts'
import type { PageHabits } from './page.ts'

/** The habits that the settings ask for; by the same `seed` the same pages are short or empty. */
export function createPageHabits(settings: SandboxSettings, seed: number): PageHabits {
  const random = createRandom(seed)
  return {
    endMode: settings.endMode,
    placesOf(size) {
      if (random.chance(settings.emptyPages)) return 0
      return size > 1 && random.chance(settings.shortPages) ? random.int(1, size - 1) : size
    },
  }
}
