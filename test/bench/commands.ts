/** How long a command takes that asks the ledger. */
import { accountsOf, configOf } from './fleet.ts'
import { openAccount } from './one-account.ts'
import { median, type Figures } from './report.ts'
import type { Rig } from './rig.ts'
import { routed, takeIn } from '../support/ledger.ts'

export interface CommandPlan {
  /** Accounts, of a feed and a sink each. */
  sizes: readonly number[]
  /** Of each command; the median counts. */
  times: number
}

const commands = [['items', 'list'], ['status']]

/** No command asks the service or a sink. */
const nowhere = { url: 'http://127.0.0.1', webhookSecret: 'nobody-verifies-signatures' }

/** Seconds of the slower one, by the number of accounts. */
export async function measureCommands(rig: Rig, { sizes, times }: CommandPlan): Promise<Figures> {
  const figures: Figures = {}
  for (const count of sizes) {
    await rig.redis.flushall()
    const shape = { shape: 'tenants', size: count } as const
    const accounts = accountsOf(shape)
    for (const { name } of accounts) await fill(rig, name)
    const config = configOf(shape, accounts, { sandbox: nowhere, hook: nowhere })
    const medians = []
    for (const command of commands) {
      const seconds = []
      for (let at = 0; at < times; at += 1) seconds.push(await rig.runCommand(config, ...command))
      medians.push(median(seconds))
    }
    figures[`command-ledger-${count}`] = Math.max(...medians)
  }
  return figures
}

/** Three events that wait for their sink. */
async function fill(rig: Rig, name: string): Promise<void> {
  const ledger = await openAccount(rig, name)
  const events = [1, 2, 3].map((at) => routed({ uid: `leak/${name}/${at}` }, [name]))
  const { status } = await takeIn(ledger, events, { feed: `${name}-feed` })
  if (status !== 'committed') throw new Error(`a page was ${status}`)
}
