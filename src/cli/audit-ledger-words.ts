/** What a look at the ledger itself found, in words and in JSON. */
import { pendingOf, type FeedAccount, type SinkAccount } from '../ledger/accounting.ts'
import {
  isWhole,
  type BookProof,
  type DanglingRef,
  type Lack,
  type StrandedItem,
} from '../proof/ledger-proof.ts'
import type { Terminal } from './terminal.ts'
import { counted, harmless, isoTime, timeInWords } from './words.ts'

/** Named in lines for people; JSON has all of them. */
const shownFindings = 50

export function ledgerJson(proof: BookProof): Record<string, unknown> {
  const { account, atMs, records, unfiled, accounting, stranded, dangling, hasMore } = proof
  return {
    ledger: account,
    whole: isWhole(proof),
    at: isoTime(atMs),
    records,
    ...(unfiled !== 0 && { unfiled }),
    feeds: Object.entries(accounting.feeds).map(([feed, counts]) => ({ feed, ...counts })),
    sinks: Object.entries(accounting.sinks).map(([sink, counts]) => ({
      sink,
      ...counts,
      pending_in_records: foundOf(proof, sink, counts),
    })),
    stranded: stranded.map(({ heldFor, ...item }) => ({ ...item, held_for: heldFor ?? null })),
    dangling,
    has_more: hasMore,
  }
}

function foundOf({ differences }: BookProof, sink: string, account: SinkAccount): number {
  return differences.find((one) => one.sink === sink)?.found ?? pendingOf(account)
}

export function ledgerLines(terminal: Terminal, proof: BookProof): string[] {
  const { account, atMs, records, accounting, stranded, dangling } = proof
  const verdict = isWhole(proof)
    ? terminal.paint('green', 'all of it adds up')
    : terminal.paint('red', 'it does not add up')
  const head = terminal.paint('bold', `ledger of ${account}`)
  return [
    `${head}: ${counted(records, 'record')} as of ${timeInWords(atMs)}, ${verdict}`,
    ...Object.entries(accounting.feeds).map(([feed, counts]) => feedLine(feed, counts)),
    ...Object.entries(accounting.sinks).map(([sink, counts]) => sinkLine(proof, sink, counts)),
    ...unfiledLines(proof),
    ...stranded.slice(0, shownFindings).map(strandedLine),
    ...more(stranded.length),
    ...dangling.slice(0, shownFindings).map(danglingLine),
    ...more(dangling.length),
    ...remedyLines(proof),
  ]
}

function feedLine(feed: string, counts: FeedAccount): string {
  const { fetched, new: fresh, duplicate, quarantined, baseline, unaccounted } = counts
  const sum = `${fresh} new + ${duplicate} duplicate + ${quarantined} quarantined + ${baseline} baseline`
  return `  feed ${harmless(feed)}: ${fetched} fetched = ${sum}${offWords(unaccounted)}`
}

function sinkLine(proof: BookProof, sink: string, counts: SinkAccount): string {
  const { created, replayed, delivered, dead, suppressed, diverted, unaccounted } = counts
  const pending = pendingOf(counts)
  const found = foundOf(proof, sink, counts)
  const ended = `${delivered} delivered + ${dead} dead + ${suppressed} suppressed + ${diverted} diverted`
  const scan = found === pending ? 'the records agree' : `the records have ${found} pending`
  return `  sink ${harmless(sink)}: ${created} created + ${replayed} replayed = ${ended} + ${pending} pending${offWords(unaccounted)}; ${scan}`
}

function offWords(unaccounted: number): string {
  return unaccounted === 0 ? '' : `, ${unaccounted} unaccounted for`
}

function unfiledLines({ unfiled }: BookProof): string[] {
  if (unfiled === 0) return []
  const what = unfiled > 0 ? 'that were made are not in it' : 'are in it that nobody made'
  return [`  the index of records: ${counted(Math.abs(unfiled), 'record')} ${what}`]
}

const lackWords: Record<Lack, string> = {
  due: 'nothing says when it is due',
  orphans: 'nothing would take it back with its sink',
  collection: 'it is not in its collection',
  timer: 'its collection has no timer',
  message: 'its sealed message is gone',
  message_due: 'nothing says when its sealed message is due',
}

function strandedLine({ uid, sink, state, lacks }: StrandedItem): string {
  return `  stranded  ${harmless(uid)} for ${harmless(sink)}, ${state}: ${lackWords[lacks]}`
}

const placeWords: Record<DanglingRef['place'], string> = {
  due: 'what is due',
  timers: 'the timers',
  orphans: 'what waits for a removed sink',
  dead: 'the dead letters',
  collect: 'a collection',
  records: 'the index of records',
}

const whyWords: Record<DanglingRef['why'], string> = {
  gone: 'what it names is gone',
  other_state: 'what it names does not belong there',
  unfiled: 'the record that it names is not in the index',
}

function danglingLine({ ref, place, why }: DanglingRef): string {
  return `  dangling  ${harmless(ref)}, among ${placeWords[place]}: ${whyWords[why]}`
}

function more(count: number): string[] {
  return count > shownFindings ? [`  … and ${count - shownFindings} more: --output json`] : []
}

/** What `sinks move` and `sinks discard` take. */
const movable = ['queued', 'held', 'group', 'digest', 'retrying']

function remedyLines(proof: BookProof): string[] {
  if (isWhole(proof)) return []
  const waiting = proof.stranded.filter(({ state }) => movable.includes(state))
  const sinks = [...new Set(waiting.map(({ sink }) => harmless(sink)))]
  return [
    ...sinks.map(
      (sink) =>
        `  all that waits for ${sink}, not only this, can be sent elsewhere: tocsin sinks move ${sink} --to <sink>; or given up: tocsin sinks discard ${sink}`,
    ),
    '  somebody changed the ledger, or Tocsin has a defect: keep the log and a copy of Redis, and report it',
  ]
}
