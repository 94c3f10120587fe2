/**
 * What waits for a sink that the configuration does not have stays where it is. The newest
 * configuration notes the sink as gone; no replica claims for it until the sink is back.
 */
import { settleMembers, unfreezeMessage } from '../../grouping/freeze.ts'
import { blockedGroup, blockedGroups, type Outlet } from '../../grouping/placement.ts'
import type { Logger } from '../../lib/logger.ts'
import { type AccountLedger, parseRef, type Standing } from '../../store/account-ledger.ts'
import {
  groupItems,
  readPendingRefs,
  staleAttemptMs as staleMs,
} from '../../store/pending-items.ts'
import { readAnsweredMessage, readMessageHead } from '../claims.ts'
import { forEachPage } from './reroute.ts'

export interface GoneSinks {
  /** Notes a sink as gone and takes its frozen messages apart, so that their items can be moved. */
  note(ledger: AccountLedger, sink: string): Promise<void>
  /**
   * Lets claims for the sink go on, after what people have missed was put into one message. Resolves
   * with whether it did.
   */
  takeBack(ledger: AccountLedger, sink: string): Promise<boolean>
}

export interface GoneSinksOptions {
  ledgers: readonly AccountLedger[]
  outlets: ReadonlyMap<string, Outlet>
  standing: Pick<Standing, 'isActive' | 'checkNewest'>
  logger: Logger
}

export function createGoneSinks(options: GoneSinksOptions): GoneSinks {
  const { ledgers, outlets, standing, logger } = options
  const findLedger = (name: string): AccountLedger | undefined =>
    ledgers.find(({ account }) => account === name)

  async function takeApart(ledger: AccountLedger, ref: string): Promise<void> {
    const answered = await readAnsweredMessage(ledger, ref)
    if (answered) return settleMembers(ledger, ref, answered, findLedger)
    const { destination, refs } = await readMessageHead(ledger, ref)
    const isForPeople = destination !== undefined && refs.length === 0
    const groups = isForPeople ? { [destination]: blockedGroup(destination) } : {}
    await unfreezeMessage(ledger, ref, { ledgers, staleMs, batchWaitMs: undefined, groups })
  }

  return {
    async note(ledger, sink) {
      if (!(await standing.checkNewest())) return
      if ((await ledger.redis.sadd(ledger.key('gone'), sink)) === 1) {
        const about = { cause: `${sink} gone`, list: 'accounts', name: ledger.account } as const
        const message = 'items wait: their sink is not in the configuration'
        logger.repeated.warn({ sink, account: ledger.account }, message, about)
      }
      const read = pagesOf(ledger, sink)
      await forEachPage(read, async (refs) => {
        const messages = refs.filter((ref) => parseRef(ref).kind === 'batch')
        for (const ref of messages) await takeApart(ledger, ref)
        return 0
      })
    },
    async takeBack(ledger, sink) {
      if (!standing.isActive) return false
      const groups = blockedGroups(outlets.get(sink))
      if (Object.keys(groups).length > 0) {
        await forEachPage(pagesOf(ledger, sink), (refs) => {
          const singles = refs.filter((ref) => parseRef(ref).kind === 'item')
          return groupItems(ledger, singles, groups)
        })
      }
      await ledger.redis.srem(ledger.key('gone'), sink)
      logger.info({ sink, account: ledger.account }, 'items go on: their sink is back')
      return true
    },
  }
}

function pagesOf(ledger: AccountLedger, sink: string): Parameters<typeof forEachPage>[0] {
  return (page) => readPendingRefs(ledger, sink, page)
}
