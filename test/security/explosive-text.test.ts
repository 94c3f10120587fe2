/**
 * Whatever reads text that others wrote takes time that grows with its length, and not with its square:
 * meanwhile the whole daemon stands still.
 */
import { expect, test } from 'vitest'
import { plainText } from '../../src/cli/query/reports/plain-text.ts'
import { revealed } from '../../src/cli/query/revealed.ts'
import { canonicalJson } from '../../src/feeds/canonical-json.ts'
import {
  maskDetail,
  maskIdentity,
  maskTag,
  maskText,
  withoutMarks,
} from '../../src/feeds/masking.ts'
import { treatmentOf } from '../../src/feeds/secret-names.ts'
import { cleanBlock, cleanLine } from '../../src/messages/clean-text.ts'
import { csvLine } from '../../src/messages/csv.ts'
import { defang, refang } from '../../src/messages/defang.ts'
import { escapeHtml } from '../../src/sinks/email/escape-html.ts'
import { mrkdwnText } from '../../src/sinks/slack/slack-text.ts'
import { parseTimestamp } from '../../src/service/timestamps.ts'
import { parseErrorBody } from '../../src/service/transport/error-body.ts'
import { scrub } from '../../src/service/transport/scrub.ts'

const length = 20_000
/** A hundred times what the slowest needs; a square of the length takes longer. */
const enoughMs = 500

/** Each says a piece of what some reader looks for, again and again, and never the end of it. */
const pieces = [
  ...Array.from('a.@:/<`[|=;\'" \t\n#%&-,?(*1é👍。\u0301\u200B\uD83D'),
  'a.',
  'a@',
  'a@b:',
  'a:',
  '//',
  '://',
  'http://a:',
  'a:b\n',
  'a:b:',
  'a b',
  'a,',
  'a;b:',
  '<mark ',
  '</mark>',
  '**a',
  '[a](',
  '| a ',
  '- ',
  ';=',
  ";'",
  '\r\n',
  'a\u0301',
  '1.',
  '1.1',
  'password:',
  'password ',
  'cookie:',
  'authorization: ',
  'Bearer ',
  'eyJ',
  'fw_',
  '{"a":',
  'www.',
  'xn--',
  '--',
  '&amp;',
  '<!channel>',
  'a:1',
  '``',
  '\n\n',
  '\u2028',
  '=?utf-8?',
]

const readers: Record<string, (text: string) => unknown> = {
  'masks of text': (text) => maskText(text),
  'masks of a dump': (text) => maskText(text, true),
  'masks of logins': maskTag,
  'masks of an identity': maskIdentity,
  'mark tags': withoutMarks,
  'masks of a detail': (text) => maskDetail({ [text]: text }),
  'names of secret fields': (text) => treatmentOf(text),
  'one line': (text) => cleanLine(text, 300),
  'a block': (text) => cleanBlock(text, 600),
  links: defang,
  'links back': refang,
  'cells of a table': (text) => csvLine([text]),
  HTML: escapeHtml,
  mrkdwn: (text) => mrkdwnText(text, 3_000),
  'secrets in an error': (text) => scrub(text, ['Zanzibar']),
  'an error': (text) => parseErrorBody(text, ['Zanzibar']),
  'a time': parseTimestamp,
  'canonical JSON': (text) => canonicalJson({ [text]: text }),
  'a report': (text) => plainText(text, { width: 96, strong: (words) => words }),
  'a revealed secret': revealed,
}

test.each(Object.entries(readers))('no text keeps the reader of %s busy', (_name, read) => {
  const slow: string[] = []
  for (const piece of pieces) {
    const text = piece.repeat(Math.ceil(length / piece.length))
    for (const end of ['', '@example.com:x!']) {
      const startedMs = performance.now()
      read(`${text}${end}`)
      const tookMs = performance.now() - startedMs
      if (tookMs > enoughMs) slow.push(`${JSON.stringify(piece)} and ${JSON.stringify(end)}`)
    }
  }
  expect(slow).toEqual([])
})
