/** Any number of replicas of the whole daemon in this process, and what a rehearsal waits for. */
import { createApp, type App } from '../../src/app.ts'
import { parseConfig } from '../../src/config/load.ts'
import { pendingOf, readAccounting } from '../../src/ledger/accounting.ts'
import type { Logger } from '../../src/runtime/logger.ts'
import { silent } from './ledger.ts'

/** One replica with the configuration as an operator writes it; not started yet. */
export function aReplica(yaml: string, logger: Logger = silent): App {
  const { config, hash } = parseConfig(yaml, { file: 'test.yaml', env: {} })
  return createApp({ config, hash, version: 'test', logger })
}

export { until } from './until.ts'

/** Whether no account of the replica has an item on its way. */
export async function nothingPending(app: App): Promise<boolean> {
  for (const book of app.books) {
    const { sinks } = await readAccounting(book)
    if (Object.values(sinks).some((sink) => pendingOf(sink) > 0)) return false
  }
  return true
}
