import { expect, test } from 'vitest'
import { describeConfig, describePolling, hashConfig } from '../../../src/daemon/describe-config.ts'
import { newFeedPlace, type FeedPlace } from '../../../src/feeds/lanes/next-feed.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createMetrics } from '../../../src/lib/metrics/metrics.ts'
import { scraped } from '../../support/feed-rig.ts'
import { parseConfig } from '../../../src/config/load.ts'

const base = `
accounts: {main: {base_url: https://api.example.com, api_key: fw_key}}
feeds: {brand: {type: events, identifier_group: 7}}
sinks: {soc: {type: webhook, url: 'https://hooks.example.com/x', secret: a-secret-of-24-bytes-abc}}
route: {sinks: [soc]}
`

function hashOf(text: string): number {
  return hashConfig(parseConfig(text, { file: 'tocsin.yaml', env: {} }))
}

test('the interval is the one that the lanes gave, and the expected one of a feed that they do not know', async () => {
  const two = base.replace('group: 7}}', 'group: 7}, other: {type: events, identifier_group: 8}}')
  const { config } = parseConfig(two, { file: 'tocsin.yaml', env: {} })
  const metrics = createMetrics({ clock: systemClock })
  const known = ({ name }: { name: string }): FeedPlace | undefined =>
    name === 'brand' ? { ...newFeedPlace(), intervalMs: 42_000 } : undefined
  const expected = { intervalMs: 7_000, lagObjectiveMs: 900_000 }
  describePolling({ config, metrics }, () => expected, { feedPlace: known })
  const seen = await Promise.all(
    ['brand', 'other'].flatMap((feed) =>
      ['poll_interval', 'lag_objective'].map((what) =>
        scraped(metrics, `feed_${what}_seconds{feed="${feed}"}`),
      ),
    ),
  )
  expect(seen).toEqual([42, 900, 7, 900])
})

test('a reload that ends the rescan or the canary of what stays ends their intervals, too', async () => {
  const more = `
accounts: {main: {base_url: https://api.example.com, api_key: fw_key}}
feeds:
  brand: {type: events, identifier_group: 7, rescan: {every: 1h}}
  staff: {type: events, identifier_group: 8, rescan: {every: 1h}}
sinks:
  soc: {type: webhook, url: 'https://hooks.example.com/x', secret: a-secret-of-24-bytes-abc}
  lake: {type: webhook, url: 'https://hooks.example.com/y', secret: a-secret-of-24-bytes-abc}
route: {sinks: [soc, lake]}
canary: {every: 1h, sinks: [soc, lake]}
`
  const less = more
    .replace('group: 8, rescan: {every: 1h}', 'group: 8, rescan: false')
    .replace('1h, sinks: [soc, lake]', '1h, sinks: [soc]')
  const metrics = createMetrics({ clock: systemClock })
  const expectedPolling = () => ({ intervalMs: 7_000, lagObjectiveMs: 900_000 })
  const intervals = async (text: string): Promise<string[]> => {
    const { config, files } = parseConfig(text, { file: 'tocsin.yaml', env: {} })
    const context = { config, metrics, clock: systemClock }
    describeConfig({ context, files, upstream: { expectedPolling } }, '1.0.0')
    const { body } = await metrics.render()
    const pattern = /^tocsin_(feed_rescan|canary)_interval_seconds\{.*="(.+)"\}/gm
    return [...body.matchAll(pattern)].map(([, what, name]) => `${what} ${name}`).toSorted()
  }
  const kept = ['canary soc', 'feed_rescan brand']
  const ended = ['canary lake', 'feed_rescan staff']
  expect(await intervals(more)).toEqual([...kept, ...ended].toSorted())
  expect(await intervals(less)).toEqual(kept)
})

test('the hash of a configuration follows every change, also those over which no replicas fight', () => {
  const changes = [
    base.replace('example.com/x', 'example.com/y'),
    base.replace('24-bytes-abc', '24-bytes-abd'),
    base.replace('fw_key', 'fw_kez'),
    `${base}self_alerts: {sink: soc}\n`,
    `${base}canary: {every: 2h, sinks: [soc]}\n`,
    `${base}retention: {max_bytes: 2GiB}\n`,
    `${base}http: {port: 9999}\n`,
  ]
  const hashes = [base, ...changes].map(hashOf)
  expect(new Set(hashes).size).toBe(hashes.length)
  expect(hashes.every((hash) => Number.isSafeInteger(hash) && hash > 0)).toBe(true)
  expect(hashOf(base)).toBe(hashes[0])
})
