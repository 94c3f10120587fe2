import type { Context } from '../context.ts'
import { jsonText } from '../json-text.ts'
import { createPrinter, type Listing } from './listing.ts'
import type { ServiceOptions } from './service-command.ts'

/** One thing of the service: JSON as the service answered it, every other form as a listing has it. */
export function printOne<Row>(
  context: Context,
  { output }: Pick<ServiceOptions, 'output'>,
  listing: Listing<Row>,
  row: Row,
): void {
  if (output === 'json') {
    context.terminal.print(jsonText(listing.json(row), 2))
    return
  }
  const printer = createPrinter(context, output, listing)
  printer.add([row])
  printer.end(null)
}
