/** Finds what went, or will go, under the id of a delivery. */
import { redisNow } from '../redis/scripts.ts'
import type { AccountLedger } from './account-ledger.ts'
import { type Ending, searchEndings } from './history/endings.ts'
import { deliveryId, type Item, type LedgerRecord, readRecords, scanRecords } from './records.ts'

/** An item of a delivery, with its record. */
export interface Delivered {
  record: LedgerRecord
  item: Item
  /** What became of the delivery; undefined: it was not looked up, or is under way. */
  ending?: Ending
}

/** What people ask for is recent as a rule: this much is searched in all accounts before the rest. */
const recentMs = 2 * 24 * 3_600_000

/** Within so long all members of a message are settled; as far from its hint it is looked for first. */
const settlingMs = 3_600_000

/**
 * Finds the items that are in a frozen message `b…`, or were, also those that were sent again
 * since. What waits is listed with the message. All else is found by the stream of endings, newest
 * first: around the hint and after it, or of the last two days. Only if it is not there all of the
 * stream is read, some 400,000 a second.
 */
export async function* findMessage(
  ledgers: readonly AccountLedger[],
  id: string,
  aroundMs?: number,
): AsyncGenerator<Delivered> {
  const seen = new Set<string>()
  const isNew = ({ record: { account, recordId }, item: { index } }: Delivered): boolean => {
    const place = `${account} ${recordId} ${index}`
    return !seen.has(place) && seen.add(place).size > 0
  }
  let isUnderWay = false
  for (const ledger of ledgers) {
    const frozen = await readFrozen(ledger, id)
    isUnderWay ||= frozen.isUnderWay
    for await (const found of readInParts(ledger, frozen.members)) if (isNew(found)) yield found
  }
  if (isUnderWay) return
  const fromMs = aroundMs === undefined ? await recently(ledgers) : aroundMs - settlingMs
  const near = aroundMs === undefined ? [] : [{ fromMs, toMs: aroundMs + settlingMs }]
  for (const span of [...near, { fromMs, toMs: endOfTimeMs }, { fromMs: 0, toMs: endOfTimeMs }]) {
    const search: Search = { id, ...span, foundMs: undefined }
    for await (const found of findEnded(ledgers, search)) if (isNew(found)) yield found
    if (search.foundMs !== undefined) return
  }
}

const endOfTimeMs = Number.MAX_SAFE_INTEGER

async function recently([first]: readonly AccountLedger[]): Promise<number> {
  return first ? (await redisNow(first)) - recentMs : 0
}

interface Frozen {
  /** Refs of a batch, or of a summary as far as they are not settled. */
  members: string[]
  /** Its outcome is not known: nothing of it has ended but what is a member still. */
  isUnderWay: boolean
}

async function readFrozen(ledger: AccountLedger, id: string): Promise<Frozen> {
  const [batch, members] = await Promise.all([
    ledger.redis.get(ledger.key('batch', id.slice(1))),
    ledger.redis.zrange(ledger.key('members', id.slice(1)), '0', '-1'),
  ])
  const { m = [], o } = JSON.parse(batch ?? '{}') as { m?: string[]; o?: string }
  return { members: [...m, ...members], isUnderWay: batch !== null && o === undefined }
}

/** Records that one command reads. */
const partLength = 300

async function* readInParts(ledger: AccountLedger, refs: string[]): AsyncGenerator<Delivered> {
  const places = refs.map((ref) => {
    const [, recordId = '', index] = ref.split(':')
    return { recordId, index: Number(index) }
  })
  for (let at = 0; at < places.length; at += partLength)
    yield* await readPlaces(ledger, places.slice(at, at + partLength))
}

/** What a message is drawn from beside its events. */
export interface KeptMessage {
  /** Of a summary: its `MessageAbout`, as JSON. */
  about: string | undefined
  /** Of a batch: its members, in order. */
  refs: readonly string[]
}

/**
 * Of a message that waits, or that was settled as long as the contents of its events are kept; undefined:
 * nothing is kept. Of a message that reads as that of its one event nothing is.
 */
export async function readKeptMessage(
  ledgers: readonly AccountLedger[],
  messageId: string,
): Promise<KeptMessage | undefined> {
  const read = ledgers.map(async (ledger) => {
    const [waiting, told] = await Promise.all([
      ledger.redis.get(ledger.key('batch', messageId)),
      ledger.redis.get(ledger.key('told', messageId)),
    ])
    return waiting === null ? told : keptOf(waiting)
  })
  const text = (await Promise.all(read)).find((one) => typeof one === 'string')
  if (typeof text !== 'string') return undefined
  return text.startsWith('[')
    ? { about: undefined, refs: JSON.parse(text) as string[] }
    : { about: text, refs: [] }
}

/** As it is kept once it is settled. */
function keptOf(waiting: string): string | undefined {
  const { about, m } = JSON.parse(waiting) as { about?: string; m?: string[] }
  return about ?? (m && JSON.stringify(m))
}

interface Search {
  id: string
  fromMs: number
  toMs: number
  /** When the first part that was found ended; the others are settled an hour before or after. */
  foundMs: number | undefined
}

/** Entries that one command reads. */
const pageLength = 500

async function* findEnded(
  ledgers: readonly AccountLedger[],
  search: Search,
): AsyncGenerator<Delivered> {
  for (const ledger of ledgers) {
    let before: string | undefined
    do {
      const { id, foundMs } = search
      const fromMs = foundMs === undefined ? search.fromMs : foundMs - settlingMs
      const toMs = Math.min(search.toMs, (foundMs ?? endOfTimeMs) + settlingMs)
      const page = await searchEndings(ledger, id, { fromMs, toMs, before, count: pageLength })
      search.foundMs ??= page.found[0]?.atMs
      const parts = page.found.map(async (ending) => {
        const delivered = await readPlaces(ledger, ending.items)
        return delivered.map((one) => ({ ...one, ending }))
      })
      yield* (await Promise.all(parts)).flat()
      before = page.next
    } while (before !== undefined)
  }
}

async function readPlaces(
  ledger: AccountLedger,
  places: readonly { recordId: string; index: number }[],
): Promise<Delivered[]> {
  const ids = places.map(({ recordId }) => recordId)
  const records = await readRecords(ledger, ids)
  const byId = new Map(records.map((record) => [record.recordId, record]))
  return places.flatMap(({ recordId, index }) => {
    const record = byId.get(recordId)
    const item = record?.items[index]
    return record && item ? [{ record, item }] : []
  })
}

/**
 * Finds the items that were or will be sent under a delivery's id. An item's own id is a digest that is
 * not stored, so records are searched for it: pending ones, then settled ones, newest first.
 */
export async function* findDeliveryItems(
  ledgers: readonly AccountLedger[],
  id: string,
): AsyncGenerator<Delivered> {
  if (id.startsWith('b')) {
    for await (const found of findMessage(ledgers, id)) {
      if (deliveryId(found.item) === id) yield found
    }
    return
  }
  for (const fromMs of [await recently(ledgers), 0]) {
    const found = await findSingle(ledgers, id, fromMs)
    if (found) return yield found
  }
}

async function findSingle(
  ledgers: readonly AccountLedger[],
  id: string,
  fromMs: number,
): Promise<Delivered | undefined> {
  for (const ledger of ledgers) {
    for await (const record of scanRecords(ledger, () => fromMs)) {
      const item = record.items.find((one) => one.id === id)
      if (item) return { record, item }
    }
  }
  return undefined
}
