/** Any number of replicas of the whole daemon in this process, and what a rehearsal waits for. */
import { setTimeout as sleep } from 'node:timers/promises'
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

/** Waits for a condition, looking every 50 ms; says what was waited for when the time is up. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  timeoutMs = 20_000,
): Promise<void> {
  const endMs = Date.now() + timeoutMs
  while (!(await holds())) {
    if (Date.now() > endMs) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`)
    await sleep(50)
  }
}

/** Whether no account of the replica has an item on its way. */
export async function nothingPending(app: App): Promise<boolean> {
  for (const book of app.books) {
    const { sinks } = await readAccounting(book)
    if (Object.values(sinks).some((sink) => pendingOf(sink) > 0)) return false
  }
  return true
}
