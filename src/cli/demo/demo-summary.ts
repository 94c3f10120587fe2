/** What a message about several events says of itself, read as a person reads it. */
import { refang } from '../../messages/defang.ts'
import type { SummaryKind } from '../../messages/summary.ts'

/** `single`: one event; `batch`: several to a machine, each in full. */
export type MessageForm = SummaryKind | 'single' | 'batch'

export interface ReadSummary {
  form: SummaryKind
  /** How many it stands for. */
  events: number
  /** The word of its gravest events, in lower case; '' where it names none. */
  severity: string
}

const tag = String.raw`^(?:\[\d+ (?<severity>[^\s,\]]+)[^\]]*\] )?`

/** As messages/summary-words.ts has them. */
const forms: readonly [SummaryKind, RegExp][] = [
  [
    'digest',
    /^Digest .*?: (?:\d[^;]* already sent[^;]*?, )?(?:nothing (?:else )?new|(?<count>\d+) (?:new )?events?\b(?: \(\d+ (?<severity>[^\s,)]+))?)/,
  ],
  ['group', new RegExp(String.raw`${tag}(?<count>\d+) new events?\b`)],
  ['backlog', new RegExp(String.raw`${tag}Backlog(?: of feed \S+)?: (?<count>\d+) events?\b`)],
  ['held', new RegExp(String.raw`${tag}(?<count>\d+) held events?\b`)],
  ['storm', new RegExp(String.raw`${tag}(?<count>\d+) events? at once\b`)],
]

/** Of the line that heads it: a Slack message's text, a mail's subject. undefined: it is no summary's. */
export function readSummary(said: string): ReadSummary | undefined {
  for (const [form, pattern] of forms) {
    const { groups } = pattern.exec(said) ?? {}
    if (!groups) continue
    const { count = '0', severity = '' } = groups
    return { form, events: Number(count), severity: severity.toLowerCase() }
  }
  return undefined
}

/**
 * Uids of the events in an attached table, which holds all of a message; undefined where none is
 * attached that can be read as it is (a compressed one cannot).
 */
export function uidsInTable(
  attachments: readonly { name: string; content: string }[],
): string[] | undefined {
  const table = attachments.find(({ name }) => name.endsWith('.csv'))
  if (!table) return undefined
  const rows = table.content.split('\r\n').slice(1)
  const uids = rows.flatMap((row) => /^"[^"]*","[^"]*","([^"]+)"/.exec(row)?.[1] ?? [])
  return uids.map(refang)
}
