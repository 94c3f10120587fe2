/** Holds items whose sink is not in the configuration until the sink is back; none is lost. */
import { settleMembers } from '../grouping/freeze.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { type AccountLedger, parseRef, type Standing } from '../store/account-ledger.ts'
import {
  type Group,
  holdOrphan,
  readDueRefs,
  readRepeatRisks,
  returnOrphans,
  type SinkBatchWaits,
} from '../store/pending-items.ts'
import { readAnsweredMessage } from './claims.ts'

export interface Orphans {
  /** Holds due items for a sink that is not in the configuration, one page per call. */
  hold(ledger: AccountLedger, sink: string): Promise<void>
  /**
   * Returns held items to a sink that is back, a limited number per call; resolves with how many.
   */
  takeBack(ledger: AccountLedger, sink: string): Promise<number>
  /** Logs what was held and returned since the last call. */
  report(): void
}

export interface OrphansOptions {
  ledgers: readonly AccountLedger[]
  batchWaits: SinkBatchWaits
  /** By destination: the group that returned items join; empty where they go singly. */
  returnGroups: (sink: string) => Record<string, Group>
  standing: Standing
  clock: Clock
  logger: Logger
}

const pageLength = 500
const returnedAtOnce = 100
const returnSteps = 20

export function createOrphans(options: OrphansOptions): Orphans {
  const { ledgers, batchWaits, standing, clock, logger } = options
  let held = { items: 0, sinks: new Set<string>() }
  let returned = 0

  /** Returns false for a summary with a known outcome: only its members remained to be settled. */
  async function holdOne(ledger: AccountLedger, ref: string): Promise<boolean> {
    if (parseRef(ref).kind === 'batch') {
      const answered = await readAnsweredMessage(ledger, ref)
      if (answered) {
        const find = (name: string): AccountLedger | undefined =>
          ledgers.find((one) => one.account === name)
        await settleMembers(ledger, ref, answered, find)
        return false
      }
      // a digest may have members in other account ledgers too, which do not have its head
      const risks = await readRepeatRisks(ledger, ref)
      for (const other of ledgers) if (other !== ledger) await holdOrphan(other, ref, risks)
    }
    await holdOrphan(ledger, ref)
    return true
  }

  return {
    async hold(ledger, sink) {
      const page = { offset: 0, count: pageLength }
      const refs = await readDueRefs(ledger, sink, clock.now(), page)
      // asked once they are read: what a newer configuration makes from now on is not among them
      if (!(await standing.checkNewest())) return
      for (const ref of refs) {
        if (!(await holdOne(ledger, ref))) continue
        held.items += 1
        held.sinks.add(sink)
      }
    },
    async takeBack(ledger, sink) {
      const batchWait = batchWaits[sink]
      if (!standing.isActive || batchWait === undefined) return 0
      const returning = { sink, batchWait, groups: options.returnGroups(sink) }
      let count = 0
      for (let step = 0; step < returnSteps; step += 1) {
        const returnedCount = await returnOrphans(ledger, returning, returnedAtOnce)
        count += returnedCount
        if (returnedCount < returnedAtOnce) break
      }
      returned += count
      return count
    },
    report() {
      const about = { sinks: [...held.sinks], items: held.items }
      if (held.items > 0) logger.warn(about, 'items held: their sink is not in the configuration')
      if (returned > 0) logger.info({ items: returned }, 'items go on: their sink is back')
      held = { items: 0, sinks: new Set() }
      returned = 0
    },
  }
}
