/** `sinks list`: whether each sink takes messages, what waits for it, and what is wrong with it. */
import { sinkColumns } from '../../operator/reports/sink-report.ts'
import type { Context } from '../context.ts'
import { type ListOptions, printList, readListed } from '../list.ts'

export async function listSinks(
  context: Context,
  name: string | undefined,
  options: ListOptions,
): Promise<void> {
  const { sinks, problems } = await readListed(context, options)
  printList(context, options, name, {
    thing: 'sink',
    rows: sinks,
    nameOf: (sink) => sink.name,
    columns: sinkColumns,
    problems,
  })
}
