import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { messagesCsv } from '../../../src/page/output/csv.ts'
import type { ToldMessage } from '../../../src/page/questions/told.ts'

const message: ToldMessage = {
  id: `b${'0'.repeat(40)}`,
  at: '2026-11-26T09:12:00.000Z',
  account: 'main',
  sink: 'soc',
  recipient: 'soc',
  severity: 'high',
  title: 'Leaked credential: joe@acme[.]com',
  more: 0,
  events: 1,
  outcome: 'delivered',
  attempts: 1,
  delay_s: 4.2,
  url: '/events/main/0123456789abcdef01234567',
}

function rows(count: number): ToldMessage[] {
  return Array.from({ length: count }, () => message)
}

test('pages follow one another under one head', async () => {
  const asked: (string | undefined)[] = []
  const csv = await text(
    await messagesCsv((cursor) => {
      asked.push(cursor)
      const next = cursor === undefined ? 'second' : undefined
      return Promise.resolve({ messages: rows(2), cursor: next })
    }),
  )
  expect(asked).toEqual([undefined, 'second'])
  expect(csv.split('\r\n')).toHaveLength(1 + 4 + 1)
  expect(csv).toMatch(/^\uFEFF"at","account","sink","recipient"/u)
})

test('what is left out of a long period is said in the last line', async () => {
  const csv = await text(
    await messagesCsv(() => Promise.resolve({ messages: rows(1_000), cursor: 'more' })),
  )
  const lines = csv.trimEnd().split('\r\n')
  expect(lines).toHaveLength(1 + 10_000 + 1)
  expect(lines.at(-1)).toContain('more messages are left out')
})

test('a spreadsheet runs nothing of a title', async () => {
  const hostile = { ...message, title: '=cmd|"/C calc"!A0' }
  const csv = await text(
    await messagesCsv(() => Promise.resolve({ messages: [hostile], cursor: undefined })),
  )
  expect(csv).toContain(`"'=cmd|`)
})
