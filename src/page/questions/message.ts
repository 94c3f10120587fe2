/** One message: what it said, how it was sent, and the events that it told of. */
import { z } from 'zod'
import { severityRank } from '../../event.ts'
import { renderRecordMessage, withAttempts } from '../../operator/event.ts'
import { type Delivered, findMessage } from '../../store/deliveries.ts'
import { itemStates, stateOf } from '../../store/item-states.ts'
import { deliveryId, readPayload } from '../../store/records.ts'
import { type Asker, requireLedger } from '../asker.ts'
import { PageError } from '../page-error.ts'
import { question } from '../question.ts'
import { eventUrl, itemAddress } from '../urls.ts'
import type { MessageData } from '../view-data.ts'
import { attemptsOf, toIso } from './event.ts'

export type MessageAnswer = Omit<MessageData, 'acts'> & {
  /** What may be sent again. */
  items: string[]
}

/** Of a message of more the worst are shown; of one of many more, those among so many that are read. */
const [shownAtMost, readAtMost] = [100, 1_000]

export const messageQuestion = question({
  path: '/messages/:id',
  summary: 'a message of several events: attempts, what it said, its events',
  query: z.object({
    id: z
      .string()
      .regex(/^b[0-9a-f]{40}$/)
      .describe('As messages show it: b…'),
    at: z.coerce.number().int().positive().optional().describe('About when it was sent, ms.'),
  }),
  async ask(asker, { id, at }): Promise<MessageAnswer> {
    const found: Delivered[] = []
    for await (const one of findMessage(asker.ledgers, id, at)) {
      found.push(one)
      if (found.length === readAtMost) break
    }
    const sorted = found.toSorted(
      (one, other) => severityRank(other.item.severity) - severityRank(one.item.severity),
    )
    const [worst] = sorted
    if (worst) return describeMessage(asker, id, sorted)
    throw new PageError(
      'not_found',
      'the ledger knows no message of this id: its history has expired',
    )
  },
})

async function describeMessage(
  asker: Asker,
  id: string,
  found: readonly Delivered[],
): Promise<MessageAnswer> {
  const [worst] = found
  // what was sent again since has other attempts
  const first = found.find((one) => deliveryId(one.item) === id) ?? worst
  if (!worst || !first) throw new Error('a message has an event')
  const record = await withAttempts(asker.store, first.record)
  const item = record.items[first.item.index] ?? first.item
  const shown = found.slice(0, shownAtMost)
  return {
    id,
    at: toIso(first.ending?.atMs ?? item.createdAtMs),
    sink: item.sink,
    recipient: asker.labels.get(item.destination) ?? item.destination,
    outcome: first.ending?.outcome ?? stateOf(item),
    outcome_text: itemStates[first.ending?.outcome ?? stateOf(item)],
    severity: worst.item.severity,
    attempts: attemptsOf(item),
    as_sent: await renderAsSent(asker, found),
    total: found.length,
    events: shown.map((one) => ({
      url: eventUrl(one.record),
      title: one.record.title ?? null,
      uid: one.record.uid,
      type: one.record.type,
      severity: one.item.severity,
      account: one.record.account,
      state: stateOf(one.item),
      state_text: itemStates[stateOf(one.item)],
    })),
    items: shown.map((one) => itemAddress(one.record, one.item)),
  }
}

/** Titles and facts as its messages had them; null: nothing of it is kept any more. */
async function renderAsSent(
  { config, ledgers }: Asker,
  found: readonly Delivered[],
): Promise<MessageData['as_sent']> {
  const said = []
  for (const { record, item } of found.slice(0, 20)) {
    const ledger = requireLedger({ ledgers }, record.account)
    const payload = await readPayload(ledger, record.recordId)
    const message = payload && renderRecordMessage(config, record, payload, item)
    if (message) said.push(message)
  }
  const [first] = said
  if (!first) return null
  const lines = said.flatMap(({ title, facts, extract }) => [
    title,
    ...facts.map(({ label, value }) => `  ${label}: ${value}`),
    ...(extract ? [`  ${extract.label}: ${extract.text}`] : []),
  ])
  const more = found.length - said.length
  return {
    headline: found.length === 1 ? first.title : `${found.length} events`,
    lines: more > 0 ? [...lines, `… and ${more} more`] : lines,
  }
}
