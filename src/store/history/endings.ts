/**
 * Endings: what was told, to whom, and what was not told, newest first. One stream for each
 * account. The step that ends items writes it (`move()` of lib/ledger.lua): one entry for all items
 * of one script run that share message, destination, outcome, reason and rule. Each item that was
 * sent singly has one of its own: each was a message. A message whose members are settled in
 * several runs, or are in several accounts, has several entries, of which a list (ending-list.ts)
 * makes one. An item that is sent again and delivered again has two.
 *
 * Retention drops what is older than the history, or than the oldest records that it left.
 */
import { noSeverity, type Severity, severities } from '../../event.ts'
import type { AccountLedger } from '../account-ledger.ts'
import { type Outcome, sinkOfDestination } from './dated-counts.ts'

export interface EndedItem {
  account: string
  recordId: string
  index: number
  /** When it ended so; it may have been sent again since, and have ended anew. */
  atMs: number
}

export interface Ending {
  /** Of its newest entry: the account, the id in its stream, and when, ms. */
  account: string
  id: string
  atMs: number
  /** What an operator gave up is `dead`. */
  outcome: Outcome
  destination: string
  sink: string
  /** The worst of its items. */
  severity: Severity
  /** The first is one of the worst. */
  items: EndedItem[]
  /** Id of the frozen message that carried them, `b…`; undefined: sent singly, or not at all. */
  messageId: string | undefined
  /** Of a dead letter its last error, else the kind of the rule. */
  reason: string | undefined
  /** The rule, or who asked for it. */
  rule: string | undefined
  attempts: number
  /** From visible to told, ms: the longest of its worst items. undefined: not told, or not for the first time. */
  toldAfterMs: number | undefined
  /** All of it is what Tocsin itself tells; counts leave it out. */
  isOwn: boolean
}

export type Stream = Pick<AccountLedger, 'account' | 'redis' | 'key'>

/** The place of an entry among those of all accounts: by time, of one time by account, the newest first. */
export interface Place {
  atMs: number
  /** The rest of its id. */
  sequence: number
  account: string
}

/** An entry as it is read; its items are parsed when they are shown. */
export interface Entry extends Omit<Ending, 'items'>, Place {
  items: { account: string; atMs: number; text: string }[]
  /** Others of its message may be in other entries. */
  isPart: boolean
}

/** Both inclusive, ms. */
export interface Span {
  fromMs?: number | undefined
  toMs?: number | undefined
}

export interface PageOptions extends Span {
  /** The id of an entry: what is older is read. */
  before?: string | undefined
  count: number
}

/** Reads entries of one account, newest first. */
export async function readEntries(ledger: Stream, options: PageOptions): Promise<Entry[]> {
  return (await readTexts(ledger, options)).map((text) => parseEntry(ledger, text))
}

/** Finds the entries of a message among the next ones, and the id of the last that was looked at, if there are more. */
export async function searchEndings(
  ledger: Stream,
  messageId: string,
  options: PageOptions,
): Promise<{ found: Ending[]; next: string | undefined }> {
  const texts = await readTexts(ledger, options)
  const likely = texts.filter(([, [, text = '']]) => text.includes(messageId.slice(1)))
  const found = likely.map((text) => toEnding(parseEntry(ledger, text)))
  const next = texts.length < options.count ? undefined : texts.at(-1)?.[0]
  return { found: found.filter((one) => one.messageId === messageId), next }
}

type EntryText = [id: string, fields: string[]]

async function readTexts(
  ledger: Stream,
  { fromMs = 0, toMs, before, count }: PageOptions,
): Promise<EntryText[]> {
  const newest = before === undefined ? (toMs ?? '+') : `(${before}`
  const oldest = Math.max(0, fromMs)
  return ledger.redis.xrevrange(ledger.key('ended'), newest, oldest, 'COUNT', count)
}

/**
 * The one field of an entry; the script leaves out what is empty at the end. A severity is a rank or, of no
 * known one, its word; items are `<record>.<index>`; flags are `o` own and `p` part.
 */
type StoredEnding = [
  outcome: string,
  destination: string,
  severity: number | string,
  items: string,
  toldAfterMs: number | '',
  attempts: number,
  flags?: string,
  message?: string,
  reason?: string,
  rule?: string,
]

const outcomes: Readonly<Record<string, Outcome>> = {
  d: 'delivered',
  x: 'dead',
  s: 'suppressed',
  v: 'diverted',
}

function parseEntry({ account }: Pick<Stream, 'account'>, [id, [, text = '']]: EntryText): Entry {
  const [outcome, destination, severity, items, toldAfterMs, attempts, ...rest] = JSON.parse(
    text,
  ) as StoredEnding
  const [flags = '', message = '', reason = '', rule = ''] = rest
  const [atMs, sequence] = id.split('-')
  return {
    account,
    id,
    atMs: Number(atMs),
    sequence: Number(sequence),
    outcome: outcomes[outcome] ?? 'delivered',
    destination,
    sink: sinkOfDestination(destination),
    severity: typeof severity === 'number' ? (severities[severity - 1] ?? noSeverity) : severity,
    items: [{ account, atMs: Number(atMs), text: items }],
    messageId: message === '' ? undefined : `b${message}`,
    reason: reason || undefined,
    rule: rule || undefined,
    attempts,
    toldAfterMs: toldAfterMs === '' ? undefined : toldAfterMs,
    isOwn: flags.includes('o'),
    isPart: flags.includes('p'),
  }
}

export function toEnding({ items, isPart: _part, sequence: _sequence, ...entry }: Entry): Ending {
  const parsed = items.flatMap(({ account, atMs, text }) =>
    text.split(' ').map((item) => {
      const [recordId = '', index] = item.split('.')
      return { account, recordId, index: Number(index), atMs }
    }),
  )
  return { ...entry, items: parsed }
}
