import type { z } from 'zod'
import { itemProblem } from '../../feeds/item-problem.ts'
import type { Context } from '../context.ts'
import { harmless } from '../words.ts'

/** The items of a page that are readable; of each other one it is said what is wrong with it. */
export function readRows<Item>(
  { terminal }: Context,
  shape: z.ZodType<Item>,
  items: readonly unknown[],
): Item[] {
  return items.flatMap((item) => {
    const parsed = shape.safeParse(item)
    if (parsed.success) return [parsed.data]
    terminal.complain(
      `an item is left out, it is not readable: ${harmless(itemProblem(parsed.error))}`,
    )
    return []
  })
}
