/** What a silence would have hidden, among the newest events. */
import { blankEvent, isKnownSeverity, severityRank, type ThreatEvent } from '../../event.ts'
import { allMatch } from '../../routing/router.ts'
import type { Silence } from '../../routing/silences.ts'
import { type LedgerRecord, readPayloads, scanRecords } from '../../store/records.ts'
import { type Asker, isHiddenRecord } from '../asker.ts'
import { isSilencedSink } from '../../operator/silences.ts'
import { eventUrl } from '../output/urls.ts'
import { toIso } from './event.ts'

/** Events that are looked at: some 100 ms. */
const recordsAtMost = 1_000

const examplesShown = 5

export interface Preview {
  matched: number
  /** Among so many, seen since then. */
  of: number
  since: string
  examples: { title: string; url: string; severity: string }[]
}

export async function previewSilence(asker: Asker, silence: Silence): Promise<Preview> {
  const { ledgers, nowMs, config } = asker
  const matched: LedgerRecord[] = []
  const concerned = config.sinks.filter((sink) => isSilencedSink(silence, sink))
  const sinks = new Set(concerned.map(({ name }) => name))
  let of = 0
  let sinceMs = nowMs
  const share = Math.max(50, Math.floor(recordsAtMost / Math.max(1, ledgers.length)))
  for (const ledger of ledgers) {
    const records: LedgerRecord[] = []
    for await (const record of scanRecords(ledger)) {
      if (isHiddenRecord(asker, record)) continue
      if (records.length === share) break
      records.push(record)
    }
    const payloads = await readPayloads(
      ledger,
      records.map(({ recordId }) => recordId),
    )
    of += records.length
    sinceMs = Math.min(sinceMs, ...records.map(({ firstSeenMs }) => firstSeenMs))
    matched.push(
      ...records.filter(
        (record, at) =>
          record.items.some(({ sink }) => sinks.has(sink)) &&
          isSilenced(silence, record, payloads[at]?.event),
      ),
    )
  }
  const examples = matched.slice(0, examplesShown).map((record) => ({
    title: record.title ?? record.uid,
    url: eventUrl(record),
    severity: record.severity,
  }))
  return { matched: matched.length, of, since: toIso(sinceMs), examples }
}

/** Of an event whose content is gone, what its record has. */
function isSilenced(
  { matchers, maxSeverity }: Silence,
  { account, type, severity, sightings, identifiers, tags }: LedgerRecord,
  event: ThreatEvent | undefined,
): boolean {
  if (!isKnownSeverity(severity) || severityRank(severity) > severityRank(maxSeverity)) return false
  const [sighting] = sightings
  const { feed = '', labels = {} } = sighting ?? {}
  const known = event ?? {
    ...blankEvent(type),
    identifiers: identifiers.map((name) => ({ id: 0, name })),
    tags: [...tags],
  }
  return allMatch(matchers, { account, feed, labels, event: { ...known, severity } })
}
