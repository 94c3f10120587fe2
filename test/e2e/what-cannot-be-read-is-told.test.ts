/** The uids are gone from what the service shows: nobody can be told of the events, so everybody is told of that. */
import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { createLogger } from '../../src/lib/logger.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { aFile, tocsin } from '../integration/cli/tocsin.ts'

import { expectConservation } from '../support/ledger.ts'
import { freePort } from '../support/free-port.ts'
import { startRedis } from '../support/redis.ts'
import { aReplica, until } from '../support/rehearsal.ts'

test('a feed whose items lost their uids is not green in log, metric, notice, feeds list or audit', async () => {
  const redis = await startRedis()
  const limits = { search: 50, basic: 50 }
  const keys = [{ key: 'fw_one', tenants: [42] }]
  const sandbox = await startSandbox({ organizations: [{ id: 7, limits, keys }] })
  const port = await freePort()
  const yaml = `
redis: {url: '${redis.url}'}
http: {port: ${port}, metrics: detailed}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_one, limits: {search: 50, basic: 50}}}
feeds: {brand: {type: events, identifier_group: 1042, every: 5s, initial_poll: send, detail: []}}
sinks:
  siem: {type: webhook, url: '${sandbox.webhookUrl}', secret: '${sandbox.webhookSecret}', allow_private: true}
  soc: {type: email, smtp: '${sandbox.smtpUrl}', from: t@example.com, to: [a@example.com], tls: off, digest: {schedule: '0 8 1 1 *'}}
route: {sinks: [siem, soc]}
self_alerts: {sink: siem}
`
  const lines: string[] = []
  const destination = new Writable({
    write: (chunk, _encoding, done) => (lines.push(String(chunk)), done()),
  })
  const replica = aReplica(yaml, createLogger({ level: 'warn', destination }))
  const config = ['--config', aFile('tocsin.yaml', yaml)]
  const said = async (...args: string[]): Promise<string> => (await tocsin(...args, ...config)).out
  const series = async (name: string): Promise<number> => {
    const scrape = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const line = scrape.split('\n').find((one) => one.startsWith(`${name}{feed="brand"`))
    return Number(line?.split(' ').at(-1))
  }
  const shows = (name: string, value: number): Promise<void> =>
    until(`${name} is ${value}`, async () => (await series(name)) === value)
  const notices = (): string[] =>
    sandbox.received.webhook
      .map(({ body }) => body)
      .filter((body) => body.includes('notice/tocsin'))
  try {
    const createdAtMs = Date.now() - 60_000
    sandbox.addEvents(2, { createdAtMs })
    for (let n = 0; n < 5; n += 1) {
      sandbox.addRawItem(1042, { metadata: { severity: 'critical' }, n }, { createdAtMs })
    }
    await replica.start()
    await until('the notice is told', () => notices().length > 0)

    expect(notices()).toHaveLength(1)
    expect(notices()[0]).toContain('feed brand: half or more of a page unreadable')
    expect(notices()[0]).toContain('tocsin items list --feed brand --state quarantined')
    const warned = lines.filter((line) => line.includes('items cannot be read and are quarantined'))
    expect(warned).toHaveLength(1)
    expect(JSON.parse(warned[0]!)).toMatchObject({ feed: 'brand', quarantined: 5, fetched: 7 })
    await shows('tocsin_quarantine_entries', 5)
    await shows('tocsin_feed_unreadable', 1)
    await shows('tocsin_events_quarantined_total', 5)
    expect(await series('tocsin_events_unreadable_total')).toBeGreaterThanOrEqual(5)

    const listed = await said('feeds', 'list')
    expect(listed).toMatch(/problem {2}5 of 7 items of its last page cannot be read: metadata\.uid/)
    expect(listed).toContain('5 items in the quarantine, which nobody was told of')
    const audited = await said('audit', '--feed=brand')
    expect(audited).toContain('2 in the ledger, 5 could not be read')
    expect(audited).toContain('malformed  5 items: tocsin items list --feed brand')
    expect(audited).not.toContain('nothing is missing')

    sandbox.addEvents(9)
    await shows('tocsin_feed_unreadable', 0)
    expect(await said('feeds', 'list')).not.toContain('cannot be read')
    await shows('tocsin_quarantine_entries', 5)
    await expectConservation(replica.ledgers[0]!)
  } finally {
    await replica.stop()
    await sandbox.close()
    await redis.stop()
  }
})
