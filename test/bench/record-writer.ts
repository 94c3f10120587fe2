/** Writes what a ledger holds of one account in large pipelines, and its sums when it ends. */
import type { ChainableCommander } from 'ioredis'
import type { AccountLedger } from '../../src/store/account-ledger.ts'
import { pendingStates, type StoredItem } from '../../src/store/records.ts'

interface Written {
  recordId: string
  atMs: number
  stored: { i: StoredItem[] }
}

const commandsAtOnce = 4_000
const [hourMs, dayMs] = [3_600_000, 86_400_000]

export class RecordWriter {
  readonly #ledger: AccountLedger
  #pipeline: ChainableCommander
  #sent: Promise<unknown> = Promise.resolve()
  readonly #counters = new Map<string, number>()
  readonly #dated = new Map<string, Map<string, number>>()
  readonly #firstMs: number[] = []
  /** When something was appended to a stream last: ids never go back. */
  readonly #lastMs = new Map<string, number>()

  constructor(ledger: AccountLedger) {
    this.#ledger = ledger
    this.#pipeline = ledger.redis.pipeline()
  }

  bump(field: string): void {
    this.#counters.set(field, (this.#counters.get(field) ?? 0) + 1)
  }

  /** Counts for the day, and for the hour. */
  tally(atMs: number, ...parts: string[]): void {
    if (this.#firstMs.length === 0) this.#firstMs.push(atMs)
    const field = parts.join('|')
    for (const name of [`day:${Math.floor(atMs / dayMs)}`, `hour:${Math.floor(atMs / hourMs)}`]) {
      const counts = this.#dated.get(name) ?? new Map<string, number>()
      this.#dated.set(name, counts)
      counts.set(field, (counts.get(field) ?? 0) + 1)
    }
  }

  append(place: string[], atMs: number, fields: (string | number)[]): void {
    const name = this.#ledger.key(...place)
    const ms = Math.max(atMs, this.#lastMs.get(name) ?? 0)
    this.#lastMs.set(name, ms)
    this.#pipeline.xadd(name, `${ms}-*`, ...fields)
  }

  addTo(place: string[], score: number, member: string): void {
    this.#pipeline.zadd(this.#ledger.key(...place), score, member)
  }

  setFields(place: string[], fields: Record<string, string>): void {
    this.#pipeline.hset(this.#ledger.key(...place), fields)
  }

  /** With its place in the index, as `rest()` of lib/ledger.lua. */
  writeRecord({ recordId, atMs, stored }: Written): void {
    const name = this.#ledger.key('rec', recordId)
    const waiting = stored.i.filter(({ st }) => (pendingStates as readonly string[]).includes(st))
    const settledMs = Math.max(0, ...stored.i.map(({ e = 0 }) => e)) || atMs
    const isPending = waiting.length > 0
    const text = JSON.stringify(stored)
    if (isPending) this.#pipeline.set(name, text)
    else this.#pipeline.set(name, text, 'PXAT', settledMs + this.#ledger.retention.history)
    this.addTo(
      ['records'],
      isPending ? -Math.min(...waiting.map(({ c }) => c)) : settledMs,
      recordId,
    )
  }

  writePayload({ recordId, atMs }: Pick<Written, 'recordId' | 'atMs'>, payload: object): void {
    const name = this.#ledger.key('pay', recordId)
    const { payload: keptMs } = this.#ledger.retention
    this.#pipeline.set(name, JSON.stringify(payload), 'PXAT', atMs + keptMs)
  }

  /** Sends what has gathered, while more is made. */
  async drain(): Promise<void> {
    if (this.#pipeline.length >= commandsAtOnce) await this.#flush()
  }

  async #flush(): Promise<void> {
    await this.#sent
    this.#sent = this.#execute(this.#pipeline)
    this.#pipeline = this.#ledger.redis.pipeline()
  }

  async #execute(pipeline: ChainableCommander): Promise<void> {
    for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error
  }

  async end(nowMs: number): Promise<void> {
    for (const [name, counts] of this.#dated) {
      const [by, number] = name.split(':') as [string, string]
      const isOld = by === 'hour' && Number(number) * hourMs < nowMs - 2 * dayMs
      if (!isOld) this.setFields([by, number], textsOf(counts))
    }
    const sinks = [...this.#counters.keys()].flatMap(
      (field) => /^s\|([^|]+)\|created$/.exec(field)?.[1] ?? [],
    )
    if (sinks.length > 0) this.#pipeline.sadd(this.#ledger.key('sinks'), ...sinks)
    const [firstMs] = this.#firstMs
    if (firstMs !== undefined) {
      const firstDay = { first_day: String(Math.floor(firstMs / dayMs)) }
      this.setFields(['counters'], { ...textsOf(this.#counters), ...firstDay })
    }
    await this.#flush()
    await this.#sent
  }
}

function textsOf(counts: ReadonlyMap<string, number>): Record<string, string> {
  return Object.fromEntries([...counts].map(([field, count]) => [field, String(count)]))
}
