/**
 * Searches for texts that keep a reader busy for longer than their length allows. Runs in a thread of
 * its own as well: in one with a large heap the collection of garbage is what grows.
 */
import { isMainThread, parentPort } from 'node:worker_threads'
import { canonicalJson } from '../../src/feeds/types/field-reader.ts'
import {
  maskIdentity,
  withhold,
  withholdIn,
  withholdTag,
  withoutMarks,
} from '../../src/masking/masking.ts'
import { signs } from '../../src/masking/signs.ts'
import { findTreatment } from '../../src/masking/secret-names.ts'
import { csvLine } from '../../src/messages/csv.ts'
import { cleanBlock, cleanLine, defang, refang } from '../../src/messages/sanitize.ts'
import { escapeHtml } from '../../src/sinks/email/mail-html.ts'
import { mrkdwnText } from '../../src/sinks/slack/slack-message.ts'
import { parseErrorBody, scrub } from '../../src/upstream/failures.ts'
import { parseTimestamp } from '../../src/upstream/timestamps.ts'
import { isLongRun } from '../support/runs.ts'

const length = isLongRun ? 20_000 : 5_000
/** Of the processor: 5 µs a character. A reader that needs more is given four times as much text. */
const enoughMs = length / 200
/** The square would be 16; passes that are repeated on long texts alone at most double what is linear. */
const mostGrowth = 12

/** Each says a piece of what some reader looks for, again and again, and never the end of it. */
const pieces = [
  ...Array.from('a.@:/<`[|=;\'" \t\n#%&-,?(*1é👍。\u0301\u200B\uD83D)}]…!'),
  ...`a.¦a@¦a@b:¦a:¦//¦://¦tel:¦ms-¦ms-a¦\\\\¦\\\\a¦//a¦//a/¦http://a:¦a:b\n¦a:b:¦a b¦a,¦a;b:¦<mark `.split(
    '¦',
  ),
  ...`</mark>¦**a¦[a](¦| a ¦- ¦;=¦;'¦\r\n¦a\u0301¦1.¦1.1¦password:¦password ¦cookie:¦authorization: `.split(
    '¦',
  ),
  ...`Bearer ¦eyJ¦fw_¦{"a":¦www.¦xn--¦--¦&amp;¦<!channel>¦a:1¦\`\`¦\n\n¦\u2028¦=?utf-8?`.split('¦'),
  ...`password: |\n  ¦password="""¦{"name":"password"¦- name: password\n¦4111 ¦admin/a1¦pin=¦?pin=a`.split(
    '¦',
  ),
  ...`login a ¦mysql ¦abandon ¦is ¦%4¦/a¦a!1¦A1b¦[a¦key ¦密码`.split('¦'),
]

/** What stands before the pieces, and behind them. */
export const frames = [
  ['', ''],
  ['', '@example.com:x!'],
  ['token=', 'x'],
] as const

export const readers: Record<string, (text: string) => unknown> = {
  ...Object.fromEntries(signs.map(({ name, test }) => [`the sign "${name}"`, test])),
  'what a text may hold': withhold,
  'what a tag may hold': withholdTag,
  'masks of an identity': maskIdentity,
  'mark tags': withoutMarks,
  'masks of a detail': (text) => withholdIn({ [text]: text }),
  'names of secret fields': (text) => findTreatment(text),
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
}

export function explosiveTexts(
  read: (text: string) => unknown,
  { from = pieces, measure = cpuMs } = {},
): string[] {
  const found: string[] = []
  for (const piece of from) {
    for (const [start, end] of frames) {
      const ofLength = (most: number): string =>
        `${start}${piece.repeat(Math.ceil(most / piece.length))}${end}`
      const least = (size: number): number =>
        Math.min(...[1, 2].map(() => measure(read, ofLength(size))))
      const grows = (): boolean =>
        least(4 * length) > mostGrowth * Math.max(least(length), enoughMs)
      // again and again: a machine that is slow for seconds makes one measurement three times as long,
      // and what grows with the square does so each time
      if (measure(read, ofLength(length)) >= enoughMs && [1, 2, 3, 4].every(grows))
        found.push(`${start}${JSON.stringify(piece)} and ${JSON.stringify(end)}`)
    }
  }
  return found
}

/** Time of this thread on the processor: what else the machine does is not counted. */
export function cpuMs(read: (text: string) => unknown, text: string): number {
  const before = process.threadCpuUsage()
  read(text)
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

if (!isMainThread)
  parentPort?.on('message', (name: string) =>
    parentPort?.postMessage(explosiveTexts(readers[name] ?? (() => undefined))),
  )
