import type { Context } from '../context.ts'
import { createPrinter, type Listing } from './listing.ts'
import type { ServiceOptions } from './service-command.ts'

export interface Change<Id, Row> {
  listing: Listing<Row>
  /** What happens to each, such as `disabled`. */
  done: string
  change: (id: Id) => Promise<Row>
}

/**
 * Changes one after the other and prints each as it is done. The first failure, or an interruption, ends
 * it; then it says what was done and what was not. Throws what `change` threw.
 */
export async function changeEach<Id extends string | number, Row>(
  context: Context,
  options: Pick<ServiceOptions, 'output'>,
  ids: readonly Id[],
  { listing, done, change }: Change<Id, Row>,
): Promise<void> {
  const printer = createPrinter(context, options.output, listing)
  const wanted = [...new Set(ids)]
  let count = 0
  const breakOff = (): void => {
    if (count > 0) printer.breakOff(null)
    if (wanted.length > 1) context.terminal.complain(howFar(wanted, count, done))
  }
  context.stop.addEventListener('abort', breakOff, { once: true })
  try {
    for (const id of wanted) {
      const changed = await change(id)
      if (context.stop.aborted) return
      printer.add([changed])
      count += 1
    }
    printer.end(null)
  } catch (error) {
    if (!context.stop.aborted) breakOff()
    throw error
  } finally {
    context.stop.removeEventListener('abort', breakOff)
  }
}

/** `disabled: 77, 78; stopped at: 79; not tried: 80`. */
function howFar(ids: readonly (string | number)[], count: number, done: string): string {
  const parts: [string, readonly (string | number)[]][] = [
    [done, ids.slice(0, count)],
    ['stopped at', ids.slice(count, count + 1)],
    ['not tried', ids.slice(count + 1)],
  ]
  return parts
    .filter(([, members]) => members.length > 0)
    .map(([words, members]) => `${words}: ${members.join(', ')}`)
    .join('; ')
}
