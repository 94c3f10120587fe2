/** The table of all operations of the API, from their rows. */
import { operations } from '../../src/upstream/resources/operations.ts'
import { code, table } from './markdown.ts'

export function operationBlocks(): [string, string][] {
  const rows = operations.map(
    ({ name, method, path, summary, tier = 'basic', changes, permission, onlyBy }) => [
      onlyBy === undefined ? code(name) : `${code(name)}, by ${code(onlyBy)}`,
      code(`${method} ${path}`),
      tier,
      [
        ...(changes ? ['writes'] : []),
        ...(permission === undefined ? [] : ['not every server']),
      ].join('; '),
      summary,
    ],
  )
  const titles = ['`tocsin api`', 'Request', 'Tier', '', 'Purpose']
  return [['operations', table(titles, rows)]]
}
