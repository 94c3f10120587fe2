/** What a message says, drawn anew from what is kept of it as its sink would send it. */
import { ownFeed } from '../event.ts'
import type { Config } from '../config/config.ts'
import {
  createDelivery,
  type DeliveryOptions,
  type DeliveryParts,
} from '../delivery/send/attempt.ts'
import { toMember } from '../delivery/claims.ts'
import { buildMemberOptions } from '../delivery/send/member-options.ts'
import type { MessageAbout } from '../grouping/freeze.ts'
import type { Delivery, Sink } from '../sinks/sink.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import { type Delivered, type KeptMessage, readKeptMessage } from '../store/deliveries.ts'
import { type Item, readItems, readPayload } from '../store/records.ts'
import type { OpenLedgers } from './open-ledgers.ts'
import { useSink } from './probes/sink-probes.ts'

export interface MessageText {
  /** Of a mail its subject, else its first line; null: it is for a machine. */
  headline: string | null
  text: string
  /** `text` is the body, as JSON. */
  isJson: boolean
}

/** Why a message is not drawn; `others`: it also tells of accounts that `sees` does not. */
export type Undrawn = 'sink_removed' | 'recipient_removed' | 'payload_expired' | 'others'

interface Draw {
  config: Config
  store: Pick<OpenLedgers, 'ledgers'>
  /** The accounts of which its reader may know. */
  sees: (account: string) => boolean
  /** Whether its reader may know what Tocsin tells of itself. */
  seesOwn: boolean
}

/**
 * Draws the message of a delivery; `told`: an item that went, or will go, with it. Secrets stay
 * masked.
 */
export async function drawMessage(
  draw: Draw,
  id: string,
  told: Delivered,
): Promise<MessageText | Undrawn> {
  const { config, store, sees, seesOwn } = draw
  const { record, item } = told
  const sinkConfig = config.sinks.find(({ name }) => name === item.sink)
  const ledger = store.ledgers.find(({ account }) => account === record.account)
  if (!sinkConfig) return 'sink_removed'
  if (!ledger || !sees(record.account)) return 'others'
  const kept = id.startsWith('b') ? await readKeptMessage(store.ledgers, id.slice(1)) : undefined
  const about = kept?.about && (JSON.parse(kept.about) as MessageAbout)
  if (about && !tellsOnlyOf(about, draw)) return 'others'
  return useSink(sinkConfig, async (sink) => {
    const parts = await readParts(ledger, told, { id, kept })
    const delivery = parts && (await createDelivery({ ledger, sink }, parts, optionsOf(draw)))
    if (!delivery) return 'payload_expired'
    if (typeof delivery === 'string') return delivery
    if (!seesOwn && delivery.members.some(({ feed }) => feed === ownFeed)) return 'others'
    if (about && delivery.members.length < about.shown.length) return 'payload_expired'
    return previewText(sink, delivery)
  })
}

function optionsOf({ config, store }: Draw): DeliveryOptions {
  return {
    ...buildMemberOptions(config),
    findLedger: (account) => store.ledgers.find((ledger) => ledger.account === account),
    readListed: () => Promise.resolve([]), // its file is named, and not made again
  }
}

/** A digest also names the feeds that its sink may hear of, and counts what was sent at once. */
function tellsOnlyOf(
  { accounts, summary: { digest, byFeed } }: MessageAbout,
  { config, store, sees, seesOwn }: Draw,
): boolean {
  if (!seesOwn && byFeed.some(({ name }) => name === ownFeed)) return false
  if (store.ledgers.every(({ account }) => sees(account))) return true
  if (!accounts.every(sees)) return false
  if (!digest) return true
  const accountOf = new Map(config.feeds.map(({ name, account }) => [name, account]))
  return (
    digest.account !== undefined &&
    sees(digest.account) &&
    digest.feeds.every(({ feed }) => sees(accountOf.get(feed) ?? ''))
  )
}

/** undefined: what it was made of is no longer kept. */
async function readParts(
  ledger: AccountLedger,
  { record, item, ending }: Delivered,
  { id, kept }: { id: string; kept: KeptMessage | undefined },
): Promise<DeliveryParts | undefined> {
  const { destination } = item
  const common = { destination, about: undefined, ...lastAttempt(item, ending?.attempts) }
  const ref = `b:${id.slice(1)}:${item.sink}`
  if (kept?.about !== undefined) {
    return { ...common, kind: 'summary', ref, members: [], about: kept.about }
  }
  if (kept) {
    const found = await readItems(ledger, kept.refs)
    if (found.length < kept.refs.length) return undefined
    return { ...common, kind: 'batch', ref, members: found.map(toMember) }
  }
  const isBatch = id.startsWith('b') // of one event, which reads the same if it is a group
  if (isBatch && ending?.items.length !== 1) return undefined
  const payload = await readPayload(ledger, record.recordId)
  const members = [toMember({ record, item, payload })]
  return { ...common, kind: isBatch ? 'batch' : 'item', ref, members }
}

/** What the last attempt said of itself; of what was never tried, what the first will say. */
function lastAttempt(
  { history, repeatRisks, ...item }: Item,
  attempts = item.attempts,
): Pick<DeliveryParts, 'attempt' | 'mayBeRepeat'> {
  const lastReason = history.at(-1)?.reason
  const isLastLost = lostReasons.some((reason) => reason === lastReason)
  return { attempt: Math.max(1, attempts), mayBeRepeat: repeatRisks > Number(isLastLost) }
}

/** Of an attempt whose answer was lost, `interrupted` by the end of its process among them. */
const lostReasons = ['timeout', 'connection_lost', 'interrupted']

function previewText(sink: Sink, delivery: Delivery): MessageText {
  const preview = sink.preview?.(delivery)
  if (preview === undefined) throw new Error(`${sink.name} has no preview`)
  if (isForMachines(sink)) {
    return { headline: null, text: JSON.stringify(preview.body, null, 2), isJson: true }
  }
  const text = preview.text.trim()
  const [firstLine = ''] = text.split('\n', 1)
  return { headline: preview.subject ?? firstLine, text, isJson: false }
}

/** Their body is what is read of them. */
export function isForMachines({ type }: Pick<Sink, 'type'>): boolean {
  return type === 'webhook' || type === 'pagerduty'
}
