import { expect, test } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { readAccounting } from '../../src/store/accounts.ts'
import { expectConservation } from '../support/ledger.ts'
import { startRedis } from '../support/redis.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

interface Observed {
  app: App
  said: string[]
}

function observed(yaml: string): Observed {
  const said: string[] = []
  const write = (line: string): void => void said.push((JSON.parse(line) as { msg: string }).msg)
  return { app: aReplica(yaml, createLogger({ destination: { write } })), said }
}

function configOf(sandbox: Sandbox, redisUrl: string, isNewer: boolean): string {
  const account = (name: string): string =>
    `${name}: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 20, basic: 20}}`
  const staff = 'type: events, identifier_group: 1043, detail: [], every: 5s, initial_poll: send'
  const to = isNewer ? 'ann@example.com, bob@example.com' : 'ann@example.com'
  return `
redis: {url: '${redisUrl}'}
http: {port: 0}
accounts:
  ${account('main')}
  ${isNewer ? account('added') : ''}
feeds:
  brand: {type: events, account: main, identifier_group: 1042, detail: [], every: 5s, initial_poll: send}
  ${isNewer ? `staff: {account: main, ${staff}}\n  others: {account: added, ${staff}}` : ''}
sinks:
  oncall: {type: email, smtp: '${sandbox.smtpUrl}', from: tocsin@example.com, to: [${to}], tls: off}
  ${isNewer ? `extra: {type: slack, url: '${sandbox.slackUrl}', allow_private: true}` : ''}
route: {sinks: [oncall${isNewer ? ', extra' : ''}], group_wait: 0s}
`
}

/** How many events each recipient got. */
function mailed(sandbox: Sandbox): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { to, uids } of sandbox.received.email) counts[to] = (counts[to] ?? 0) + uids.length
  return counts
}

test('an older replica leaves recipients, sinks and accounts that it does not know to the newer ones, also when those die', async () => {
  const redis = await startRedis()
  const sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
  })
  const older = observed(configOf(sandbox, redis.url, false))
  const newer = observed(configOf(sandbox, redis.url, true))
  const again = observed(configOf(sandbox, redis.url, true))
  const apps = [older, newer, again].map(({ app }) => app)
  const leaves = (): boolean => older.said.some((line) => line.startsWith('left to a newer'))
  const deadOf = async ({ ledgers }: App): Promise<number[]> =>
    Promise.all(
      ledgers.map(async (ledger) => (await readAccounting(ledger)).sinks['oncall']?.dead ?? 0),
    )
  try {
    sandbox.addEvent()
    await older.app.start()
    await until('an event arrives', () => mailed(sandbox)['ann@example.com'] === 1)
    await newer.app.start()
    await until('the newer one has read its feeds', async () => {
      const read = await Promise.all(newer.app.ledgers.map(readAccounting))
      const names = read.flatMap(({ feeds }) => Object.keys(feeds))
      return ['staff', 'others'].every((name) => names.includes(name))
    })
    const mend = sandbox.faults.add({ on: 'smtp:rcpt', effect: 'status', status: 451 })
    sandbox.addEvents(8, { severity: 'critical', groupIds: [1043] })
    await until('all is taken in', async () => {
      const read = await Promise.all(newer.app.ledgers.map(readAccounting))
      return read.every(({ sinks }) => (sinks['oncall']?.created ?? 0) >= 16)
    })
    await newer.app.stop()
    mend()
    await until(
      'the older one has come to what it does not know',
      async () => leaves() || (await deadOf(older.app)).some((dead) => dead > 0),
    )
    await until('what it knows arrives', () => mailed(sandbox)['ann@example.com']! >= 9)
    expect(new Set(await deadOf(older.app))).toEqual(new Set([0]))
    expect(mailed(sandbox)).toEqual({ 'ann@example.com': 9 })

    await again.app.start()
    await until('all arrives', () => mailed(sandbox)['bob@example.com']! >= 16)
    await until('all is settled', () => nothingPending(again.app))
    expect(mailed(sandbox)).toEqual({ 'ann@example.com': 17, 'bob@example.com': 16 })
    expect(new Set(await deadOf(again.app))).toEqual(new Set([0]))
    expect(
      older.said.filter((line) => /not configured any more|not in the config/.test(line)),
    ).toEqual([])
    for (const ledger of again.app.ledgers) await expectConservation(ledger)
  } finally {
    await Promise.all(apps.map((app) => app.stop()))
    await sandbox.close()
    await redis.stop()
  }
})
