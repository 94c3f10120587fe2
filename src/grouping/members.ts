/** The members of groups and messages, as flushes and the suppression rules look at them. */
import { blankEvent, type ThreatEvent } from '../event.ts'
import type { SummaryPart } from '../messages/summary.ts'
import type { Verdict } from '../routing/suppression.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { type FoundItem, readItems } from '../store/records.ts'
import type { SuppressionInput, SuppressionRules } from './suppression-rules.ts'

/** A member without its payload: a message may cover a hundred thousand. */
export interface Member extends SummaryPart {
  account: string
  ref: string
  uid: string
  destination: string
  repeatRisks: number
  verdict: Verdict
}

const readChunk = 300

/**
 * Reads the members in the order of `refs`. Without `rules` (for frozen members) every verdict is
 * `send`.
 */
export async function readMembers(
  ledger: AccountLedger,
  refs: readonly string[],
  rules?: SuppressionRules,
): Promise<Member[]> {
  const members: Member[] = []
  for (let at = 0; at < refs.length; at += readChunk) {
    const found = await readItems(ledger, refs.slice(at, at + readChunk))
    const verdicts = rules ? await rules.decide(ledger, found.map(toSuppressionInput)) : []
    members.push(...found.map((item, i) => toMember(item, verdicts[i] ?? { act: 'send' })))
  }
  return members
}

/** What the rules look at; an item without its payload is known by its record alone. */
export function toSuppressionInput({ record, item, payload }: FoundItem): SuppressionInput {
  const sighting = record.sightings[item.sighting]
  return {
    recordId: record.recordId,
    sink: item.sink,
    routes: item.routes,
    event: {
      account: record.account,
      feed: sighting?.feed ?? '',
      labels: sighting?.labels ?? {},
      event: { ...(payload?.event ?? bareEvent(record)), severity: item.severity },
    },
    closed: record.closed,
  }
}

function toMember({ ref, record, item, payload }: FoundItem, verdict: Verdict): Member {
  return {
    account: record.account,
    ref,
    uid: record.uid,
    destination: item.destination,
    repeatRisks: item.repeatRisks,
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
  return { ...blankEvent(type), uid, source: uid.split('/')[1] ?? '', severity }
}
