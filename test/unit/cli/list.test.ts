/** What lists show: the worst first. */
import { expect, test } from 'vitest'
import type { Context } from '../../../src/cli/context.ts'
import { type ListOptions, printList } from '../../../src/cli/list.ts'
import type { Problem } from '../../../src/operator/alerts/troubles.ts'

const problems: Problem[] = [
  {
    kind: 'feed-stalled',
    check: 'feed',
    subject: 't3',
    status: 'warning',
    detail: 'lag 1 h',
    remedy: 'look',
  },
  {
    kind: 'feed-paused',
    check: 'feed',
    subject: 't7',
    status: 'problem',
    detail: 'paused',
    remedy: 'resume',
    stops: true,
  },
  {
    kind: 'dead-letters',
    check: 'delivery',
    subject: 't1',
    status: 'problem',
    detail: 'of a sink',
    remedy: 'none',
  },
]

function printed(
  count: number,
  options: Partial<ListOptions>,
  name?: string,
  found: readonly Problem[] = problems,
): string {
  let text = ''
  const terminal = {
    print: (line: string) => (text += line),
    paint: (_style: string, words: string) => words,
  }
  printList<{ id: string; more: object }>(
    { terminal } as unknown as Context,
    { output: 'text', ...options },
    name,
    {
      thing: 'feed',
      rows: Array.from({ length: count }, (_one, n) => {
        const row = { id: `t${n}`, more: { size: n } }
        const own = found.filter(({ check, subject }) => check === 'feed' && subject === row.id)
        return { name: row.id, row, problems: own.map(({ check: _c, subject: _s, ...one }) => one) }
      }),
      columns: [
        { key: 'feed', title: 'FEED', json: ({ id }) => id },
        { key: 'more', json: ({ more }) => more },
      ],
      daemon: found.filter(({ check }) => check === 'daemon'),
    },
  )
  return text
}

test('people get all of them, the worst first', () => {
  const lines = printed(300, {}).split('\n')
  expect(lines).toHaveLength(303)
  expect(lines.filter((_line, at) => at % 2 === 1).slice(0, 2)).toEqual(['t7', 't3'])
})

test('programs get all of them, in their own order, by the same fields', () => {
  const all = JSON.parse(printed(300, { output: 'json' })) as { feed: string }[]
  expect(all.map(({ feed }) => feed)).toEqual(Array.from({ length: 300 }, (_one, n) => `t${n}`))
  expect(all[7]).toEqual({
    feed: 't7',
    more: { size: 7 },
    problems: [
      {
        kind: 'feed-paused',
        status: 'problem',
        detail: 'paused',
        remedy: 'resume',
        stops: true,
      },
    ],
  })
})
