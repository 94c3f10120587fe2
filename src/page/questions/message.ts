/** One message: what it said, how it was sent, and the events that it told of. */
import { z } from 'zod'
import { severityRank } from '../../event.ts'
import { pluralize } from '../../lib/errors.ts'
import { withAttempts } from '../../operator/event.ts'
import { drawMessage, type Undrawn } from '../../operator/message-text.ts'
import { type Delivered, findMessage } from '../../store/deliveries.ts'
import { itemStates, stateOf } from '../../store/item-states.ts'
import { deliveryId, deliveryIdPattern, readRecord } from '../../store/records.ts'
import { seesAccount } from '../access/user.ts'
import { type Asker, isHiddenRecord, isRestricted, requireLedger } from '../asker.ts'
import { PageError } from '../page-error.ts'
import { type AnswerOf, question } from '../question.ts'
import { eventUrl, itemAddress } from '../output/urls.ts'
import { attemptsOf, toIso } from './event.ts'

export type MessageAnswer = AnswerOf<typeof messageQuestion>

/** Of a message of more the worst are shown; of one of many more, those among so many that are read. */
const [shownAtMost, readAtMost] = [100, 1_000]

export const messageQuestion = question({
  path: '/messages/:id',
  summary: 'a message: attempts, what it said, its events',
  query: z.object({
    id: z
      .string()
      .regex(deliveryIdPattern)
      .describe('As messages show it: b…, or e… of one about a single event.'),
    at: z.coerce.number().int().positive().optional().describe('About when it was sent, ms.'),
    event: z
      .string()
      .regex(/^[^/]+\/[0-9a-f]{24}$/)
      .optional()
      .describe('Of a message about a single event, which is found by it: its account and id.'),
  }),
  async ask(asker, { id, at, event }) {
    const found = id.startsWith('b')
      ? await findSeveral(asker, id, at)
      : await findSingle(asker, id, event)
    const shown = found.filter(({ record }) => !isHiddenRecord(asker, record))
    const sorted = shown.toSorted(
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

async function findSeveral({ ledgers }: Asker, id: string, atMs?: number): Promise<Delivered[]> {
  const found: Delivered[] = []
  for await (const one of findMessage(ledgers, id, atMs)) {
    found.push(one)
    if (found.length === readAtMost) break
  }
  return found
}

/** Its id is in no index: all records would have to be read for it. */
async function findSingle(asker: Asker, id: string, event?: string): Promise<Delivered[]> {
  const [account, recordId] = event?.split('/') ?? []
  if (account === undefined || recordId === undefined) {
    throw new PageError('bad_request', 'event: a message about one event is found by that event')
  }
  const record = await readRecord(requireLedger(asker, account), recordId)
  const item = record?.items.find((one) => deliveryId(one) === id)
  return record && item ? [{ record, item }] : []
}

async function describeMessage(asker: Asker, id: string, found: readonly Delivered[]) {
  const [worst] = found
  // what was sent again since has other attempts
  const first = found.find((one) => deliveryId(one.item) === id) ?? worst
  if (!worst || !first) throw new Error('a message has an event')
  const record = await withAttempts(asker.store, first.record)
  const item = record.items[first.item.index] ?? first.item
  const shown = found.slice(0, shownAtMost)
  const recipient = asker.labels.get(item.destination) ?? item.destination
  const drawn = await drawAsSent(asker, id, { ...first, item })
  const about = found.length === 1 ? record.title : undefined
  return {
    id,
    at: toIso(first.ending?.atMs ?? item.endedAtMs ?? item.createdAtMs),
    sink: item.sink,
    recipient,
    headline: drawn.headline ?? about ?? `${pluralize(found.length, 'event')} to ${recipient}`,
    outcome: first.ending?.outcome ?? stateOf(item),
    outcome_text: itemStates[first.ending?.outcome ?? stateOf(item)],
    severity: worst.item.severity,
    attempts: attemptsOf(item),
    as_sent: drawn.as_sent,
    not_shown: drawn.not_shown,
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
    /** What may be sent again. */
    items: shown.map((one) => itemAddress(one.record, one.item)),
  }
}

/** Characters: what a view shows of a text that people got, and of a body. */
const [textAtMost, bodyAtMost] = [12_000, 8_192]

async function drawAsSent(asker: Asker, id: string, told: Delivered) {
  const { config, store, user } = asker
  const sees = (account: string): boolean => seesAccount(user, account)
  const draw = { config, store, sees, seesOwn: !isRestricted(asker) }
  const drawn = await drawMessage(draw, id, told)
  if (typeof drawn === 'string') {
    return { headline: null, as_sent: null, not_shown: undrawnTexts[drawn] }
  }
  const { headline, text, isJson } = drawn
  const shown = text.slice(0, isJson ? bodyAtMost : textAtMost).toWellFormed()
  const moreBytes = Buffer.byteLength(text) - Buffer.byteLength(shown)
  const more = shown === text ? 0 : Math.max(1, moreBytes)
  return { headline, as_sent: { text: shown, is_json: isJson, more_bytes: more }, not_shown: null }
}

const undrawnTexts: Readonly<Record<Undrawn, string>> = {
  payload_expired: 'Its content is no longer stored. Its events and attempts are.',
  sink_removed: 'Its sink is no longer configured, so nobody knows how it looked.',
  recipient_removed: 'Its recipient is no longer configured, so nobody knows how it looked.',
  others: 'It also tells of accounts that are not shown to you.',
}
