/** One account with feeds and sinks as wanted, its sandbox, and its ledger as the bench reads and fills it. */
import { randomBytes } from 'node:crypto'
import { readAccounting, type Accounting } from '../../src/store/accounts.ts'
import { openLedger, type AccountLedger } from '../../src/store/account-ledger.ts'
import { createKeys } from '../../src/redis/keys.ts'
import { runScript } from '../../src/redis/scripts.ts'
import type { SandboxOptions } from '../../src/sandbox/options.ts'
import { untilThere } from './called-process.ts'
import { prefix, type Rig, type SandboxProcess } from './rig.ts'

const account = 'main'
export const apiKey = 'fw_bench'

const firstGroup = 2000

/** A sandbox of so many identifier groups, whose ids follow each other. */
export function sandboxOfOne(groups: number): SandboxOptions & { groupIds: number[] } {
  const groupIds = Array.from({ length: groups }, (_none, i) => firstGroup + i)
  return {
    groupIds,
    organizations: [{ id: 7, keys: [{ key: apiKey, tenants: [42] }] }],
    groups: groupIds.map((id) => {
      const identifiers = [{ id: id + 10_000, name: `brand-${id}.example` }]
      return { id, name: `group ${id}`, tenantId: 42, identifiers }
    }),
  }
}

interface MoreOfOne {
  /** Keys of the feeds. */
  feed?: object | undefined
  limits?: Record<'search' | 'basic', number>
}

/** Far above what can be reached: what is measured is the daemon. */
const openLimits = { search: 10_000, basic: 10_000 }

/** A feed for each group, polled as often as is allowed; without rescans unless `feed` asks for them. */
export function configOfOne(
  { url }: Pick<SandboxProcess, 'url'>,
  groupIds: readonly number[],
  sinks: Record<string, object>,
  { feed: more = { rescan: false }, limits = openLimits }: MoreOfOne = {},
): object {
  const feed = { type: 'events', account, detail: [], every: '5s', start: '1h', ...more }
  const feeds = groupIds.map((id) => [`g${id}`, { ...feed, identifier_group: id }] as const)
  return {
    accounts: {
      [account]: {
        base_url: url,
        link_hosts: ['app.example.com'],
        api_key: apiKey,
        organization_id: 7,
        limits,
      },
    },
    feeds: Object.fromEntries(feeds),
    sinks,
    route: { sinks: Object.keys(sinks) },
  }
}

const dayMs = 86_400_000

export function openAccount({ redis }: Rig, name = account): Promise<AccountLedger> {
  const config = {
    dedupeHorizonMs: 90 * dayMs,
    payloadRetentionMs: 14 * dayMs,
    historyRetentionMs: 90 * dayMs,
    maxBytes: 2 ** 30,
  }
  return openLedger({ redis, keys: createKeys(prefix), account: name, config })
}

/** Looks at the ledger's counters until they say so. */
export async function untilCounted(
  ledger: AccountLedger,
  holds: (now: Accounting) => boolean,
): Promise<void> {
  let now: Accounting | undefined
  const look = async (): Promise<true | undefined> =>
    holds((now = await readAccounting(ledger))) || undefined
  await untilThere(look, () => JSON.stringify(now))
}

/** Events taken in. What was fetched may be more: a scan that begins anew reads some again. */
export function takenInBy({ feeds }: Accounting): number {
  return Object.values(feeds).reduce((sum, feed) => sum + feed.new, 0)
}

export function deliveredBy({ sinks }: Accounting): number {
  return Object.values(sinks).reduce((sum, { delivered }) => sum + delivered, 0)
}

const batchLength = 5_000

/** Remembers `count` random fingerprints as of a week so long ago; oldest week first. */
export async function writeMarks(
  ledger: AccountLedger,
  count: number,
  weeksAgo = 0,
): Promise<void> {
  const write = (marks: (string | number)[]): Promise<unknown> =>
    // the script lies beside this file; its name is relative to the folder of the daemon's scripts
    runScript(
      ledger.redis,
      '../../../test/bench/write-marks',
      [ledger.key()],
      [weeksAgo, ledger.horizonMs, ...marks],
    )
  const before = Number(await write([]))
  let held = before
  for (let left = count; left > 0; left -= batchLength) {
    held = Number(await write(randomMarks(Math.min(left, batchLength))))
  }
  if (held - before !== count) throw new Error(`${held - before} of ${count} marks are there`)
}

/** Two of each event, as its feed shows it and as one destination gets it: they share what chooses their bucket. */
function randomMarks(count: number): (string | number)[] {
  const bytes = randomBytes(12 * count)
  return Array.from({ length: count }, (_none, i) => {
    const event = 12 * (i - (i % 2))
    const low = BigInt(bytes.readUInt32BE(event + 4) % 2 ** 18)
    const top = BigInt(bytes.readUIntBE(12 * i, 5)) * 2n ** 18n
    const sign = bytes.readUInt8(12 * i + 5) % 2 === 0 ? 1n : -1n
    return [(sign * (top + low)).toString(), bytes.readUInt32BE(event + 8)]
  }).flat()
}
