import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import type { MetricDefinition } from '../../src/lib/metrics/metric-kinds.ts'
import { metricTable } from '../../src/lib/metrics/metric-table.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import {
  alertRules,
  recordingRules,
  prometheusFolder,
  selectorsOf,
} from '../support/alert-rules.ts'
import { queriesOf, readDashboard } from '../support/dashboard.ts'
import { startPrometheus, type TestPrometheus } from '../support/prometheus.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { aReplica, until } from '../support/rehearsal.ts'
import { isInstalled } from '../support/tools.ts'

const dashboard = queriesOf(readDashboard())
const rules = alertRules()

/** Series without a sample in this rehearsal: most counters never count, and feeds of others tell the quota. */
const mayBeUnset = Object.entries<MetricDefinition>(metricTable)
  .filter(([name, { isSparse }]) => isSparse || name === 'api_searches_remaining')
  .map(([name]) => `tocsin_${name}`)

let redis: TestRedis
let sandbox: Sandbox
let replica: App
let prometheus: TestPrometheus

/** A query as Grafana would send it with everything selected. */
function substituted(expr: string): string {
  return expr
    .replaceAll(/\$__(range|rate_interval)\b/g, '1m')
    .replaceAll(/\$(job|feed|sink)\b/g, '.*')
}

describe.skipIf(!isInstalled('prometheus'))('a real Prometheus', () => {
  beforeAll(async () => {
    redis = await startRedis({ settings: ['maxmemory 1gb'] })
    sandbox = await startSandbox({
      organizations: [
        { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
      ],
    })
    replica = aReplica(`
redis: {url: '${redis.url}'}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox, limits: {search: 20, basic: 20}}}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s}}
sinks:
  siem: {type: webhook, url: '${sandbox.url}/hooks/siem', secret: '${sandbox.webhookSecret}', allow_private: true}
  oncall: {type: email, smtp: '${sandbox.smtpUrl}', from: tocsin@example.com, to: [oncall@example.com], tls: off, digest: {schedule: '0 8 * * *'}}
route: {sinks: [siem, oncall]}
canary: {every: 1h, sinks: [siem]}
`)
    const { url } = await replica.start()
    const target = new URL(url).host
    prometheus = await startPrometheus({ target, rulesFile: join(prometheusFolder, 'rules.yaml') })
    sandbox.addEvents(5, { severity: 'critical' })
    await until('an event is delivered', () => sandbox.received.webhook.length > 0)
    const counted = 'sum(tocsin_items_settled_total{outcome="delivered"}) > 0'
    await until('two scrapes tell of it', async () => {
      const scrapes = await prometheus.query(`count_over_time((${counted})[1m:1s])`)
      return Number(scrapes[0]?.value?.[1] ?? 0) >= 2
    })
  })

  afterAll(async () => {
    await prometheus?.stop()
    await replica?.stop()
    await sandbox?.close()
    await redis?.stop()
  })

  test('evaluates every rule without an error', async () => {
    await until('each was evaluated', async () => (await prometheus.rules()).waiting === 0)
    const { names, failed } = await prometheus.rules()
    expect(failed).toEqual([])
    const written = [...rules.map(({ alert }) => alert), ...recordingRules().map((r) => r.record)]
    expect(names.toSorted()).toEqual(written.toSorted())
  })

  test('finds no alert firing or pending in a rehearsal where all is well', async () => {
    const named = async (state: string): Promise<unknown[]> =>
      (await prometheus.query(`ALERTS${state}`)).map(({ metric }) => metric['alertname'])
    // the first reading of Redis is older than the first poll
    await until('none is pending', async () => (await named('')).length === 0)
    expect(await named('{alertstate="firing"}')).toEqual([])
  })

  test.each([
    ...rules.map(({ alert, expr }) => [alert, expr]),
    ...recordingRules().map(({ record, expr }) => [record, expr]),
  ] as [string, string][])('has every series that %s names', async (_alert, expr) => {
    expect(await missingSeries(expr)).toEqual([])
  })

  test.each(dashboard.map(({ name, expr }) => [name, expr]))(
    'answers the dashboard\'s query "%s"',
    async (_name, expr) => {
      const query = substituted(expr)
      const answer = await prometheus.query(query)
      expect(answer.length > 0 ? [] : await missingSeries(query)).toEqual([])
    },
  )
})

async function missingSeries(expr: string): Promise<string[]> {
  const missing = []
  for (const { series } of selectorsOf(expr)) {
    if (series.includes(':')) continue // of a recording rule, whose own series are asked for
    const isThere = (await prometheus.countSeries(series)) > 0
    if (!isThere && !mayBeUnset.includes(series)) missing.push(series)
  }
  return missing
}
