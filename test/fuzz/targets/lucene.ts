/** Queries of the sandbox: understood or refused by name, and any that is understood judges a document. */
import { parseInstant, filterMatcher, parseSearchBody } from '../../../src/sandbox/api/filters.ts'
import { LuceneError, luceneMatcher, parseLucene } from '../../../src/sandbox/api/lucene.ts'
import { textOf } from '../engine/bytes.ts'
import { assertThat } from '../engine/target.ts'

export const dictionary = [
  'AND',
  'OR',
  'NOT',
  '+(',
  '-f:',
  '[1 TO 2]',
  '{a TO *}',
  '~2',
  '^4',
  '*:*',
  '\\"',
]

const document = {
  text: 'Fresh logs for vpn.example.com\nanna77@example.com',
  fields: { type: ['chat_message'], 'data.price': ['150', '7.5'], at: ['2026-03-01T12:00:00'] },
}

export function fuzz(data: Uint8Array): void {
  const text = textOf(data)
  checkQuery(text)
  checkRange(text)
}

function checkQuery(text: string): void {
  try {
    const query = parseLucene(text)
    assertThat(typeof luceneMatcher(query)(document) === 'boolean', 'no judgement', text)
  } catch (error) {
    if (!(error instanceof LuceneError)) throw error
    assertThat(error.message.trim() !== '', 'refused without a word', text)
  }
}

/** What a filter takes is a time to it. */
function checkRange(text: string): void {
  const parsed = parseSearchBody({ filters: { estimated_created_at: { gte: text } } })
  if (!('body' in parsed)) return
  assertThat(!Number.isNaN(parseInstant(text)), 'a time that is none', text)
  filterMatcher(parsed.body.filters)
}
