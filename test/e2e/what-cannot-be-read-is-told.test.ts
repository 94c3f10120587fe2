/** The uids are gone from what the service shows: nobody can be told of the events, so everybody is told of that. */
import { expect, test } from 'vitest'
import { createLogger } from '../../src/lib/logger.ts'
import { aFile, tocsin } from '../integration/cli/tocsin.ts'
import { expectConservation } from '../support/ledger.ts'
import { until } from '../support/rehearsal.ts'
import { mail, startRig } from '../support/rig.ts'

test('a feed whose items lost their uids is not green in log, metric, notice, feeds list or audit', async () => {
  await using rig = await startRig({ limit: 50 })
  const { sandbox } = rig
  const digest = `${mail(sandbox, 'a@example.com')}, digest: {schedule: '0 8 1 1 *'}`
  const yaml = rig.yaml({
    feeds: { brand: 'initial_poll: send' },
    sinks: { siem: '', soc: digest },
    more: 'self_alerts: {sink: siem}',
  })
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const notices = (): string[] =>
    sandbox.received.webhook
      .map(({ body }) => body)
      .filter((body) => body.includes('notice/tocsin'))
  const createdAtMs = Date.now() - 60_000
  sandbox.addEvents(2, { createdAtMs })
  for (let n = 0; n < 5; n += 1) {
    sandbox.addRawItem(1042, { metadata: { severity: 'critical' }, n }, { createdAtMs })
  }
  const { ledger, metrics } = await rig.start(yaml, createLogger({ level: 'warn', destination }))
  const config = ['--config', aFile('tocsin.yaml', yaml)]
  const said = async (...args: string[]): Promise<string> => (await tocsin(...args, ...config)).out
  const series = async (name: string): Promise<number> => {
    const found = (await metrics())
      .split('\n')
      .find((one) => one.startsWith(`${name}{feed="brand"`))
    return Number(found?.split(' ').at(-1) ?? 0) // a gauge that is 0 has no series
  }
  const shows = (name: string, value: number): Promise<void> =>
    until(`${name} is ${value}`, async () => (await series(name)) === value)

  await until('the notice is told', () => notices().length > 0)
  expect(notices()).toHaveLength(1)
  expect(notices()[0]).toContain('feed brand: half or more of a page unreadable')
  const warned = lines.filter((line) => line.includes('items cannot be read and are quarantined'))
  expect(warned).toHaveLength(1)
  expect(JSON.parse(warned[0]!)).toMatchObject({ feed: 'brand', quarantined: 5, fetched: 7 })
  await shows('tocsin_quarantine_entries', 5)
  await shows('tocsin_feed_unreadable', 1)
  await shows('tocsin_events_quarantined_total', 5)
  expect(await said('feeds', 'list')).toMatch(/problem {2}5 of 7 items of its last page/)
  const audited = await said('audit', '--feed=brand')
  expect(audited).toContain('2 in the ledger, 5 could not be read')
  expect(audited).not.toContain('nothing is missing')

  sandbox.addEvents(9)
  await shows('tocsin_feed_unreadable', 0)
  expect(await said('feeds', 'list')).not.toContain('cannot be read')
  await shows('tocsin_quarantine_entries', 5)
  await expectConservation(ledger)
})
