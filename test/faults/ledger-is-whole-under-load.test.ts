/** No false alarm: the ledger is proved again and again while the daemon takes in and delivers as fast as it can. */
import { expect, test } from 'vitest'
import { sumPending } from '../../src/store/accounts.ts'
import { isConsistent } from '../../src/operator/audit/ledger-check.ts'
import { proofOf } from '../support/ledger.ts'
import { nothingPending, until } from '../support/rehearsal.ts'
import { mail, slack, startRig, webhook } from '../support/rig.ts'

const proofs = 20

test('proved twenty times while events pour through groups, batches, digests and retries, it is always whole', async () => {
  await using rig = await startRig({ limit: 100 })
  const { sandbox } = rig
  const yaml = rig.yaml({
    feeds: { brand: 'rescan: false, start: 1h, initial_poll: send, detail: [critical]' },
    sinks: {
      soc: `${slack(sandbox)}, limit: 50/s`,
      oncall: `${mail(sandbox, 'a@example.com', 'b@example.com')}, digest: {schedule: '0 8 1 1 *', immediate: critical}`,
      siem: `${webhook(sandbox, 'siem')}, batch: {max: 20, wait: 1s}`,
      each: '',
    },
    route: ', group_by: [severity], group_wait: 1s, group_interval: 10s',
  })
  const pour = (count: number, severity: string): void =>
    void sandbox.addEvents(count, { severity, groupIds: [1042] })
  pour(100, 'high')
  const { app } = await rig.start(yaml)
  const sums = { records: 0, pending: 0 }
  await until('events flow', () => sandbox.received.webhook.length > 0)
  for (let n = 0; n < proofs; n += 1) {
    if (n % 4 === 0) pour(15, n % 8 === 0 ? 'critical' : 'low')
    const found = await proofOf(app.ledgers)
    const faults = found.map(({ differences, stranded, misfiled }) => [
      ...differences,
      ...stranded,
      ...misfiled,
    ])
    expect(faults).toEqual([[]])
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
