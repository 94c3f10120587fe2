/** Cleaned text moves, hides and links nothing, and cleaning it again changes nothing. */
import {
  cleanBlock,
  cleanLine,
  cutWithCount,
  cutText,
  defang,
  sanitizeLine,
} from '../../../src/messages/sanitize.ts'
import { escapeWithin, mrkdwnText, plainText } from '../../../src/sinks/slack/slack-message.ts'
import { linkable, unseenCharacters } from '../../unit/messages/any-unicode.ts'
import { bytesOf } from '../engine/bytes.ts'
import { assertThat } from '../engine/target.ts'

export const dictionary = [
  'https://',
  'www.',
  '.com',
  'hxxp://',
  '[.]',
  '10.0.0.1',
  '<!channel>',
  '&lt;',
  'tel:',
  'ms-word:',
  '\\\\host\\',
  '//host/',
  ':joy:',
]

export function fuzz(data: Uint8Array): void {
  const bytes = bytesOf(data)
  const most = 1 + bytes.byte() * 4
  const text = bytes.text()
  checkLine(text, most)
  checkSlack(text, most)
  const cut = [cutText(text, most), cutWithCount(text, most)]
  assertThat(
    cut.every((one) => Array.from(one).length <= most),
    'cut too long',
    { text, most },
  )
}

function checkLine(text: string, most: number): void {
  const line = cleanLine(text, most)
  assertThat(!unseenCharacters.test(line), 'hides something', { text, line })
  assertThat(!/[\r\n]/.test(line) && line.isWellFormed(), 'not one line', { text, line })
  assertThat(cleanLine(line, most) === line, 'not clean yet', { text, line })
  assertThat(Array.from(line).length <= most, 'too long', { text, line })
  const block = cleanBlock(text, most)
  assertThat(!unseenCharacters.test(block.replaceAll('\n', '')), 'hides something', { text, block })
  const whole = sanitizeLine(text, Infinity)
  assertThat(!linkable.test(whole), 'links', { text, whole })
  assertThat(defang(whole) === whole, 'not defanged yet', { text, whole })
  assertThat(!linkable.test(sanitizeLine(text, most)), 'links once cut', { text, most })
}

function checkSlack(text: string, most: number): void {
  const shown = [escapeWithin(text, most), mrkdwnText(text, most), plainText(text, most).text]
  for (const one of shown) {
    assertThat(!/[<>]|&(?!amp;|lt;|gt;)/.test(one), 'markup for Slack', { text, one })
    assertThat(one.length <= most, 'too long for Slack', { text, one, most })
  }
}
