/** What is known of one event, and of the events of one message. */
import type { Config } from '../config/config.ts'
import { toDeliveryMember } from '../delivery/send/delivery-member.ts'
import { buildMemberOptions } from '../delivery/send/member-options.ts'
import { type EventWords, readWords } from '../messages/message.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { type QuarantineEntry, readQuarantined } from '../store/feed-state.ts'
import { readMessageAttempts } from '../store/pending-items.ts'
import {
  type Item,
  type LedgerRecord,
  type Payload,
  readPayload,
  readRecord,
} from '../store/records.ts'
import { type KnownWrite, readWrites } from '../store/history/service-writes.ts'
import { formatIsoTime } from './reports/columns.ts'
import { historyJson } from './item-words.ts'
import type { OpenLedgers } from './open-ledgers.ts'
import type { DestinationLabels } from './recipients.ts'

export interface KnownEvent {
  account: string
  uid: string | null
  record?: LedgerRecord | undefined
  /** undefined: the payload is past its retention. */
  message?: EventWords | undefined
  quarantined?: QuarantineEntry | undefined
  /** What commands did to it at the service, and who asked for it. */
  writes?: KnownWrite[]
}

export function knownJson(
  { account, uid, record, message, quarantined, writes = [] }: KnownEvent,
  labels: DestinationLabels,
): Record<string, unknown> {
  return {
    ...(record ? historyJson(record, labels) : { account, uid }),
    title: message?.title ?? null,
    facts: message?.facts.map(({ label, value }) => ({ label, value })) ?? [],
    link: message?.link ?? null,
    unverified_link: message?.unverifiedLink ?? null,
    quarantined: quarantined ? entryJson(quarantined) : null,
    ...(writes.length > 0 && {
      writes: writes.map(({ atMs, ...note }) => ({ at: formatIsoTime(atMs), ...note })),
    }),
  }
}

export function entryJson({
  id,
  feed,
  atMs,
  problem,
  raw,
}: QuarantineEntry): Record<string, unknown> {
  return { id, feed, at: formatIsoTime(atMs), problem, kept: raw }
}

export async function readKnownEvent(
  config: Config,
  store: OpenLedgers,
  ledger: AccountLedger,
  uid: string,
): Promise<KnownEvent> {
  const id = ledger.fingerprints.recordId(uid)
  const [stored, payload, quarantined, writes] = await Promise.all([
    readRecord(ledger, id),
    readPayload(ledger, id),
    readQuarantined(ledger, id),
    readWrites(ledger, uid),
  ])
  const record = stored && (await withAttempts(store, stored))
  const message = record && payload && renderRecordMessage(config, record, payload)
  return { account: ledger.account, uid, record, message, quarantined, writes }
}

export async function withAttempts(
  { ledgers }: OpenLedgers,
  record: LedgerRecord,
): Promise<LedgerRecord> {
  const items = record.items.map(async (item) => ({
    ...item,
    ...(item.state === 'batch' && (await readMessageAttempts(ledgers, item.messageId ?? ''))),
  }))
  return { ...record, items: await Promise.all(items) }
}

export function isKnown({ record, quarantined, writes = [] }: KnownEvent): boolean {
  return [record, quarantined, ...writes].some((one) => one !== undefined)
}

/**
 * Renders an event as its messages do, for an item as its sink has it, secrets masked; possible
 * only while its payload is retained.
 */
export function renderRecordMessage(
  config: Pick<Config, 'accounts' | 'messages' | 'route' | 'sinks' | 'http'>,
  { account, uid, sightings }: LedgerRecord,
  payload: Payload,
  item?: Item,
): EventWords | undefined {
  const { feed = '', labels = {} } = sightings[item?.sighting ?? 0] ?? {}
  const { severity = payload.event.severity, routes = [], raisedFrom } = item ?? {}
  const about = { id: '', uid, severity, routes, feed, labels, raisedFrom, payload }
  const member = toDeliveryMember({}, account, about, buildMemberOptions(config))
  const sink = config.sinks.find(({ name }) => name === item?.sink)
  const timeZone = sink && 'timeZone' in sink ? sink.timeZone : undefined
  return member && readWords(member, { timeZone })
}
