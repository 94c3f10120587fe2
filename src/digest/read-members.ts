/** The members of a collection, judged and counted: what a turn makes its message of. */
import { readItems, type FoundItem } from '../ledger/records.ts'
import type { Book } from '../ledger/book.ts'
import type { ThreatEvent } from '../events/threat-event.ts'
import type { SummaryPart } from '../messages/summarise.ts'
import type { Gate, Judged, Verdict } from './gate.ts'

/** A member without its payload: a message may stand for a hundred thousand. */
export interface Member extends SummaryPart {
  account: string
  ref: string
  uid: string
  destination: string
  repeatRisks: number
  /** When the item was made, ms; `createdAtMs` is the event's. */
  madeAtMs: number
  verdict: Verdict
}

const readChunk = 300

/** Members in the order of `refs`; with no gate (they are sealed already) all go. */
export async function readMembers(
  book: Book,
  refs: readonly string[],
  gate?: Gate,
): Promise<Member[]> {
  const members: Member[] = []
  for (let at = 0; at < refs.length; at += readChunk) {
    const found = await readItems(book, refs.slice(at, at + readChunk))
    const verdicts = gate ? await gate.judge(book, found.map(judgedOf)) : []
    members.push(...found.map((item, i) => memberOf(item, verdicts[i] ?? { act: 'send' })))
  }
  return members
}

/** What the rules look at; an item without its payload is known by its record alone. */
export function judgedOf({ record, item, payload }: FoundItem): Judged {
  const sighting = record.sightings[item.sighting]
  return {
    recordId: record.recordId,
    sink: item.sink,
    routes: item.routes,
    feed: sighting?.feed ?? '',
    labels: sighting?.labels ?? {},
    event: { ...(payload?.event ?? bareEvent(record)), severity: item.severity },
    closed: record.closed,
  }
}

function memberOf({ ref, record, item, payload }: FoundItem, verdict: Verdict): Member {
  return {
    account: record.account,
    ref,
    uid: record.uid,
    destination: item.destination,
    repeatRisks: item.repeatRisks,
    madeAtMs: item.createdAtMs,
    verdict,
    severity: item.severity,
    type: record.type,
    feed: record.sightings[item.sighting]?.feed ?? '',
    identifiers: payload?.event.identifiers.map(({ name }) => name) ?? [],
    fetchedAtMs: payload?.fetchedAtMs ?? item.createdAtMs,
    createdAtMs: payload?.event.createdAtMs ?? null,
  }
}

function bareEvent({ uid, type, severity }: FoundItem['record']): ThreatEvent {
  return {
    uid,
    kind: 'event',
    type,
    source: uid.split('/')[1] ?? '',
    severity,
    originalSeverity: null,
    createdAtMs: null,
    matchedAtMs: null,
    ignoredAtMs: null,
    remediatedAtMs: null,
    url: null,
    tags: [],
    notes: null,
    identifiers: [],
    highlights: {},
  }
}
