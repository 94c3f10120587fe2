/**
 * A sandbox that grows, real replicas as processes, a killer, and an accountant: what was lost, what was
 * repeated, and whether each repeat has an explanation that was written down before it happened.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync, openSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBook, type Book } from '../../src/ledger/book.ts'
import { scanRecords, type Item } from '../../src/ledger/records.ts'
import type { Redis } from '../../src/redis/connection.ts'
import { createKeys } from '../../src/redis/keys.ts'
import type { Received } from '../../src/sandbox/catchers/received.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { expectConservation, ledgerConfig } from './ledger.ts'

/** One replica of the daemon as a process of its own. */
export interface Replica {
  readonly process: ChildProcess
  kill(signal?: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): Promise<void>
}

export interface Fleet {
  readonly replicas: Replica[]
  /** Kills one with SIGKILL and starts another in its place. */
  replace(index: number): Promise<void>
  stop(): Promise<void>
}

export function startFleet(yaml: string, size: number): Fleet {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-fleet-'))
  const config = join(folder, 'tocsin.yaml')
  writeFileSync(config, yaml)
  const log = openSync(process.env['TOCSIN_TEST_LOG'] ?? '/dev/null', 'a')
  const launch = (): Replica => launchReplica(config, log)
  const replicas = Array.from({ length: size }, launch)
  return {
    replicas,
    async replace(index) {
      await replicas[index]!.kill('SIGKILL')
      replicas[index] = launch()
    },
    async stop() {
      await Promise.all(replicas.map((replica) => replica.kill('SIGTERM')))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function launchReplica(config: string, log: number): Replica {
  const main = join(import.meta.dirname, '../../src/main.ts')
  const child = spawn(process.execPath, [main, 'run', '--config', config], {
    stdio: ['ignore', log, log],
  })
  return {
    process: child,
    async kill(signal = 'SIGKILL') {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      child.kill(signal)
      if (signal === 'SIGKILL' || signal === 'SIGTERM') await gone
    },
  }
}

/** Adds events in a steady stream until stopped. */
export function pourEvents(sandbox: Sandbox, perSecond: number): { stop(): Promise<void> } {
  let isStopped = false
  async function pour(): Promise<void> {
    for (let owed = 0; !isStopped; owed += perSecond / 10) {
      const count = Math.floor(owed)
      if (count > 0) sandbox.addEvents(count, { severity: 'high', ignoredAtMs: null })
      owed -= count
      await sleep(100)
    }
  }
  const pouring = pour()
  return {
    async stop() {
      isStopped = true
      await pouring
    },
  }
}

export function openBookOf(redis: Redis, prefix: string, account = 'main'): Promise<Book> {
  return openBook({ redis, keys: createKeys(prefix), account, config: ledgerConfig })
}

export interface Verdict {
  events: number
  expected: number
  received: number
  lost: string[]
  repeated: number
  explained: number
  /** Destination and uid of repeats without a reason that the ledger wrote down. */
  unexplained: string[]
  /** Repeats that did not say that they may be one. */
  unmarked: string[]
}

/** How one destination's messages are told apart. */
export interface Inbox {
  /** The ledger's destination id. */
  destination: string
  received: readonly Received[]
  saysRepeat: (message: Received) => boolean
}

/** Compares what the service showed with what arrived, item by item, against the ledger's own story. */
export async function giveVerdict(book: Book, uids: string[], inboxes: Inbox[]): Promise<Verdict> {
  await expectConservation(book)
  const items = await itemsByDestination(book)
  const verdict: Verdict = {
    events: uids.length,
    expected: uids.length * inboxes.length,
    received: 0,
    lost: [],
    repeated: 0,
    explained: 0,
    unexplained: [],
    unmarked: [],
  }
  for (const inbox of inboxes) judgeInbox(verdict, inbox, uids, items)
  return verdict
}

function judgeInbox(
  verdict: Verdict,
  { destination, received, saysRepeat }: Inbox,
  uids: string[],
  items: Map<string, Item>,
): void {
  const byUid = new Map<string, Received[]>()
  for (const message of received) {
    for (const uid of message.uids) byUid.set(uid, [...(byUid.get(uid) ?? []), message])
  }
  for (const uid of uids) {
    const messages = byUid.get(uid) ?? []
    const name = `${destination} ${uid}`
    if (messages.length === 0) verdict.lost.push(name)
    verdict.received += messages.length
    const extra = Math.max(0, messages.length - 1)
    if (extra === 0) continue
    verdict.repeated += extra
    const explained = Math.min(extra, items.get(name)?.repeatRisks ?? 0)
    verdict.explained += explained
    if (explained < extra) verdict.unexplained.push(name)
    if (!messages.slice(1).every(saysRepeat)) verdict.unmarked.push(name)
  }
}

async function itemsByDestination(book: Book): Promise<Map<string, Item>> {
  const found = new Map<string, Item>()
  for await (const record of scanRecords(book)) {
    for (const item of record.items) found.set(`${item.destination} ${record.uid}`, item)
  }
  return found
}
