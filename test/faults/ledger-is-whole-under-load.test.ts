/** No false alarm: the ledger is proved again and again while the daemon takes in and delivers as fast as it can. */
import { expect, onTestFinished, test } from 'vitest'
import { sumPending } from '../../src/store/accounts.ts'
import { isConsistent } from '../../src/operator/ledger-check.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { proofOf, redisForTests } from '../support/ledger.ts'
import { aReplica, nothingPending, until } from '../support/rehearsal.ts'

const tests = redisForTests()
const proofs = 20

test('proved twenty times while events pour through groups, batches, digests and retries, it is always whole', async () => {
  const limits = { search: 100, basic: 100 }
  const sandbox = await startSandbox({
    organizations: [{ id: 7, limits, keys: [{ key: 'fw_sandbox', tenants: [42] }] }],
  })
  onTestFinished(() => sandbox.close())
  const account = `{base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 100, basic: 100}}`
  const app = aReplica(`
redis: {url: '${tests.server.url}', prefix: load}
http: {port: 0}
accounts: {main: ${account}, other: ${account}}
feeds:
  brand: {type: events, account: main, identifier_group: 1042, every: 5s, rescan: false, start: 1h, initial_poll: send, detail: [critical]}
  again: {type: events, account: other, identifier_group: 1042, detail: [], every: 5s, rescan: false, start: 1h, initial_poll: send}
sinks:
  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true, limit: 50/s}
  oncall: {type: email, smtp: '${sandbox.smtpUrl}', from: tocsin@example.com, to: [a@example.com, b@example.com], tls: off, digest: {schedule: '0 8 1 1 *', immediate: critical}}
  siem: {type: webhook, url: '${sandbox.url}/hooks/siem', secret: '${sandbox.webhookSecret}', allow_private: true, batch: {max: 20, wait: 1s}}
  each: {type: webhook, url: '${sandbox.url}/hooks/each', secret: '${sandbox.webhookSecret}', allow_private: true}
route: {sinks: [soc, oncall, siem, each], group_by: [severity], group_wait: 1s, group_interval: 10s}
`)
  onTestFinished(() => app.stop())
  const pour = (count: number, severity: string): void =>
    void sandbox.addEvents(count, { severity, groupIds: [1042] })
  pour(100, 'high')
  await app.start()
  const sums = { records: 0, pending: 0 }
  await until('events flow', () => sandbox.received.webhook.length > 0)
  for (let n = 0; n < proofs; n += 1) {
    if (n % 4 === 0) pour(15, n % 8 === 0 ? 'critical' : 'low')
    const found = await proofOf(app.ledgers)
    const faults = found.map(({ differences, stranded, dangling }) => [
      ...differences,
      ...stranded,
      ...dangling,
    ])
    expect(faults).toEqual([[], []])
    expect(found.every(isConsistent)).toBe(true)
    for (const proof of found) {
      sums.records += proof.records
      const { oncall: _digest, ...busy } = proof.accounting.sinks
      sums.pending += Object.values(busy).reduce((sum, sink) => sum + sumPending(sink), 0)
    }
  }
  expect(sums.records).toBeGreaterThan(proofs * 10)
  expect(sums.pending).toBeGreaterThan(0) // there was something to look at
  expect(await nothingPending(app)).toBe(false)
})
